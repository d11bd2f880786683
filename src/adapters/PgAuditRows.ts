/** The queries of an audit and what their rows become. No text leaves the database: texts are compared by fingerprint. */
import type { PgClient } from "@effect/sql-pg"
import { Option, Schema } from "effect"
import type { Fragment } from "effect/sql/Statement"
import { MemoryId, OperationId, Sha256Hex, WorkspaceId } from "../domain/Ids.ts"
import { Authorization, TransferKind, TransferRow } from "../domain/Ledger.ts"
import { HistoryEntry, Memory } from "../domain/Memory.ts"
import { Operation } from "../domain/Operation.ts"
import { memoryColumns } from "./PgMemoryRows.ts"
import { milliseconds, operationColumns } from "./PgRows.ts"
import type { Kind } from "./PgVectorTable.ts"

/** Splits rows into those that this release can read, and the keys of those that it cannot. */
export const readerOf = <S extends Schema.Decoder<unknown>>(schema: S) => {
  const decode = Schema.decodeUnknownOption(schema)
  return (rows: ReadonlyArray<object>): { readonly read: ReadonlyArray<S["Type"]>; readonly unread: ReadonlyArray<string> } => {
    const read: Array<S["Type"]> = []
    const unread: Array<string> = []
    for (const row of rows) {
      const decoded = decode(row)
      if (Option.isSome(decoded)) read.push(decoded.value)
      else unread.push(String((row as { key?: unknown }).key))
    }
    return { read, unread }
  }
}

const workspaceId = WorkspaceId
const Ref = Schema.Struct({ workspaceId, id: OperationId })

// Money is read whatever its sign, so that a rule that it breaks can be named.
export const readers = {
  operations: readerOf(Operation),
  keys: readerOf(Schema.Struct({ workspaceId, keyHash: Sha256Hex, operationId: OperationId })),
  authorizations: readerOf(Schema.Struct({ ...Authorization.fields, reserved: Schema.BigInt, charged: Schema.BigInt })),
  transfers: readerOf(TransferRow),
  made: readerOf(Schema.Struct({ workspaceId, ...HistoryEntry.fields })),
  plans: readerOf(Ref),
  inputs: readerOf(Ref),
  lanes: readerOf(Schema.Struct({ ...Operation.fields, endedAt: Schema.NullOr(Schema.Finite) })),
  memories: readerOf(Memory),
  history: readerOf(Schema.Struct({ workspaceId, ...HistoryEntry.fields })),
  projections: readerOf(Schema.Struct({
    workspaceId,
    id: MemoryId,
    version: Schema.Int,
    attempts: Schema.Int,
    nextAttemptAt: Schema.Finite
  })),
  vectors: readerOf(Schema.Struct({ workspaceId, id: MemoryId, version: Schema.Int }))
}

export const decodeTotals = Schema.decodeUnknownSync(Schema.Array(Schema.Struct({
  available: Schema.BigInt,
  reserved: Schema.BigInt,
  consumed: Schema.BigInt,
  issued: Schema.BigInt
})))
/** Sums come as text: they may be larger than any one of their parts. */
const Sum = Schema.String.check(Schema.isPattern(/^-?\d+$/, { message: "must be a whole number" }))
export const decodeMoved = Schema.decodeUnknownSync(Schema.Array(Schema.Struct({ kind: TransferKind, amount: Sum })))
export const decodeHeld = Schema.decodeUnknownSync(Schema.Tuple([Schema.Struct({ held: Sum })]))
export const decodeKeys = Schema.decodeUnknownSync(Schema.Array(Schema.Struct({ keyHash: Sha256Hex, operationId: OperationId })))

/** What rows of operations are read with, each ordered by the operation. */
export const operationQueries = (sql: PgClient.PgClient, workspace: string) => {
  const of = (columns: string, table: string): Fragment =>
    sql`select operation_id::text as key, workspace_id as "workspaceId", ${sql.literal(columns)} from ${sql(table)}
      where workspace_id = ${workspace} and operation_id is not null order by operation_id`
  const operationId = `operation_id as "operationId"`
  return {
    operations: sql`select o.id::text as key, ${sql.literal(operationColumns)} from operations o
      where o.workspace_id = ${workspace} order by o.id`,
    keys: of(`key_hash as "keyHash", ${operationId}`, "idempotency_keys"),
    authorizations: of(`${operationId}, no, state, reserved, charged, price`, "authorizations"),
    transfers: of(
      `seq, kind, ${operationId}, authorization_no as "authorizationNo", amount, reference, ${milliseconds("at")} as at`,
      "transfers"
    ),
    made: of(
      `memory_id as "memoryId", version, change, null as text, ${operationId}, ${milliseconds("at")} as at`,
      "memory_history"
    ),
    plans: of("operation_id as id", "operation_plans"),
    inputs: of("operation_id as id", "operation_inputs")
  }
}

/**
 * Of each lane with work: the first that is live, all that are ready or running, and those that share a place. A lane
 * with a million operations is a few rows.
 */
export const laneQuery = (sql: PgClient.PgClient, workspace: string, overdueMs: number): Fragment =>
  sql`select o.lane as key, ${sql.literal(operationColumns)}, ${sql.literal(milliseconds("e.ended_at"))} as "endedAt"
    from (
      select *, row_number() over lane as place, lag(seq) over lane as previous, lead(seq) over lane as following
      from operations where workspace_id = ${workspace} and state in ('pending', 'running')
      window lane as (partition by lane order by seq)
    ) o
    left join (
      select lane, max(completed_at) as ended_at from operations
      where workspace_id = ${workspace} and completed_at > now() - ${overdueMs}::float8 * interval '1 millisecond'
      group by lane
    ) e on e.lane = o.lane
    where o.place = 1 or o.ready or o.state = 'running' or o.seq = o.previous or o.seq = o.following
    order by o.lane, o.seq`

const fingerprint = "encode(sha256(convert_to(text, 'UTF8')), 'hex') as text"

/** What rows of memories are read with, each ordered by the memory. Null: this database has no vectors yet. */
export const memoryQueries = (sql: PgClient.PgClient, workspace: string, kind: Kind | null) => ({
  memories: sql`select m.id::text as key, ${sql.literal(memoryColumns)} from (
      select workspace_id, id, version, ${sql.literal(fingerprint)}, user_id, agent_id, run_id, app_id, metadata,
        event_date, operation_id, created_at, updated_at, deleted
      from memories where workspace_id = ${workspace}
    ) m order by m.id`,
  history: sql`select memory_id::text as key, workspace_id as "workspaceId", memory_id as "memoryId", version, change,
      ${sql.literal(fingerprint)}, operation_id as "operationId", ${sql.literal(milliseconds("at"))} as at
    from memory_history where workspace_id = ${workspace} order by memory_id, version`,
  projections: sql`select memory_id::text as key, workspace_id as "workspaceId", memory_id as id, version, attempts,
      ${sql.literal(milliseconds("next_attempt_at"))} as "nextAttemptAt"
    from projections where workspace_id = ${workspace} order by memory_id, version`,
  vectors: sql`select memory_id::text as key, workspace_id as "workspaceId", memory_id as id, version
    from ${sql(kind === "hnsw" ? "memory_vectors_hnsw" : "memory_vectors")}
    where workspace_id = ${workspace} and ${kind !== null} order by memory_id`
})

