/**
 * What should have moved on by now. Unlike an invariant, this depends on the time: a service that works leaves nothing
 * waiting for longer than its limits, and what does wait is named here.
 */
import { type Invariant, unless } from "./Invariant.ts"
import { isTerminal, type Operation } from "./Operation.ts"
import type { LaneSlice, OperationSlice, ProjectionRecord } from "./Snapshot.ts"

/** All in milliseconds. */
export interface Limits {
  /** The longest that anything may wait that could go on. */
  readonly overdueMs: number
  /** How long the input of a failed operation is kept. */
  readonly inputRetentionMs: number
}

/** A slice, and the database clock at its instant. */
export interface Moment {
  readonly now: number
  readonly limits: Limits
}

export type TimedOperation = OperationSlice & Moment

/** An operation that is not terminal, and when one of its lane ended last, if that was within the limit. */
export interface TimedWork extends Moment {
  readonly operation: Operation
  readonly endedAt: number | null
}

/** A projection that waits, with the time of its next try and of the memory's latest change. */
export type TimedProjection = ProjectionRecord & Moment & {
  readonly attempts: number
  readonly nextAttemptAt: number
  readonly updatedAt: number
}

const overdue = ({ limits, now }: Moment, since: number): boolean => now - since > limits.overdueMs

const ofRow =
  (check: (operation: Operation, slice: TimedOperation) => ReadonlyArray<string>) =>
  (slice: TimedOperation): ReadonlyArray<string> => slice.operation === null ? [] : check(slice.operation, slice)

const ago = ({ now }: Moment, since: number): string => `${Math.round((now - since) / 1_000)} s ago`

/** These need one operation. */
export const overdueOperations: ReadonlyArray<Invariant<TimedOperation>> = [
  {
    name: "leases-are-taken-over",
    promise: "An operation whose lease expired is taken over before long.",
    check: ofRow(({ epoch, leaseExpiresAt, state }, slice) =>
      unless(
        state !== "running" || leaseExpiresAt === null || !overdue(slice, leaseExpiresAt),
        `it runs in epoch ${epoch}, and its lease expired ${ago(slice, leaseExpiresAt ?? 0)}`
      )
    )
  },
  {
    name: "retries-start",
    promise: "An attempt that is due starts before long.",
    check: ofRow(({ attempts, nextAttemptAt, ready, state }, slice) =>
      unless(
        state !== "pending" || !ready || nextAttemptAt === null || !overdue(slice, nextAttemptAt),
        `after ${attempts} attempts the next was due ${ago(slice, nextAttemptAt ?? 0)}`
      )
    )
  },
  {
    name: "failed-input-expires",
    promise: "The input of a failed operation is gone soon after its retention ends.",
    check: ofRow(({ completedAt, state }, slice) =>
      unless(
        state !== "failed" || !slice.hasInput || completedAt === null ||
          !overdue(slice, completedAt + slice.limits.inputRetentionMs),
        `it failed ${ago(slice, completedAt ?? 0)}, and its input is still there`
      )
    )
  }
]

/** These need what a lane has left to do. */
export const overdueLanes: ReadonlyArray<Invariant<LaneSlice>> = [
  {
    name: "lanes-have-a-head",
    promise: "A lane with work has an operation that is ready.",
    check: ({ operations }) => {
      const live = operations.filter(({ state }) => !isTerminal(state))
      return unless(live.length === 0 || live.some(({ ready }) => ready), `${live[0]?.id} is first, and not ready`)
    }
  }
]

/** When this operation could have started, as far as its row and its lane tell. */
const startableSince = ({ endedAt, operation: { createdAt, startedAt, windowStartedAt } }: TimedWork): number =>
  Math.max(createdAt, windowStartedAt, startedAt ?? 0, endedAt ?? 0)

/** These need one operation that is not terminal, and what its lane did lately. */
export const overdueWork: ReadonlyArray<Invariant<TimedWork>> = [
  {
    name: "work-starts",
    promise: "An operation that may run at once is claimed before long.",
    check: (work) => {
      const { nextAttemptAt, ready, state } = work.operation
      const since = startableSince(work)
      return unless(
        state !== "pending" || !ready || nextAttemptAt !== null || !overdue(work, since),
        `it could have started ${ago(work, since)}`
      )
    }
  }
]

/** These need one projection that waits. */
export const overdueProjections: ReadonlyArray<Invariant<TimedProjection>> = [
  {
    name: "projections-advance",
    promise: "A projection that is due is tried before long, and does not fail for long.",
    check: (slice) => [
      ...unless(
        !overdue(slice, slice.nextAttemptAt),
        `version ${slice.version} was due ${ago(slice, slice.nextAttemptAt)}, after ${slice.attempts} attempts`
      ),
      ...unless(
        overdue(slice, slice.nextAttemptAt) || slice.attempts < 3 || !overdue(slice, slice.updatedAt),
        `version ${slice.version} was written ${ago(slice, slice.updatedAt)}, and failed ${slice.attempts} times`
      )
    ]
  }
]
