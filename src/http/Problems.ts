/**
 * Every refusal as a caller sees it: an RFC 9457 problem with a stable `code`. Part of the contract: a client branches
 * on `code` (or on the class), and reads in `retryable` whether the same request, with the same key, can succeed later.
 */
import { Schema } from "effect"
import { HttpApiError } from "effect/http-api"
import { OperationId } from "../domain/Ids.ts"
import { OperationState } from "../domain/Operation.ts"
import type { KeyScope } from "../services/ApiKeys.ts"

const declaration = <const Code extends string, const Status extends number>(
  code: Code,
  status: Status,
  title: string
) => ({ type: `urn:indelible:problem:${code}` as const, status, title })

const members = <const Code extends string, const Retryable extends boolean>(code: Code, retryable: Retryable) => ({
  code: Schema.tag(code),
  /** Whether repeating the very same request can help. */
  retryable: Schema.tag(retryable),
  /** What happened, and what to do next. Never holds a part of the request. */
  detail: Schema.String,
  /** Equal to `X-Request-Id`, and to `request_id` in the logs. */
  request_id: Schema.String
})

/** Where the request is wrong. `path` is a JSON pointer into the body, or names a header or a query parameter. */
export const Fault = Schema.Struct({ path: Schema.String, message: Schema.String })
export type Fault = typeof Fault.Type

const faults = { errors: Schema.Array(Fault) }

/** The request could not be read: its JSON, a header or a query parameter. Fix it. */
export class MalformedRequest extends HttpApiError.Problem<MalformedRequest>()(
  "MalformedRequest",
  declaration("invalid_input", 400, "The request could not be read"),
  { ...members("invalid_input", false), ...faults }
) {}

/** The body was read and is not acceptable. Fix it. */
export class UnacceptableBody extends HttpApiError.Problem<UnacceptableBody>()(
  "UnacceptableBody",
  declaration("invalid_input", 422, "The request body is not acceptable"),
  { ...members("invalid_input", false), ...faults }
) {}

/** This write needs an `Idempotency-Key`. */
export class IdempotencyKeyRequired extends HttpApiError.Problem<IdempotencyKeyRequired>()(
  "IdempotencyKeyRequired",
  declaration("idempotency_key_required", 400, "An idempotency key is required"),
  members("idempotency_key_required", false)
) {}

/** The `Idempotency-Key` is not one key of 1 to 255 visible ASCII characters. */
export class IdempotencyKeyInvalid extends HttpApiError.Problem<IdempotencyKeyInvalid>()(
  "IdempotencyKeyInvalid",
  declaration("idempotency_key_invalid", 400, "The idempotency key is not valid"),
  members("idempotency_key_invalid", false)
) {}

/** No key, an unknown key, or a revoked one. */
export class Unauthenticated extends HttpApiError.Problem<Unauthenticated>()(
  "Unauthenticated",
  declaration("unauthenticated", 401, "A valid API key is required"),
  members("unauthenticated", false)
) {}

/** Not enough credit. The idempotency key was not consumed: the same request works after a top-up. */
export class InsufficientCreditProblem extends HttpApiError.Problem<InsufficientCreditProblem>()(
  "InsufficientCreditProblem",
  declaration("insufficient_credit", 402, "Not enough credit"),
  { ...members("insufficient_credit", false), required_credits: Schema.Int, available_credits: Schema.Int }
) {}

/** The scopes of API keys, here again so that a client imports no service. */
const keyScopes: ReadonlyArray<KeyScope> = [
  "memories:read",
  "memories:write",
  "events:read",
  "events:write",
  "usage:read"
]

/** The API key may not do this. */
export class ForbiddenScope extends HttpApiError.Problem<ForbiddenScope>()(
  "ForbiddenScope",
  declaration("forbidden_scope", 403, "The API key lacks a scope"),
  { ...members("forbidden_scope", false), required_scope: Schema.Literals(keyScopes) }
) {}

/** There is no such thing in the workspace of this key. */
export class NotFoundProblem extends HttpApiError.Problem<NotFoundProblem>()(
  "NotFoundProblem",
  declaration("not_found", 404, "Not found"),
  members("not_found", false)
) {}

