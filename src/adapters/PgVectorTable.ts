/**
 * A table of vectors beside the memories, bound to one model. Every write is guarded by the memory's own row in the same
 * statement, and no vector of another model ever gets in.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { unit } from "../domain/Vector.ts"
import { Provider } from "../services/Provider.ts"
import type { OutcomeUnknown } from "../services/Transaction.ts"
import { VectorIndexFailure, type VectorRow } from "../services/VectorIndex.ts"
import { refRows } from "./PgMemoryRows.ts"
import { DatabaseDefect, outcome } from "./PgTransaction.ts"

/** Which index holds this database's vectors: compared one by one, or by pgvector's graph. */
export const Kind = Schema.Literals(["exact", "hnsw"])
export type Kind = typeof Kind.Type

/**
 * The vectors of this database were made by another model than the configured one, and cannot be compared with its own.
 * The message is one line for the operator.
 */
export class VectorModelMismatch extends Schema.TaggedError<VectorModelMismatch>()("VectorModelMismatch", {
  message: Schema.String
}) {}

const decodeMeta = Schema.decodeUnknownSync(Schema.Array(Schema.Struct({
  kind: Kind,
  model: Schema.String,
  dimension: Schema.Int
})))

/** What this database's vectors are bound to; null before its first start and after `reset`. */
export const bound = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  return decodeMeta(yield* sql`select kind, model, dimension from vector_meta`)[0] ?? null
})

/**
 * Forgets every vector and what they were bound to. The next start binds the database to the model that is configured
 * then, and projects every live memory again. A process that still runs with the old model can write nothing more.
 */
export const reset: Effect.Effect<void, SqlError, PgClient.PgClient> = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  yield* sql.withTransaction(Effect.gen(function*() {
    yield* sql`lock table vector_meta in access exclusive mode`
    yield* sql`delete from vector_meta`
    yield* sql`truncate memory_vectors`
    yield* sql`drop table if exists memory_vectors_hnsw`
  }))
})

/** How one kind of table is written. */
export interface VectorTable {
  readonly kind: Kind
  readonly table: "memory_vectors" | "memory_vectors_hnsw"
  /** What `encode` makes, and the SQL type that it becomes. */
  readonly parameter: "bytea" | "text"
  readonly column: "bytea" | "vector"
  readonly encode: (vector: Float32Array) => Uint8Array | string
  /** Makes the table if it does not exist. Run once at a time, whoever else starts. */
  readonly prepare: Effect.Effect<unknown, SqlError>
}

