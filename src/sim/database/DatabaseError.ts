/** What the simulated server answers when it does not do what it was told, and what programs see of that. */
import { Data, Exit } from "effect"
import { OutcomeUnknown } from "../../services/Transaction.ts"

/** By its SQLSTATE, with the constraint that was in the way, if one was. Thrown by statements, never seen by programs. */
export class DatabaseError {
  readonly sqlState: string
  readonly constraint: string

  constructor(sqlState: string, constraint = "") {
    this.sqlState = sqlState
    this.constraint = constraint
  }
}

export const uniqueViolation = (constraint: string) => new DatabaseError("23505", constraint)
export const foreignKeyViolation = (constraint: string) => new DatabaseError("23503", constraint)
export const checkViolation = (constraint: string) => new DatabaseError("23514", constraint)
/** A trigger has refused a change. */
export const refusedChange = (constraint: string) => new DatabaseError("23000", constraint)
export const serializationFailure = new DatabaseError("40001")
export const deadlockDetected = new DatabaseError("40P01")
export const lockTimeout = new DatabaseError("55P03")
export const cancelled = new DatabaseError("57014")
/** Something inside this transaction has failed: nothing more happens in it. */
export const inFailedTransaction = new DatabaseError("25P02")
/** What a commit of such a transaction comes to: a rollback that calls itself one. */
export const rolledBack = new DatabaseError("")
export const connectionLost = new DatabaseError("08006")

/** An error that repeating cannot cure. Says which rule, and nothing of the rows. */
export class DatabaseDefect extends Data.TaggedError("DatabaseDefect")<{
  readonly sqlState: string
  readonly constraint: string
}> {
  override get message(): string {
    return `The database refused a statement: ${[this.sqlState, this.constraint].filter(Boolean).join(" ")}`
  }
}

/** The same as the adapter of Postgres tells it: come back, nobody knows, or a defect. */
export const exitOf = ({ constraint, sqlState }: DatabaseError): Exit.Exit<never, OutcomeUnknown> => {
  const reason = reasons.find(([pattern]) => pattern.test(sqlState))?.[1]
  return reason === undefined ? Exit.die(new DatabaseDefect({ sqlState, constraint })) : unknown[reason]
}

/** Made once: they are all alike, and to make one is to check it against its schema. */
const unknown = {
  contention: Exit.fail(new OutcomeUnknown({ reason: "contention" })),
  connection: Exit.fail(new OutcomeUnknown({ reason: "connection" }))
}

const reasons: ReadonlyArray<readonly [RegExp, OutcomeUnknown["reason"]]> = [
  [/^(40001|40P01|55P03|57014)$/, "contention"],
  [/^(08|57P|25P03)/, "connection"]
]
