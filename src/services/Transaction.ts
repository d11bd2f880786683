/** Which facts commit together. Everything that a program does inside `run` becomes durable at once, or not at all. */
import { Context, type Effect, Schema } from "effect"

/**
 * Storage did not answer, or asked us to come back: the transaction may or may not have committed. Safe to repeat by
 * whoever can tell the two apart, which is whoever holds an idempotency key, an operation id or an epoch.
 */
export class OutcomeUnknown extends Schema.TaggedError<OutcomeUnknown>()("OutcomeUnknown", {
  /** `contention`: rolled back for sure (deadlock, serialization). `connection`: anybody's guess. */
  reason: Schema.Literals(["contention", "connection"])
}) {}

export class Transaction extends Context.Service<Transaction, {
  /**
   * Runs `effect` in one READ COMMITTED transaction: every port call inside joins it. A failure of `effect` rolls back
   * and is passed on; a commit that nobody confirmed is `OutcomeUnknown`. No provider call and no wait for anything
   * but the database belongs inside.
   */
  readonly run: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | OutcomeUnknown, R>
}>()("indelible/services/Transaction") {}