/** Binds the database to the configured model, or refuses to start; then `put`, `remove` and the check of a vector. */
export const make = Effect.fnUntraced(function*(options: VectorTable) {
  const sql = yield* PgClient.PgClient
  const provider = yield* Provider
  const { dimension, embeddingModel: model } = provider
  const table = sql.literal(options.table)

  yield* sql.withTransaction(Effect.gen(function*() {
    yield* sql`lock table vector_meta in share row exclusive mode`
    const first = yield* sql`insert into vector_meta (kind, model, dimension)
      values (${options.kind}, ${model}, ${dimension}) on conflict do nothing returning kind`
    // An index that is new to a database with memories gets them all.
    if (first.length > 0) {
      yield* sql`insert into projections (workspace_id, memory_id, version, operation_id, next_attempt_at)
        select workspace_id, id, version, operation_id, now() from memories where not deleted on conflict do nothing`
    }
    const meta = yield* bound
    if (meta?.kind !== options.kind || meta.model !== model || meta.dimension !== dimension) {
      return yield* new VectorModelMismatch({ message: mismatch(meta, { kind: options.kind, model, dimension }) })
    }
    yield* options.prepare
  }))

  /** The vector at length 1. */
  const checked = (vector: Float32Array) =>
    Effect.fromNullishOr(unit(vector, dimension)).pipe(
      Effect.mapError(() => new VectorIndexFailure({ reason: "bad_vector" }))
    )

  const put = Effect.fn("VectorIndex.put")(function*(rows: ReadonlyArray<VectorRow>) {
    if (rows.length === 0) return
    const vectors = yield* Effect.forEach(rows, (row) => checked(row.vector))
    // The memory's row stays locked against its next version and its deletion until the vector is in: a projection of
    // those comes later, and finds what to replace or remove.
    const [written] = yield* sql<{ readonly bound: number }>`with meta as materialized (
        select from vector_meta where kind = ${options.kind} and model = ${model} and dimension = ${dimension}
        for key share
      ), rows as (
        select distinct on (workspace_id, memory_id) * from unnest(
          ${rows.map((row) => row.workspaceId)}::text[],
          ${rows.map((row) => row.id)}::text[]::uuid[],
          ${rows.map((row) => row.version)}::int[],
          ${vectors.map(options.encode)}::${sql.literal(options.parameter)}[]
        ) as r(workspace_id, memory_id, version, embedding)
        order by workspace_id, memory_id, version desc
      ), live as materialized (
        select r.* from rows r join memories m on m.workspace_id = r.workspace_id and m.id = r.memory_id
        where m.version = r.version and not m.deleted and exists (select from meta)
        order by m.workspace_id, m.id for share of m
      ), written as (
        insert into ${table} as v (workspace_id, memory_id, version, embedding)
        select workspace_id, memory_id, version, embedding::${sql.literal(options.column)} from live
        order by workspace_id, memory_id
        on conflict (workspace_id, memory_id) do update set version = excluded.version, embedding = excluded.embedding
        where excluded.version > v.version
      )
      select count(*)::int4 as bound from meta`.pipe(answered("bad_vector"))
    if (written?.bound !== 1) return yield* new VectorIndexFailure({ reason: "unavailable" })
  })

  const remove = Effect.fn("VectorIndex.remove")(function*(refs: ReadonlyArray<Pick<VectorRow, "workspaceId" | "id">>) {
    if (refs.length === 0) return
    yield* sql`with locked as materialized (
        select v.workspace_id, v.memory_id from ${table} v
        join ${refRows(sql, refs)} on v.workspace_id = r.workspace_id and v.memory_id = r.id
        order by v.workspace_id, v.memory_id for update of v
      )
      delete from ${table} v using locked l where v.workspace_id = l.workspace_id and v.memory_id = l.memory_id`.pipe(
      answered("unavailable")
    )
  })

  return { checked, put, remove }
})

/**
 * A database that does not answer is `unavailable`. One that refuses the statement for good is logged, because nobody
 * repeats that away; `refusal` is what it means to the caller.
 */
export const answered = (refusal: VectorIndexFailure["reason"]) =>
<A, R>(effect: Effect.Effect<A, SqlError | OutcomeUnknown, R>): Effect.Effect<A, VectorIndexFailure, R> =>
  outcome(effect).pipe(
    Effect.catchTag("OutcomeUnknown", () => Effect.fail(new VectorIndexFailure({ reason: "unavailable" }))),
    Effect.catchDefect((defect) =>
      defect instanceof DatabaseDefect
        ? Effect.andThen(
          Effect.logError(`The vector index is out of order. ${defect.message}`),
          Effect.fail(new VectorIndexFailure({ reason: refusal }))
        )
        : Effect.die(defect)
    )
  )

type Binding = { readonly kind: Kind; readonly model: string; readonly dimension: number }

const mismatch = (found: Binding | null, wanted: Binding): string =>
  `The vectors of this database were made by ${found?.model} (${found?.dimension} dimensions, ${found?.kind} index), ` +
  `which does not fit the configured ${wanted.model} (${wanted.dimension} dimensions, ${wanted.kind} index). ` +
  `Configure that model again, or reset the index (npm run admin -- index reset) and start anew to have every memory embedded with this one.`
