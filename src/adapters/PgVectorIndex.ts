/**
 * `VectorIndex` on any Postgres: compares every vector of the asked scope, so that what it finds is exact. Of a scope with
 * more than `exactSearchMax` memories the newest are compared; pgvector is for those.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Schema } from "effect"
import { MemoryId } from "../domain/Ids.ts"
import { best, dot } from "../domain/Vector.ts"
import { Provider } from "../services/Provider.ts"
import { Settings } from "../services/Settings.ts"
import { VectorIndex } from "../services/VectorIndex.ts"
import { inScope } from "./PgMemoryRows.ts"
import * as PgVectorTable from "./PgVectorTable.ts"

const decodeHits = Schema.decodeUnknownSync(Schema.Array(Schema.Struct({ id: MemoryId, score: Schema.Finite })))

export const layer = Layer.effect(
  VectorIndex,
  Effect.gen(function*() {
    const sql = yield* PgClient.PgClient
    const { dimension } = yield* Provider
    const { exactSearchMax } = yield* Settings
    const { checked, put, remove } = yield* PgVectorTable.make({
      kind: "exact",
      table: "memory_vectors",
      parameter: "bytea",
      column: "bytea",
      encode: toBytes,
      prepare: Effect.void
    })

    // A vector that is a version behind still finds its memory, until the projector has caught up.
    const search: VectorIndex["Service"]["search"] = Effect.fn("VectorIndex.search")(function*(query) {
      const wanted = yield* checked(query.vector)
      const rows = yield* sql<{ readonly id: string; readonly embedding: Uint8Array }>`
        select m.id, v.embedding from memories m
        join memory_vectors v on v.workspace_id = m.workspace_id and v.memory_id = m.id
        where ${inScope(sql, query.workspaceId, query.scope)}
        order by m.id desc limit ${exactSearchMax}`.pipe(PgVectorTable.answered("unavailable"))
      const hits = best<string>(query.limit)
      const vector = new Float32Array(dimension)
      const bytes = new Uint8Array(vector.buffer)
      for (const row of rows) {
        bytes.set(row.embedding)
        hits.offer(row.id, dot(vector, wanted))
      }
      return decodeHits(hits.kept.map(({ item, score }) => ({ id: item, score })))
    })

    return VectorIndex.of({ put, remove, search })
  })
)

/** As the machine has them: little endian, on every machine that runs Node. */
const toBytes = (vector: Float32Array): Uint8Array =>
  new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength)
