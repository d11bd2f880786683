/** What is always true of an operation with its records, of a lane, and of keys. */
import { derivedMemoryId } from "./Digest.ts"
import { treatment } from "./Failure.ts"
import { type Invariant, same, unless } from "./Invariant.ts"
import { isTerminal } from "./Operation.ts"
import { type LaneSlice, ofOperation, type OperationSlice, type WorkspaceSlice } from "./Snapshot.ts"

export const operationInvariants: ReadonlyArray<Invariant<OperationSlice>> = [
  {
    name: "nothing-without-its-operation",
    promise: "Every key, authorization, transfer, version, plan and input belongs to an operation that exists.",
    check: (slice) => unless(slice.operation !== null, "there are rows of an operation that does not exist")
  },
  {
    name: "records-equal-results",
    promise: "A succeeded operation made exactly the versions that its results name, once, and no other made any.",
    check: ofOperation((operation, { history }) => {
      const stored = operation.results.filter((result) => result.change !== "none")
      const named = stored.map(({ change, id, version }) => `${id} ${version} ${change}`).toSorted()
      const made = history.map(({ change, memoryId, version }) => `${memoryId} ${version} ${change}`).toSorted()
      return [
        ...unless(same(named, made), `its results name ${named.length} versions, and it made ${made.length} or others`),
        ...unless(new Set(named).size === named.length, "its results name a version twice"),
        ...unless(operation.state === "succeeded" || made.length === 0, `${operation.state}, and it made versions`),
        ...unless(operation.outcome !== "stored" || stored.length > 0, "it says that it stored something, and did not"),
        ...unless(operation.outcome !== "no_memory" || stored.length === 0, "it says that it stored nothing, and did")
      ]
    })
  },
  {
    name: "ids-are-derived",
    promise: "A memory that is added has the id derived from its operation and its place in the results.",
    check: ofOperation(({ id, results }) =>
      results.flatMap((result, index) =>
        unless(
          result.change !== "add" || result.id === derivedMemoryId(id, index),
          `result ${index} has an id of its own`
        )
      )
    )
  },
  {
    name: "lease-follows-state",
    promise: "A running operation is leased and at the head of its lane; any other is leased by nobody.",
    check: ofOperation(({ leaseExpiresAt, leaseOwner, ready, state }) =>
      state === "running"
        ? [
          ...unless(leaseOwner !== null && leaseExpiresAt !== null, "it runs without a lease"),
          ...unless(ready, "it runs, and is not at the head of its lane")
        ]
        : unless(leaseOwner === null && leaseExpiresAt === null, `${state}, and leased`)
    )
  },
  {
    name: "terminal-is-finished",
    promise: "A terminal operation waits for nothing and says how it ended; a live one has not ended.",
    check: ofOperation(({ completedAt, failure, nextAttemptAt, outcome, ready, results, state }) => [
      ...unless(isTerminal(state) === (completedAt !== null), `${state}, and completed at ${completedAt}`),
      ...unless(!isTerminal(state) || (!ready && nextAttemptAt === null), `${state}, and to be run again`),
      ...unless((state === "succeeded") === (outcome !== null), `${state}, with outcome ${outcome}`),
      ...unless(state === "succeeded" || results.length === 0, `${state}, with results`),
      ...unless(state !== "succeeded" || failure === null, `succeeded, with failure ${failure}`),
      ...unless(state !== "failed" || failure !== null, "failed, without a reason")
    ])
  },
  {
    name: "waits-for-what-may-pass",
    promise: "What is to be tried again has failed in a way that may pass.",
    check: ofOperation(({ failure, state }) =>
      unless(isTerminal(state) || failure === null || treatment[failure] !== "never", `${state} after ${failure}`)
    )
  },
  {
    name: "success-is-redacted",
    promise: "Once an operation has succeeded, neither its input nor its plan is kept.",
    check: ofOperation(({ state }, { hasInput, hasPlan }) => [
      ...unless(state !== "succeeded" || !hasInput, "its input is still there"),
      ...unless(state !== "succeeded" || !hasPlan, "its plan is still there")
    ])
  },
  {
    name: "attempts-are-claims",
    promise: "Attempts are never negative and never more than the claims that were made.",
    check: ofOperation(({ attempts, epoch, invalidOutputs, state }) => [
      ...unless(attempts >= 0 && attempts <= epoch, `${attempts} attempts in ${epoch} claims`),
      ...unless(invalidOutputs >= 0 && invalidOutputs <= attempts, `${invalidOutputs} of ${attempts} attempts invalid`),
      ...unless(state !== "running" || attempts > 0, "it runs in no attempt")
    ])
  }
]

export const laneInvariants: ReadonlyArray<Invariant<LaneSlice>> = [
  {
    name: "one-head",
    promise: "At most one operation of a lane is claimable, and it is the first of those that are not terminal.",
    check: ({ operations }) => {
      const live = operations.filter(({ state }) => !isTerminal(state)).toSorted((a, b) => a.seq - b.seq)
      const ready = live.filter((operation) => operation.ready)
      return [
        ...unless(ready.length <= 1, `${ready.length} operations are ready`),
        ...unless(ready.length === 0 || live[0]!.ready, `${ready[0]?.id} is ready before ${live[0]?.id}`),
        ...unless(new Set(live.map(({ seq }) => seq)).size === live.length, "two operations have the same place")
      ]
    }
  },
  {
    name: "one-runner",
    promise: "At most one operation of a lane is running.",
    check: ({ operations }) => {
      const running = operations.filter(({ state }) => state === "running")
      return unless(running.length <= 1, `${running.length} operations are running`)
    }
  }
]

export const keyInvariants: ReadonlyArray<Invariant<WorkspaceSlice>> = [
  {
    name: "one-operation-per-key",
    promise: "An idempotency key names one operation.",
    check: ({ keys }) => {
      const distinct = new Set(keys.map(({ keyHash }) => keyHash)).size
      return unless(distinct === keys.length, `${distinct} keys are claimed ${keys.length} times`)
    }
  }
]
