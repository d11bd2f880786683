/** How a worker comes by operations, and keeps them: claims, takeovers and renewals, a batch in each. */
import { Context, Duration, Effect, Layer, Result } from "effect"
import { advanceClock } from "../domain/Fairness.ts"
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
   * repeated: what it took, if it took anything, comes back when its lease expires.
   */
  readonly claim: (owner: string, limit: number) => Effect.Effect<ReadonlyArray<Claimed>, OutcomeUnknown>
  /** Takes over expired leases. Operations whose attempts are spent are ended and refunded instead. */
  readonly takeOver: (owner: string, limit: number) => Effect.Effect<ReadonlyArray<Claimed>, OutcomeUnknown>
  /** Renews in one statement; returns the leases that still hold. */
  readonly renew: (leases: ReadonlyArray<Lease>) => Effect.Effect<ReadonlyArray<Lease>, OutcomeUnknown>
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
    const byId = new Map(work.map((row) => [row.id, row]))
    return { claimed: claims.map(({ to }): Claimed => ({ operation: to, work: byId.get(to.id)! })), spent }
  })

  const claim = Effect.fn("Claims.claim")((owner: string, limit: number) =>
    transaction.run(Effect.gen(function*() {
      const { claimed } = yield* claimLocked(owner, yield* operations.claimable(limit))
      const served = claimed.map(({ operation }) => operation.fairTag)
      if (served.length > 0) yield* operations.advanceFairClock(advanceClock(0, served))
      return claimed
    }))
  )

  const takeOver = Effect.fn("Claims.takeOver")(function*(owner: string, limit: number) {
    const { claimed, spent } = yield* transaction.run(
      Effect.flatMap(operations.expired(limit), (locked) => claimLocked(owner, locked))
    )
    if (spent.length > 0) {
      yield* settlement.endAll(
        spent.map((operation) => ({ _tag: "Exhaust", lease: leaseOf(operation), lane: operation }))
      )
    }
    return claimed
  })

  return Claims.of({ claim, takeOver, renew: (leases) => operations.renew(leases, leaseMs) })
})
