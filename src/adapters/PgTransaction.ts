/** `Transaction` on Postgres, and what a database error means to whoever sees it: come back, or a defect. */
import { PgClient } from "@effect/sql-pg"
import { Cause, Data, Effect, Layer, Option, Predicate } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { OutcomeUnknown, Transaction } from "../services/Transaction.ts"

/** Inside an open transaction of its client, `run` joins it: no savepoints, so what fails inside fails all of it. */
export const layer = Layer.effect(
  Transaction,
  Effect.gen(function*() {
    const sql = yield* PgClient.PgClient
    const current = Effect.serviceOption(sql.transactionService)
    const spoiled = new WeakSet<object>()
    const unlessSpoiled = Effect.flatMap(current, (level) =>
      Option.isSome(level) && spoiled.has(level.value)
        ? Effect.die(new Error("A transaction went on after something inside it had failed"))
        : Effect.void)
    const begin = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | OutcomeUnknown, R> =>
      settled(sql.withTransaction(Effect.tap(effect, unlessSpoiled)))
    const join = <A, E, R>(effect: Effect.Effect<A, E, R>, level: object): Effect.Effect<A, E, R> =>
      Effect.tapCause(effect, () => Effect.sync(() => spoiled.add(level)))
    return Transaction.of({
      run: (effect) =>
        Effect.flatMap(current, (level) => Option.isSome(level) ? join(effect, level.value) : begin(effect))
    })
  })
)

/**
 * A database error that repeating cannot cure. Says which, and nothing of what was in the statement: Postgres quotes
 * rows and values in its messages, and defects are logged.
 */
export class DatabaseDefect extends Data.TaggedError("DatabaseDefect")<{
  readonly sqlState: string
  readonly kind: SqlError["reason"]["_tag"]
  readonly constraint: string
}> {
  override get message(): string {
    return `The database refused a statement: ${[this.kind, this.sqlState, this.constraint].filter(Boolean).join(" ")}`
  }
}

/**
 * The errors of one statement as programs see them: `OutcomeUnknown` for those that may pass when repeated, a defect
 * for the rest. Every statement of a Postgres adapter goes through here.
 */
export const outcome = <A, E, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, Exclude<E, SqlError> | OutcomeUnknown, R> =>
  Effect.catch(effect, (error): Effect.Effect<never, Exclude<E, SqlError> | OutcomeUnknown> =>
    isSqlError(error) ? translate(error) : Effect.fail(error as Exclude<E, SqlError>))

const translate = (error: SqlError): Effect.Effect<never, OutcomeUnknown> => {
  const reason = retryable(error)
  if (reason === undefined) return Effect.die(defect(error))
  const annotations = { sqlState: sqlState(error), kind: error.reason._tag }
  return Effect.andThen(
    reason === "contention"
      ? Effect.logDebug("The database asked to come back").pipe(Effect.annotateLogs(annotations))
      : Effect.logWarning("The database did not answer").pipe(Effect.annotateLogs(annotations)),
    Effect.fail(new OutcomeUnknown({ reason }))
  )
}

/**
 * A rollback that finds its connection gone comes as a defect. The server has rolled back by itself, and whoever was
 * interrupted meanwhile stays just that.
 */
const settled = <A, E, R>(effect: Effect.Effect<A, E | SqlError, R>): Effect.Effect<A, E | OutcomeUnknown, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.catchCause(restore(effect), (cause): Effect.Effect<never, E | OutcomeUnknown> => {
      const interrupts = cause.reasons.filter(Cause.isInterruptReason)
      const failed = cause.reasons.flatMap((reason) => Cause.isFailReason(reason) ? [reason.error] : []).find(isSqlError)
      const rollback = cause.reasons.flatMap((reason) => Cause.isDieReason(reason) ? [reason.defect] : []).find(isSqlError)
      if (failed === undefined && rollback !== undefined && interrupts.length > 0) {
        return Effect.failCause(Cause.fromReasons(interrupts))
      }
      const error = failed ?? rollback
      return error === undefined ? Effect.failCause(cause as Cause.Cause<E>) : translate(error)
    })
  )

/** A field of the server's error that names something of ours or of its own, never a value. */
const field = ({ reason: { cause } }: SqlError, name: "code" | "constraint"): string => {
  const value = Predicate.hasProperty(cause, name) ? cause[name] : undefined
  return typeof value === "string" ? value : ""
}

const sqlState = (error: SqlError): string => field(error, "code")

const defect = (error: SqlError): DatabaseDefect =>
  new DatabaseDefect({
    sqlState: sqlState(error),
    kind: error.reason._tag,
    constraint: field(error, "constraint")
  })

const retryable = (error: SqlError): OutcomeUnknown["reason"] | undefined => {
  switch (error.reason._tag) {
    case "ConnectionError":
      return "connection"
    case "DeadlockError":
    case "SerializationError":
    case "LockTimeoutError":
    case "StatementTimeoutError":
      return "contention"
    default:
      return retryableStates.find(([pattern]) => pattern.test(sqlState(error)))?.[1]
  }
}

/** What the client does not sort: the server goes down or comes up, is out of room, or has become a standby. */
const retryableStates: ReadonlyArray<readonly [RegExp, OutcomeUnknown["reason"]]> = [
  [/^57P/, "connection"],
  [/^(25P03|25P04|25006|40003)$/, "connection"],
  [/^53/, "contention"]
]
