/** The two answers to a write: a receipt for what was accepted, and the results of what is already finished. */
import { Schema } from "effect"
import { HttpApiSchema } from "effect/http-api"
import { type MemoryId, OperationId } from "../domain/Ids.ts"
import { isTerminal, OperationState } from "../domain/Operation.ts"
import type * as Commands from "../services/Commands.ts"
import { eventView, ResultView } from "./EventView.ts"
import { etag } from "./MemoryView.ts"
import { Credits, credits, Instant, instant } from "./Wire.ts"

/** What a caller holds after 202: the command is committed, its outcome belongs to the event. */
export const Receipt = Schema.Struct({
  event_id: OperationId,
  status: OperationState,
  replayed: Schema.Boolean.annotate({ description: "True when this key already named this very command." }),
  created_at: Instant,
  usage: Schema.Struct({
    reserved: Credits.annotate({
      description: "What this request has reserved. A replay of an add says the same; one of a retry, what the operation still holds."
    })
  })
}).annotate({ identifier: "Receipt", description: "Accepted: read the event for the outcome." })
export type Receipt = typeof Receipt.Type

/** The headers of a 202. */
const receiptHeaders = {
  location: Schema.String,
  "retry-after": Schema.optionalKey(Schema.String),
  "idempotent-replayed": Schema.optionalKey(Schema.Literal("true"))
} as const

/** The answer to an add, which may have been asked to wait. */
export const Accepted = HttpApiSchema.WithHeaders(Receipt.pipe(HttpApiSchema.status(202)), {
  ...receiptHeaders,
  "preference-applied": Schema.optionalKey(Schema.String)
})

/** The answer to a retry. */
export const Reopened = HttpApiSchema.WithHeaders(Receipt.pipe(HttpApiSchema.status(202)), receiptHeaders)

/** The answer 202 to what was accepted. `preference` is the preference that was honoured. */
export const accepted = (held: Commands.Receipt, preference?: string) =>
  HttpApiSchema.withHeaders({
    body: {
      event_id: held.eventId,
      status: held.status,
      replayed: held.replayed,
      created_at: instant(held.createdAt),
      usage: { reserved: credits(held.reserved) }
    },
    headers: {
      location: `/v1/events/${held.eventId}`,
      ...(isTerminal(held.status) ? {} : { "retry-after": "1" }),
      ...replayed(held),
      ...(preference === undefined ? {} : { "preference-applied": preference })
    }
  })

/** The header that marks a replay. */
const replayed = (answer: { readonly replayed: boolean }): { readonly "idempotent-replayed"?: "true" } =>
  answer.replayed ? { "idempotent-replayed": "true" } : {}

const finished = {
  event_id: OperationId,
  status: Schema.Literal("succeeded"),
  results: Schema.Array(ResultView)
} as const

/** A write that this request finished. */
export const Finished = Schema.Struct({ ...finished, replayed: Schema.Literal(false) }).annotate({
  identifier: "Finished",
  description: "Done: everything is stored."
})

/** A write that an earlier request with this key finished. */
export const FinishedBefore = Schema.Struct({ ...finished, replayed: Schema.Literal(true) }).annotate({
  identifier: "FinishedBefore",
  description: "Done before, under this key: nothing new was stored or charged."
})

/** A write that finished, now or before. */
export const FinishedNowOrBefore = Schema.Struct({ ...finished, replayed: Schema.Boolean }).annotate({
  identifier: "FinishedWrite",
  description: "Done: `replayed` tells whether an earlier request with this key did it."
})

const finishedView = ({ event }: Commands.Completed) => ({
  event_id: event.id,
  status: "succeeded" as const,
  results: eventView(event).results
})

/** The answer to a verbatim add: 201, or 200 when an earlier request made it. */
export const stored = (completed: Commands.Completed) => {
  const body = finishedView(completed)
  const location = `/v1/events/${body.event_id}`
  return completed.replayed
    ? HttpApiSchema.withHeaders({
      body: { ...body, replayed: true as const },
      headers: { location, "idempotent-replayed": "true" as const }
    })
    : HttpApiSchema.withHeaders({ body: { ...body, replayed: false as const }, headers: { location } })
}

/**
 * The answer 200 to an edit or a deletion of a memory: with the tag of the version that it made. What was deleted
 * already may have been so by an event with results of others.
 */
export const changed = (id: MemoryId, completed: Commands.Completed) => {
  const version = completed.event.results.findLast((result) => result.id === id)?.version ?? null
  return HttpApiSchema.withHeaders({
    body: { ...finishedView(completed), replayed: completed.replayed },
    headers: { ...(version === null ? {} : { etag: etag(version) }), ...replayed(completed) }
  })
}
