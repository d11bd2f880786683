/** The projection of memories into vectors. Derived, rebuildable, and never ahead of the record. */
import { Context, type Effect, Schema } from "effect"
import type { MemoryId, MemoryRef, WorkspaceId } from "../domain/Ids.ts"
import type { ScopeFilter } from "../domain/Scope.ts"

/** The index did not take the write or answer the search. Retry: every write is idempotent. */
export class VectorIndexFailure extends Schema.TaggedError<VectorIndexFailure>()("VectorIndexFailure", {
  reason: Schema.Literals(["unavailable", "bad_vector"])
}) {}

export interface VectorRow extends MemoryRef {
  readonly version: number
  readonly vector: Float32Array
}

export interface VectorHit {
  readonly id: MemoryId
  /** Cosine similarity, -1 to 1. */
  readonly score: number
}

export class VectorIndex extends Context.Service<VectorIndex, {
  /**
   * Puts these versions in. Checks count, dimension and finiteness first. Guarded in the same statement: an older
   * version never replaces a newer one, and a deleted memory never returns.
   */
  readonly put: (rows: ReadonlyArray<VectorRow>) => Effect.Effect<void, VectorIndexFailure>
  /** Takes these memories out. Idempotent. */
  readonly remove: (refs: ReadonlyArray<MemoryRef>) => Effect.Effect<void, VectorIndexFailure>
  /** The nearest live memories within a scope, best first. */
  readonly search: (query: {
    readonly workspaceId: WorkspaceId
    readonly scope: ScopeFilter
    readonly vector: Float32Array
    readonly limit: number
  }) => Effect.Effect<ReadonlyArray<VectorHit>, VectorIndexFailure>
}>()("indelible/services/VectorIndex") {}
