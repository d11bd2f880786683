/** Two transactions in a chosen order of steps: one is held open while another waits for it, or goes past it. */
import { assert } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { Transaction } from "../../src/services/Transaction.ts"

/** Does `first` in a transaction and keeps it open. `end` ends it as `last` says, and waits for the end. */
const hold = Effect.fnUntraced(function*<A, E, E2>(first: Effect.Effect<A, E>, last: Effect.Effect<void, E2>) {
  const { run } = yield* Transaction
  const [held, over] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
  const steps = [first, Deferred.succeed(held, undefined), Deferred.await(over), last]
  const holder = yield* Effect.forkScoped(Effect.exit(run(Effect.all(steps, { discard: true }))))
  yield* Effect.raceFirst(Deferred.await(held), Effect.andThen(Fiber.join(holder), Effect.die("nothing was held")))
  return { end: Effect.andThen(Deferred.succeed(over, undefined), Fiber.join(holder)) }
})

/** What `second` comes to while the transaction of `first` is open. */
export const beside = Effect.fnUntraced(function*<A, E, B, E2, R2>(
  first: Effect.Effect<A, E>,
  second: Effect.Effect<B, E2, R2>
) {
  const { end } = yield* hold(first, Effect.void)
  const result = yield* second
  yield* end
  return result
})

/** What `second` comes to, which has to wait until the transaction of `first` is over, one way or the other. */
export const after = Effect.fnUntraced(function*<A, E, B, E2, E3, R3>(
  { first, second, rolledBack = false, blocked }: {
    readonly first: Effect.Effect<A, E>
    readonly second: Effect.Effect<B, E2>
    readonly rolledBack?: boolean
    /** Returns once a transaction waits for another. */
    readonly blocked: Effect.Effect<unknown, E3, R3>
  }
) {
  const { end } = yield* hold(first, rolledBack ? Effect.fail("rolled back") : Effect.void)
  const waiter = yield* Effect.forkScoped(second)
  const early = Effect.as(Fiber.await(waiter), "went past")
  assert.strictEqual(yield* Effect.raceFirst(Effect.as(blocked, "waits"), early), "waits")
  yield* end
  return yield* Fiber.join(waiter)
})
