/** The privacy-safe read projection of an operation: what happened, never what was said. */
import { Context, type Effect } from "effect"
import type { FailureClass } from "../domain/Failure.ts"
import type { MemoryId, OperationId, OperationRef, WorkspaceId } from "../domain/Ids.ts"
import type { Operation, OperationKind, OperationState, Outcome } from "../domain/Operation.ts"
import type { SkipReason } from "../domain/Plan.ts"
import type { ComeBackLater, NotFound } from "../domain/Refusal.ts"
import type { ScopeFilter } from "../domain/Scope.ts"
import type { ProjectionStatus } from "./MemoryStore.ts"

/** What became of one fact. `memory` is read from the live memory: null once it is deleted. */
export interface EventResult {
  readonly id: MemoryId | null
  readonly change: "add" | "update" | "delete" | "none"
  readonly version: number | null
  readonly memory: string | null
  readonly reason?: SkipReason
}

/** Times are milliseconds by the database clock; credits are whole. */
export interface Event {
  readonly id: OperationId
  readonly type: OperationKind
  readonly status: OperationState
  readonly scope: ScopeFilter
  readonly attempts: number
  readonly maxAttempts: number
  readonly nextAttemptAt: number | null
  readonly error: { readonly class: FailureClass; readonly message: string; readonly retryable: boolean } | null
  readonly outcome: Outcome | null
  readonly results: ReadonlyArray<EventResult>
  readonly projection: ProjectionStatus
  readonly usage: { readonly reserved: bigint; readonly charged: bigint; readonly refunded: bigint }
  readonly createdAt: number
  readonly startedAt: number | null
  readonly completedAt: number | null
  /** The evidence that stays after the input is gone. */
  readonly evidence: Operation["evidence"]
  /** Whether the raw input is still kept. */
  readonly inputRetained: boolean
}

export interface EventPage {
  readonly workspaceId: WorkspaceId
  readonly status: OperationState | null
  readonly type: OperationKind | null
  readonly scope: ScopeFilter
  readonly before: OperationId | null
  readonly limit: number
}

export class Events extends Context.Service<Events, {
  readonly get: (ref: OperationRef) => Effect.Effect<Event, NotFound | ComeBackLater>
  /** Newest first. */
  readonly list: (page: EventPage) => Effect.Effect<ReadonlyArray<Event>, ComeBackLater>
  /**
   * Returns the event as soon as it is terminal, or as it is after `seconds` (bounded by `waitMaxSeconds`). Holds no
   * database connection while it waits.
   */
  readonly wait: (ref: OperationRef, seconds: number) => Effect.Effect<Event, NotFound | ComeBackLater>
}>()("indelible/services/Events") {}
