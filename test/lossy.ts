/** A database connection that loses what a test tells it to lose: the reply to a commit, or the commit itself. */
import { Context, Effect, Layer } from "effect"
import { OutcomeUnknown, Transaction } from "../src/services/Transaction.ts"

export class Losses extends Context.Service<Losses, {
  /** This many of the next transactions commit, and nobody is told. */
  replies: number
  /** This many of the next transactions are rolled back when they would commit, and nobody is told. */
  commits: number
}>()("indelible/test/Losses") {
  static readonly layer = Layer.sync(Losses, () => ({ replies: 0, commits: 0 }))
}

const unknown = Effect.suspend(() => Effect.fail(new OutcomeUnknown({ reason: "connection" })))

/** Wraps the transactions underneath. */
export const transactions = Layer.effect(
  Transaction,
  Effect.gen(function*() {
    const inner = yield* Transaction
    const losses = yield* Losses
    const run: Transaction["Service"]["run"] = (effect) =>
      Effect.suspend(() => {
        if (losses.commits > 0) {
          losses.commits--
          return inner.run(Effect.andThen(effect, unknown))
        }
        if (losses.replies > 0) {
          losses.replies--
          return Effect.andThen(inner.run(effect), unknown)
        }
        return inner.run(effect)
      })
    return Transaction.of({ run })
  })
)
