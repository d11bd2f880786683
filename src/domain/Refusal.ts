/** Why a command was refused before anything was stored. Each says whether to come back, and with what. */
import { Schema } from "effect"
import { OperationId } from "./Ids.ts"

/** Fix the request. Retrying as is cannot help. `path` is a JSON pointer into the body, or names a header. */
export class InvalidInput extends Schema.TaggedError<InvalidInput>()("InvalidInput", {
  errors: Schema.Array(Schema.Struct({ path: Schema.String, message: Schema.String }))
}) {}

/** The key names another command. Find out why it was reused; never rotate it blindly. */
export class IdempotencyConflict extends Schema.TaggedError<IdempotencyConflict>()("IdempotencyConflict", {
  operationId: OperationId
}) {}

/** Not enough credit. The key was not consumed: the same request works after a top-up. */
export class InsufficientCredit extends Schema.TaggedError<InsufficientCredit>()("InsufficientCredit", {
  required: Schema.BigInt,
  available: Schema.BigInt
}) {}

/** There is no such thing in this workspace. Retrying cannot help. */
export class NotFound extends Schema.TaggedError<NotFound>()("NotFound", {
  what: Schema.Literals(["memory", "event", "workspace", "api_key"])
}) {}

/** The memory moved on since the caller read it. Read it again and decide again. */
export class VersionConflict extends Schema.TaggedError<VersionConflict>()("VersionConflict", {
  current: Schema.Int
}) {}

/** The operation is in a state in which this cannot be done. Read the event. */
export class WrongState extends Schema.TaggedError<WrongState>()("WrongState", {
  state: Schema.Literals(["pending", "running", "succeeded", "failed"])
}) {}

/** The input is gone, so that nothing could be run again. Send it as a new command. */
export class InputGone extends Schema.TaggedError<InputGone>()("InputGone", {}) {}

/** Too much is waiting already, or storage did not answer. Repeat the same request, with the same key, a little later. */
export class ComeBackLater extends Schema.TaggedError<ComeBackLater>()("ComeBackLater", {
  reason: Schema.Literals(["overloaded", "outcome_unknown", "shutting_down"])
}) {}
