/** The canonical records, their history, and what is still to be projected. Every method takes and serves a batch. */
import type { Effect } from "effect"
import type { MemoryId, MemoryRef, OperationId, OperationRef, WorkspaceId } from "../domain/Ids.ts"
import type { HistoryEntry, Memory } from "../domain/Memory.ts"
import type { MemoryWrite } from "../domain/Plan.ts"
import type { ScopeFilter } from "../domain/Scope.ts"
import type { OutcomeUnknown } from "./Transaction.ts"

export interface MemoryPage {
  readonly workspaceId: WorkspaceId
  readonly scope: ScopeFilter
  /** Every pair must be in the memory's metadata. */
  readonly metadata: Memory["metadata"]
  /** Exclusive: memories older than this id. Newest first. */
  readonly before: MemoryId | null
  readonly limit: number
}

/** One (memory, version) that is not in the vector index yet. */
export interface Projection extends MemoryRef {
  readonly version: number
  readonly operationId: OperationId
  readonly attempts: number
}

/** A projection to work on, with the memory as it is now; null when a newer version took its place. */
export interface ClaimedProjection {
  readonly projection: Projection
  readonly memory: Memory | null
}

export type ProjectionStatus = "none" | "pending" | "ready" | "failing"

export interface LexicalQuery {
  readonly workspaceId: WorkspaceId
  readonly scope: ScopeFilter
  readonly metadata: Memory["metadata"]
  readonly query: string
  readonly limit: number
}

export interface MemoryStore {
  /** Locks these memories in lock order. Rows that do not exist are absent; deleted ones are there. */
  readonly lock: (refs: ReadonlyArray<MemoryRef>) => Effect.Effect<ReadonlyArray<Memory>, OutcomeUnknown>
  /**
   * Writes these versions with a history row and a pending projection each, in one statement. Guarded: an add whose id
   * exists, or a change whose memory is deleted or not one version behind, is not written; of several writes of one
   * memory the first counts. Returns what was written. Deleting erases the text of every version.
   */
  readonly write: (writes: ReadonlyArray<MemoryWrite>) => Effect.Effect<ReadonlyArray<MemoryRef>, OutcomeUnknown>
  readonly get: (refs: ReadonlyArray<MemoryRef>) => Effect.Effect<ReadonlyArray<Memory>, OutcomeUnknown>
  readonly list: (page: MemoryPage) => Effect.Effect<ReadonlyArray<Memory>, OutcomeUnknown>
  /** Every version, oldest first. */
  readonly history: (ref: MemoryRef) => Effect.Effect<ReadonlyArray<HistoryEntry>, OutcomeUnknown>
  /** Full-text matches, best first. Finds a memory from the moment it is committed, projected or not. */
  readonly lexical: (query: LexicalQuery) => Effect.Effect<ReadonlyArray<MemoryId>, OutcomeUnknown>
  /** The newest live memories of exactly this scope, newest first. */
  readonly recent: (workspaceId: WorkspaceId, scope: ScopeFilter, limit: number) => Effect.Effect<ReadonlyArray<Memory>, OutcomeUnknown>
  /**
   * Takes up to `limit` due projections away from every other projector until `leaseMs` from now, by the database
   * clock, and counts the attempt.
   */
  readonly claimProjections: (limit: number, leaseMs: number) => Effect.Effect<ReadonlyArray<ClaimedProjection>, OutcomeUnknown>
  /** Done: these are in the index, or have no place in it. */
  readonly finishProjections: (done: ReadonlyArray<Projection>) => Effect.Effect<void, OutcomeUnknown>
  /** Not done: try again in `delayMs`, by the database clock. Ignored when somebody else has claimed the row since. */
  readonly postponeProjections: (
    rows: ReadonlyArray<{ readonly projection: Projection; readonly delayMs: number }>
  ) => Effect.Effect<void, OutcomeUnknown>
  /** Where the projections of these operations stand: absent when nothing is left to do. */
  readonly projectionAttempts: (
    refs: ReadonlyArray<OperationRef>
  ) => Effect.Effect<ReadonlyArray<OperationRef & { readonly pending: number; readonly maxAttempts: number }>, OutcomeUnknown>
}