/** The path exists, but not with this method. `Allow` names those that do. */
export class MethodNotAllowed extends HttpApiError.Problem<MethodNotAllowed>()(
  "MethodNotAllowed",
  declaration("method_not_allowed", 405, "Method not allowed"),
  members("method_not_allowed", false)
) {}

/** The idempotency key names another command: `event_id` is its event. Find out why; never rotate the key blindly. */
export class IdempotencyConflictProblem extends HttpApiError.Problem<IdempotencyConflictProblem>()(
  "IdempotencyConflictProblem",
  declaration("idempotency_conflict", 409, "The idempotency key was used for another command"),
  { ...members("idempotency_conflict", false), event_id: OperationId }
) {}

/** The operation is in a state in which this cannot be done. */
export class WrongStateProblem extends HttpApiError.Problem<WrongStateProblem>()(
  "WrongStateProblem",
  declaration("wrong_state", 409, "Not possible in this state"),
  { ...members("wrong_state", false), state: OperationState }
) {}

/** The input is gone, so that nothing could be run again. */
export class InputGoneProblem extends HttpApiError.Problem<InputGoneProblem>()(
  "InputGoneProblem",
  declaration("input_gone", 410, "The input is gone"),
  members("input_gone", false)
) {}

/** The memory is not at the version that `If-Match` names. */
export class VersionConflictProblem extends HttpApiError.Problem<VersionConflictProblem>()(
  "VersionConflictProblem",
  declaration("version_conflict", 412, "The memory has another version"),
  { ...members("version_conflict", false), current_version: Schema.Int }
) {}

/** The body is larger than a request may be. */
export class PayloadTooLarge extends HttpApiError.Problem<PayloadTooLarge>()(
  "PayloadTooLarge",
  declaration("payload_too_large", 413, "The request body is too large"),
  { ...members("payload_too_large", false), max_bytes: Schema.Int }
) {}

/** The body is not plain `application/json`. */
export class UnsupportedMediaType extends HttpApiError.Problem<UnsupportedMediaType>()(
  "UnsupportedMediaType",
  declaration("unsupported_media_type", 415, "The request body is not JSON"),
  members("unsupported_media_type", false)
) {}

/** A fault of ours. Repeating with the same idempotency key is safe. */
export class InternalProblem extends HttpApiError.Problem<InternalProblem>()(
  "InternalProblem",
  declaration("internal", 500, "Internal error"),
  members("internal", true)
) {}

/** Too much is waiting already. Nothing was accepted. */
export class Overloaded extends HttpApiError.Problem<Overloaded>()(
  "Overloaded",
  declaration("overloaded", 503, "Overloaded"),
  members("overloaded", true)
) {}

/** Storage did not answer: a write may or may not have been accepted. The same idempotency key finds out. */
export class OutcomeUnknownProblem extends HttpApiError.Problem<OutcomeUnknownProblem>()(
  "OutcomeUnknownProblem",
  declaration("outcome_unknown", 503, "The outcome is not known"),
  members("outcome_unknown", true)
) {}

/** This process is going away. Another one, or the next one, will answer. */
export class ShuttingDown extends HttpApiError.Problem<ShuttingDown>()(
  "ShuttingDown",
  declaration("shutting_down", 503, "Shutting down"),
  members("shutting_down", true)
) {}

/** What any endpoint that names one thing may answer. */
export const absent = [NotFoundProblem] as const
/** What any endpoint with a body may answer before it does anything. */
export const badBody = [PayloadTooLarge, UnsupportedMediaType, UnacceptableBody] as const
/** What any keyed write may answer. */
export const keyed = [IdempotencyKeyInvalid, IdempotencyConflictProblem] as const
/** What any authenticated endpoint may answer. */
export const always = [
  MalformedRequest,
  Unauthenticated,
  ForbiddenScope,
  InternalProblem,
  Overloaded,
  OutcomeUnknownProblem,
  ShuttingDown
] as const
