/** Reads: one memory, lists, history, and search that fuses vectors with words. */
import { Context, Effect, Layer } from "effect"
import { contains } from "../domain/Containment.ts"
import { fuse } from "../domain/Fusion.ts"
import type { MemoryId, MemoryRef, WorkspaceId } from "../domain/Ids.ts"
import type { HistoryEntry, Memory } from "../domain/Memory.ts"
import { type ComeBackLater, NotFound } from "../domain/Refusal.ts"
import type { ScopeFilter } from "../domain/Scope.ts"
import { againOrLater } from "./Again.ts"
import type { MemoryPage } from "./MemoryStore.ts"
import { Provider } from "./Provider.ts"
import { Settings } from "./Settings.ts"
import { Store } from "./Store.ts"
import { VectorIndex, type VectorHit } from "./VectorIndex.ts"

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
  /**
   * Reads what was committed before the call. A memory that is not projected yet is found by its words only, and shows up
   * by its meaning once it is. A deleted one is not found by either, from the commit on.
   */
  readonly search: (query: SearchQuery) => Effect.Effect<SearchAnswer, ComeBackLater>
}>()("indelible/services/Memories") {
  static readonly layer = Layer.effect(
    Memories,
    Effect.gen(function*() {
      const { memories } = yield* Store
      const provider = yield* Provider
      const index = yield* VectorIndex
      const { searchTimeout } = yield* Settings

      /** The nearest by meaning; null when vectors cannot take part. */
      const nearest = (query: SearchQuery, limit: number): Effect.Effect<ReadonlyArray<VectorHit> | null> =>
        Effect.gen(function*() {
          const [vector] = yield* provider.embed([query.query])
          return vector === undefined ? null : yield* index.search({ ...query, vector, limit })
        }).pipe(
          Effect.timeout(searchTimeout),
          Effect.catch((failure) =>
            Effect.logWarning("A search was answered by words alone").pipe(
              Effect.annotateLogs("failure", failure._tag),
              Effect.as(null)
            )
          )
        )

      const get = Effect.fn("Memories.get")(function*(ref: MemoryRef) {
        const [memory] = yield* againOrLater(memories.get([ref]))
        if (memory === undefined || memory.deleted) return yield* new NotFound({ what: "memory" })
        return memory
      })

      const list = Effect.fn("Memories.list")((page: MemoryPage) => againOrLater(memories.list(page)))

      const history = Effect.fn("Memories.history")(function*(ref: MemoryRef) {
        const entries = yield* againOrLater(memories.history(ref))
        if (entries.length === 0) return yield* new NotFound({ what: "memory" })
        return entries
      })

      const search = Effect.fn("Memories.search")(function*(query: SearchQuery) {
        // What the filter drops from the vector hits is made up for by fetching more of them.
        const filtered = Object.keys(query.metadata).length > 0
        const wanted = Math.max(candidatesMin, query.limit * overFetch)
        const limit = Math.min(candidatesMax, filtered ? wanted * overFetchFiltered : wanted)
        const [hits, words] = yield* Effect.all([
          nearest(query, limit),
          againOrLater(memories.lexical({ ...query, limit }))
        ], { concurrency: "unbounded" })
        const similarity = new Map(hits?.map((hit) => [hit.id, hit.score]))
        const ids = [...new Set([...similarity.keys(), ...words])]
        const found = yield* againOrLater(memories.get(ids.map((id) => ({ workspaceId: query.workspaceId, id }))))
        const live = new Map<MemoryId, Memory>()
        for (const memory of found) {
          if (!memory.deleted && contains(memory.metadata, query.metadata)) live.set(memory.id, memory)
        }
        const rankings = [[...similarity.keys()], words].map((ranking) => ranking.filter((id) => live.has(id)))
        const fused = fuse(rankings).slice(0, query.limit)
        return {
          semantic: hits !== null,
          hits: fused.map(({ item, score }) => ({
            memory: live.get(item)!,
            score,
            similarity: similarity.get(item) ?? null
          }))
        }
      })

      return Memories.of({ get, list, history, search })
    })
  )
}

/** How many candidates each ranking gives: for one hit that is asked for, times more under a metadata filter, and bounds. */
const overFetch = 4
const overFetchFiltered = 10
const candidatesMin = 50
const candidatesMax = 1_000
