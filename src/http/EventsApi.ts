/** The contract of events: read, wait, list, retry, cancel, and purge an input. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { OperationId } from "../domain/Ids.ts"
import { OperationKind, OperationState } from "../domain/Operation.ts"
import { Authentication, operation } from "./Authentication.ts"
import { EventView } from "./EventView.ts"
import { waitMaxSeconds } from "./Limits.ts"
import {
  absent,
  InputGoneProblem,
  InsufficientCreditProblem,
  keyed,
  WrongStateProblem
} from "./Problems.ts"
import { Reopened } from "./Receipt.ts"
import { pageOf, pageQuery, scopeQuery } from "./Wire.ts"

const params = { id: OperationId } as const

const get = HttpApiEndpoint.get("get", "/v1/events/:id", {
  params,
  query: { wait: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: waitMaxSeconds }))) },
  success: HttpApiSchema.WithHeaders(EventView, { "retry-after": Schema.optionalKey(Schema.String) }),
  error: [...absent]
}).annotateMerge(operation(
  "events:read",
  "Read an event",
  "With `wait` the answer comes as soon as the event is terminal, or as it is after that many seconds. "
    + "`Retry-After` is there while it is not terminal."
))

const list = HttpApiEndpoint.get("list", "/v1/events", {
  query: {
    status: Schema.optionalKey(OperationState),
    type: Schema.optionalKey(OperationKind),
    ...scopeQuery,
    ...pageQuery
  },
  success: pageOf(EventView, "EventPage")
}).annotateMerge(operation(
  "events:read",
  "List events",
  "Newest first. Every filter that is given must match."
))

const retry = HttpApiEndpoint.post("retry", "/v1/events/:id/retry", {
  params,
  headers: { "idempotency-key": Schema.optionalKey(Schema.String) },
  success: Reopened,
  error: [...absent, ...keyed, InsufficientCreditProblem, WrongStateProblem, InputGoneProblem]
}).annotateMerge(operation(
  "events:write",
  "Retry a failed operation",
  "Reserves credit anew and lets it run again, behind what is in its lane. A live operation is left alone, with "
    + "`replayed` false, and so is the idempotency key."
))

const cancel = HttpApiEndpoint.post("cancel", "/v1/events/:id/cancel", {
  params,
  success: EventView,
  error: [...absent, WrongStateProblem]
}).annotateMerge(operation(
  "events:write",
  "Cancel an operation",
  "Ends a live operation with a refund. Cancelling it twice changes nothing."
))

const purge = HttpApiEndpoint.delete("purge", "/v1/events/:id/input", {
  params,
  success: EventView,
  error: [...absent, WrongStateProblem]
}).annotateMerge(operation(
  "events:write",
  "Purge the input of a failed operation",
  "Removes the raw input for good, so that it cannot be retried. A live operation has to be cancelled first."
))

export class EventsApi extends HttpApiGroup.make("events")
  .add(get, list, retry, cancel, purge)
  .middleware(Authentication)
  .annotateMerge(OpenApi.annotations({ description: "What happened to each operation." }))
{}
