/**
 * Picks the vector index: pgvector where this database has it, else the exact one, and says which in one line. A database
 * keeps the kind that it began with until its index is reset.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import { Provider } from "../services/Provider.ts"
import * as PgVectorIndex from "./PgVectorIndex.ts"
import * as PgVectorIndexHnsw from "./PgVectorIndexHnsw.ts"
import * as PgVectorTable from "./PgVectorTable.ts"

export const layer = Layer.unwrap(Effect.gen(function*() {
  const { dimension } = yield* Provider
  const missing = yield* pgvector(dimension)
  const kind = (yield* PgVectorTable.bound)?.kind ?? (missing === null ? "hnsw" : "exact")
  const why = missing ?? (kind === "exact" ? "this database began without pgvector; reset the index to use it" : null)
  yield* Effect.logInfo(
    kind === "hnsw" ? "Searching vectors with pgvector (HNSW)" : `Searching vectors exactly, within the asked scope: ${why}`
  )
  return kind === "hnsw" ? PgVectorIndexHnsw.layer : PgVectorIndex.layer
}))

/** Why pgvector cannot be used here; null when it can. Installs the extension where this role may. */
const pgvector = Effect.fnUntraced(function*(dimension: number) {
  const sql = yield* PgClient.PgClient
  if (dimension > PgVectorIndexHnsw.dimensionMax) {
    return `pgvector's index ends at ${PgVectorIndexHnsw.dimensionMax} dimensions`
  }
  const available = yield* sql`select from pg_available_extensions where name = 'vector'`
  if (available.length === 0) return "this database has no pgvector"
  yield* Effect.ignore(sql`create extension if not exists vector`)
  const [installed] = yield* sql<{ readonly recent: boolean }>`
    select string_to_array(regexp_replace(extversion, '[^0-9.].*$', ''), '.')::int[] >= array[0, 8] as recent
    from pg_extension where extname = 'vector'`
  if (installed === undefined) return "this role may not install pgvector; a superuser may (create extension vector)"
  return installed.recent ? null : "this pgvector is older than 0.8"
})
