/** Reads: one memory, lists, history, and search that fuses vectors with words. */
import { Context, type Effect } from "effect"
import type { MemoryRef, WorkspaceId } from "../domain/Ids.ts"
import type { HistoryEntry, Memory } from "../domain/Memory.ts"
import type { ComeBackLater, NotFound } from "../domain/Refusal.ts"
import type { ScopeFilter } from "../domain/Scope.ts"
import type { MemoryPage } from "./MemoryStore.ts"

export interface SearchQuery {
  readonly workspaceId: WorkspaceId
  readonly scope: ScopeFilter
  readonly metadata: Memory["metadata"]
  readonly query: string
  readonly limit: number
}

export interface SearchHit {
  readonly memory: Memory
  /** Reciprocal-rank fusion, scaled so that the best rank in both lists is 1. */
  readonly score: number
  /** Cosine similarity, when the vector index knew the memory. */
  readonly similarity: number | null
}

export interface SearchAnswer {
  readonly hits: ReadonlyArray<SearchHit>
  /** False when vectors did not take part (provider or index down): the answer is lexical only. */
  readonly semantic: boolean
}

export class Memories extends Context.Service<Memories, {
  /** A deleted memory is not found. */
  readonly get: (ref: MemoryRef) => Effect.Effect<Memory, NotFound | ComeBackLater>
  /** Newest first, live ones only. */
  readonly list: (page: MemoryPage) => Effect.Effect<ReadonlyArray<Memory>, ComeBackLater>
  /** Every version, oldest first; also of a deleted memory, without texts. */
  readonly history: (ref: MemoryRef) => Effect.Effect<ReadonlyArray<HistoryEntry>, NotFound | ComeBackLater>
  /** Reads what was committed before the call, projected or not. */
  readonly search: (query: SearchQuery) => Effect.Effect<SearchAnswer, ComeBackLater>
}>()("indelible/services/Memories") {}
