/**
 * `VectorIndex` on pgvector 0.8 or newer. Small scopes are compared one by one inside the database, large ones by walking
 * the HNSW graph past everybody else's vectors until enough of the scope are found.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Schema } from "effect"
import { MemoryId } from "../domain/Ids.ts"
import { Provider } from "../services/Provider.ts"
import { Settings } from "../services/Settings.ts"
import { Transaction } from "../services/Transaction.ts"
import { VectorIndex } from "../services/VectorIndex.ts"
import { inScope } from "./PgMemoryRows.ts"
import { outcome } from "./PgTransaction.ts"
import { answered, make } from "./PgVectorTable.ts"

/** The most dimensions that pgvector's index on `vector` takes. */
export const dimensionMax = 2_000
/** How many vectors a walk of the graph may look at, and how many it keeps in mind (pgvector's own bound). */
const scanMax = 100_000
const candidatesMax = 1_000

const decodeCount = Schema.decodeUnknownSync(Schema.Tuple([Schema.Struct({ count: Schema.Int })]))
const decodeHits = Schema.decodeUnknownSync(Schema.Array(Schema.Struct({ id: MemoryId, score: Schema.Finite })))

export const layer = Layer.effect(
  VectorIndex,
  Effect.gen(function*() {
    const sql = yield* PgClient.PgClient
    const transaction = yield* Transaction
    const { dimension } = yield* Provider
    const { exactSearchMax } = yield* Settings
    const { checked, put, remove } = yield* make({
      kind: "hnsw",
      table: "memory_vectors_hnsw",
      parameter: "text",
      column: "vector",
      encode: toText,
      prepare: Effect.gen(function*() {
        yield* sql`create table if not exists memory_vectors_hnsw (
          workspace_id text not null,
          memory_id uuid not null,
          version integer not null,
          embedding vector(${sql.literal(String(dimension))}) not null,
          primary key (workspace_id, memory_id)
        )`
        yield* sql`create index if not exists memory_vectors_hnsw_nearest on memory_vectors_hnsw
          using hnsw (embedding vector_cosine_ops)`
      })
    })

    const search: VectorIndex["Service"]["search"] = Effect.fn("VectorIndex.search")(function*(query) {
      const wanted = toText(yield* checked(query.vector))
      const scope = inScope(sql, query.workspaceId, query.scope)
      const similarity = sql`1 - (v.embedding <=> ${wanted}::vector)`
      const [{ count }] = decodeCount(yield* sql`select count(*)::int4 as count
        from (select from memories m where ${scope} limit ${exactSearchMax + 1}) counted`.pipe(answered("unavailable")))
      // Ordered by similarity and not by distance, which the planner would look up in the graph. Neither is prepared: the
      // size of the scope decides how it is searched.
      const each = sql`select m.id, ${similarity} as score from memories m
        join memory_vectors_hnsw v on v.workspace_id = m.workspace_id and v.memory_id = m.id
        where ${scope} order by score desc, m.id desc limit ${query.limit}`.unprepared
      const walk = transaction.run(Effect.andThen(
        outcome(sql`select set_config('hnsw.iterative_scan', 'strict_order', true),
          set_config('hnsw.max_scan_tuples', ${String(scanMax)}, true),
          set_config('hnsw.ef_search', ${String(Math.max(1, Math.min(query.limit, candidatesMax)))}, true)`),
        outcome(sql`select m.id, ${similarity} as score from memory_vectors_hnsw v
          join memories m on m.workspace_id = v.workspace_id and m.id = v.memory_id
          where ${scope} order by v.embedding <=> ${wanted}::vector limit ${query.limit}`.unprepared)
      ))
      return decodeHits(yield* (count <= exactSearchMax ? each : walk).pipe(answered("unavailable")))
    })

    return VectorIndex.of({ put, remove, search })
  })
)

const toText = (vector: Float32Array): string => `[${vector.join(",")}]`
