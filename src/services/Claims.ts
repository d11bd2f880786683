/** How a worker comes by operations, and keeps them: claims, takeovers and renewals, a batch in each. */
import { Context, Duration, Effect, Layer, Result } from "effect"
import { advanceClock } from "../domain/Fairness.ts"
import { refKey } from "../domain/Ids.ts"
import { decide, evolve, type Lease, type Operation } from "../domain/Operation.ts"
import type { Locked, Work } from "./OperationStore.ts"
import { Settings } from "./Settings.ts"
import { Settlement } from "./Settlement.ts"
import { Store } from "./Store.ts"
import { type OutcomeUnknown, Transaction } from "./Transaction.ts"

/** An operation that this worker has claimed, with what the attempt needs. */
export interface Claimed {
  readonly operation: Operation
  readonly work: Work
}

export const leaseOf = (operation: Operation): Lease => ({
  workspaceId: operation.workspaceId,
  id: operation.id,
  epoch: operation.epoch
})

export class Claims extends Context.Service<Claims, {
  /**
   * Claims up to `limit` operations that are due, in fair order, for `owner`. A claim whose outcome is unknown is not
   * repeated: what it took, if it took anything, comes back when its lease expires. Operations whose attempts are spent,
   * by the number that is in force now, are ended and refunded instead, in the background.
   */
  readonly claim: (owner: string, limit: number) => Effect.Effect<ReadonlyArray<Claimed>, OutcomeUnknown>
  /** Takes over expired leases. What has no attempt left is ended just the same. */
  readonly takeOver: (owner: string, limit: number) => Effect.Effect<ReadonlyArray<Claimed>, OutcomeUnknown>
  /** Renews in one statement; returns what was renewed. The rest is lost, or somebody is busy with it. */
  readonly renew: (leases: ReadonlyArray<Lease>) => Effect.Effect<ReadonlyArray<Lease>, OutcomeUnknown>
  /** Those of these leases that no longer hold. */
  readonly lost: (leases: ReadonlyArray<Lease>) => Effect.Effect<ReadonlyArray<Lease>, OutcomeUnknown>
}>()("indelible/services/Claims") {
  static readonly layer = Layer.effect(Claims, Effect.suspend(() => make))
}

const make = Effect.gen(function*() {
  const { operations } = yield* Store
  const transaction = yield* Transaction
  const settlement = yield* Settlement
  const settings = yield* Settings
  const leaseMs = Duration.toMillis(settings.lease)
  const { maxAttempts } = settings.retry
  const scope = yield* Effect.scope

  /** Decides and saves a claim of each locked row; returns what was claimed, and what has no attempt left. */
  const claimLocked = Effect.fnUntraced(function*(owner: string, { now, operations: rows }: Locked) {
    const claims: Array<{ readonly from: Operation; readonly to: Operation }> = []
    const spent: Array<Operation> = []
    for (const from of rows) {
      const decision = decide(from, { _tag: "Claim", owner, leaseMs, maxAttempts, now })
      if (Result.isSuccess(decision)) claims.push({ from, to: evolve(from, decision.success) })
      else if (decision.failure === "attempts_spent") spent.push(from)
    }
    const saved = yield* operations.save(claims)
    if (saved.length !== claims.length) return yield* Effect.die("a locked operation changed under its lock")
    const work = claims.length === 0 ? [] : yield* operations.work(claims.map(({ to }) => to))
    const byId = new Map(work.map((row) => [refKey(row), row]))
    const claimed = claims.flatMap(({ to }): ReadonlyArray<Claimed> => {
      const row = byId.get(refKey(to))
      return row === undefined ? [] : [{ operation: to, work: row }]
    })
    // Their leases run out, and attempts end: unless a release that can read them takes over before.
    if (claimed.length < claims.length) {
      yield* Effect.logError("Claimed what this release cannot read").pipe(
        Effect.annotateLogs("operations", claims.length - claimed.length)
      )
    }
    return { claimed, spent }
  })

  /** Each by itself: one that cannot be ended keeps no other from its end. */
  const exhaust = (spent: ReadonlyArray<Operation>) =>
    Effect.forEach(spent, (operation) =>
      settlement.end({ _tag: "Exhaust", lease: leaseOf(operation), lane: operation }).pipe(
        Effect.catch(() => Effect.logWarning("The end of spent attempts had no answer")),
        Effect.catchDefect(() =>
          Effect.logError("Spent attempts could not be ended").pipe(Effect.annotateLogs("event_id", operation.id))
        )
      ), { concurrency: "unbounded", discard: true })

  // In the background, so that no claim waits for its worker meanwhile.
  const take = Effect.fnUntraced(function*(owner: string, candidates: Effect.Effect<Locked, OutcomeUnknown>) {
    const { claimed, spent } = yield* transaction.run(Effect.gen(function*() {
      const taken = yield* claimLocked(owner, yield* candidates)
      const served = taken.claimed.map(({ operation }) => operation.fairTag)
      if (served.length > 0) yield* operations.advanceFairClock(advanceClock(0, served))
      return taken
    }))
    if (spent.length > 0) yield* Effect.forkIn(exhaust(spent), scope)
    return claimed
  })

  const holds = ({ epoch }: Lease, operation: Operation | null): boolean =>
    operation?.state === "running" && operation.epoch === epoch

  return Claims.of({
    claim: Effect.fn("Claims.claim")((owner, limit) => take(owner, operations.claimable(limit))),
    takeOver: Effect.fn("Claims.takeOver")((owner, limit) => take(owner, operations.expired(limit))),
    renew: (leases) => operations.renew(leases, leaseMs),
    lost: (leases) =>
      Effect.map(
        Effect.forEach(leases, (lease) => operations.get(lease), { concurrency: 4 }),
        (rows) => leases.filter((lease, index) => !holds(lease, rows[index]!))
      )
  })
})
