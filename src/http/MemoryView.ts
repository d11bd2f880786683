/** A memory, and a version of one, as they are on the wire. */
import { Schema } from "effect"
import { MemoryId, OperationId } from "../domain/Ids.ts"
import { type HistoryEntry, type Memory, Metadata } from "../domain/Memory.ts"
import { ScopeFilter } from "../domain/Scope.ts"
import type { SearchHit } from "../services/Memories.ts"
import { Instant, instant } from "./Wire.ts"

const fields = {
  id: MemoryId,
  memory: Schema.String,
  scope: ScopeFilter,
  metadata: Metadata,
  /** The current version; also the `ETag`. */
  version: Schema.Int,
  /** The event of the operation that made this version. */
  source_event_id: OperationId,
  event_date: Schema.NullOr(Schema.String),
  created_at: Instant,
  updated_at: Instant
}

export const MemoryView = Schema.Struct(fields).annotate({ identifier: "Memory", description: "A live memory." })
export type MemoryView = typeof MemoryView.Type

/** A live memory on the wire. A deleted one has no text, and services never return it as live. */
export const memoryView = (memory: Memory): MemoryView => ({
  id: memory.id,
  memory: memory.text ?? "",
  scope: memory.scope,
  metadata: memory.metadata,
  version: memory.version,
  source_event_id: memory.operationId,
  event_date: memory.eventDate,
  created_at: instant(memory.createdAt),
  updated_at: instant(memory.updatedAt)
})

export const SearchHitView = Schema.Struct({
  ...fields,
  score: Schema.Finite.annotate({ description: "Reciprocal-rank fusion: 1 is the best rank in both lists." }),
  similarity: Schema.NullOr(Schema.Finite).annotate({
    description: "Cosine similarity; null when the vector index did not know the memory."
  })
}).annotate({ identifier: "SearchHit" })

export const searchHitView = (hit: SearchHit): typeof SearchHitView.Type => ({
  ...memoryView(hit.memory),
  score: hit.score,
  similarity: hit.similarity
})

export const VersionView = Schema.Struct({
  memory_id: MemoryId,
  version: Schema.Int,
  change: Schema.Literals(["add", "update", "delete"]),
  memory: Schema.NullOr(Schema.String).annotate({
    description: "The text of this version. Null for a deletion, and for every version once the memory is deleted."
  }),
  event_id: OperationId,
  created_at: Instant
}).annotate({ identifier: "MemoryVersion", description: "One version of a memory. Versions are only ever added." })

export const versionView = (entry: HistoryEntry): typeof VersionView.Type => ({
  memory_id: entry.memoryId,
  version: entry.version,
  change: entry.change,
  memory: entry.text,
  event_id: entry.operationId,
  created_at: instant(entry.at)
})

/** The entity tag of a version. */
export const etag = (version: number): string => `"${version}"`
