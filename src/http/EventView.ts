/** An event as it is on the wire: what happened to an operation, never what was said. */
import { Schema } from "effect"
import { FailureClass } from "../domain/Failure.ts"
import { MemoryId, OperationId } from "../domain/Ids.ts"
import { type Evidence, OperationKind, OperationState, Outcome } from "../domain/Operation.ts"
import { SkipReason } from "../domain/Plan.ts"
import { ScopeFilter } from "../domain/Scope.ts"
import type { Event, EventResult } from "../services/Events.ts"
import { Credits, credits, Instant, instant, instantOrNull } from "./Wire.ts"

export const ResultView = Schema.Struct({
  id: Schema.NullOr(MemoryId),
  change: Schema.Literals(["add", "update", "delete", "none"]),
  version: Schema.NullOr(Schema.Int),
  memory: Schema.NullOr(Schema.String).annotate({
    description: "Read from the live memory: null once it is deleted, and where nothing was stored."
  }),
  reason: Schema.optionalKey(SkipReason)
}).annotate({
  identifier: "EventResult",
  description: "What became of one fact; with a reason where it was not stored."
})

export const EventView = Schema.Struct({
  id: OperationId,
  type: OperationKind,
  status: OperationState,
  scope: ScopeFilter,
  attempts: Schema.Int,
  max_attempts: Schema.Int,
  next_attempt_at: Schema.NullOr(Instant),
  error: Schema.NullOr(
    Schema.Struct({ class: FailureClass, message: Schema.String, retryable: Schema.Boolean })
  ).annotate({ description: "The last failure: of the operation when failed, of the last attempt while pending." }),
  outcome: Schema.NullOr(Outcome).annotate({
    description: "Null until it succeeded. `no_memory` is a success: the model ran and found nothing to store."
  }),
  results: Schema.Array(ResultView),
  projection: Schema.Literals(["none", "pending", "ready", "failing"]).annotate({
    description: "Whether the memories are in the vector index. Never changes the outcome."
  }),
  usage: Schema.Struct({ reserved: Credits, charged: Credits, refunded: Credits }),
  created_at: Instant,
  started_at: Schema.NullOr(Instant),
  completed_at: Schema.NullOr(Instant),
  input_retained: Schema.Boolean.annotate({ description: "Whether the raw input is still kept." }),
  evidence: Schema.Struct({
    command_version: Schema.Int,
    command_hash: Schema.String,
    messages: Schema.Int,
    input_bytes: Schema.Int,
    model: Schema.NullOr(Schema.String),
    plan_digest: Schema.NullOr(Schema.String),
    offered: Schema.Int,
    stored: Schema.Int
  }).annotate({ description: "What stays of the input when it is gone: enough to explain, nothing to read." })
}).annotate({ identifier: "Event", description: "The observable state of one operation." })
export type EventView = typeof EventView.Type

const resultView = (result: EventResult): typeof ResultView.Type => ({
  id: result.id,
  change: result.change,
  version: result.version,
  memory: result.memory,
  ...(result.reason === undefined ? {} : { reason: result.reason })
})

const evidenceView = (evidence: Evidence): EventView["evidence"] => ({
  command_version: evidence.commandVersion,
  command_hash: evidence.commandHash,
  messages: evidence.messages,
  input_bytes: evidence.inputBytes,
  model: evidence.model,
  plan_digest: evidence.planDigest,
  offered: evidence.offered,
  stored: evidence.stored
})

export const eventView = (event: Event): EventView => ({
  id: event.id,
  type: event.type,
  status: event.status,
  scope: event.scope,
  attempts: event.attempts,
  max_attempts: event.maxAttempts,
  next_attempt_at: instantOrNull(event.nextAttemptAt),
  error: event.error,
  outcome: event.outcome,
  results: event.results.map(resultView),
  projection: event.projection,
  usage: {
    reserved: credits(event.usage.reserved),
    charged: credits(event.usage.charged),
    refunded: credits(event.usage.refunded)
  },
  created_at: instant(event.createdAt),
  started_at: instantOrNull(event.startedAt),
  completed_at: instantOrNull(event.completedAt),
  input_retained: event.inputRetained,
  evidence: evidenceView(event.evidence)
})
