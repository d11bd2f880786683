/** The reads of `OperationStore` on Postgres that lock nothing: keys, events, and what repair looks for. */
import type { PgClient } from "@effect/sql-pg"
import { Effect, Schema } from "effect"
import { Lane, OperationId, type OperationRef, Sha256Hex, WorkspaceId } from "../domain/Ids.ts"
import { Operation } from "../domain/Operation.ts"
import { scopeKeys } from "../domain/Scope.ts"
import type { OperationStore } from "../services/OperationStore.ts"
import { operationColumns, rowsOf } from "./PgRows.ts"
import { type Columns, refColumns, table } from "./PgTable.ts"
import { outcome } from "./PgTransaction.ts"

const decodeOperations = rowsOf(Operation)
const decodeKeys = rowsOf(Schema.Struct({
  workspaceId: WorkspaceId,
  keyHash: Sha256Hex,
  commandVersion: Schema.Int,
  commandHash: Sha256Hex,
  operationId: OperationId
}))
const decodeLanes = rowsOf(Schema.Struct({
  workspaceId: WorkspaceId,
  lane: Lane,
  ready: Schema.Boolean
}))

const keyColumns: Columns<{ readonly workspaceId: WorkspaceId; readonly keyHash: Sha256Hex }> = {
  workspace_id: ["text", (r) => r.workspaceId],
  key_hash: ["text", (r) => r.keyHash]
}

type Reads = Pick<
  OperationStore,
  "findKeys" | "get" | "list" | "withInput" | "stalledLanes" | "expiredInputs" | "pruneAnnouncements"
>

export const makeReads = (sql: PgClient.PgClient): Reads => {
  const columns = sql.literal(operationColumns)
  return {
    findKeys: (keys) =>
      keys.length === 0
        ? Effect.succeed([])
        : outcome(sql`select k.workspace_id as "workspaceId", k.key_hash as "keyHash",
            k.command_version as "commandVersion", k.command_hash as "commandHash", k.operation_id as "operationId"
          from idempotency_keys k
          join ${table(sql, keys, keyColumns)}
            on k.workspace_id = r.workspace_id and k.key_hash = r.key_hash`).pipe(Effect.map(decodeKeys)),

    get: (ref) =>
      outcome(sql`select ${columns} from operations o
        where o.workspace_id = ${ref.workspaceId} and o.id = ${ref.id}::uuid`).pipe(
        Effect.map((rows) => decodeOperations(rows)[0] ?? null)
      ),

    list: (page) =>
      outcome(sql`select ${columns} from operations o where ${
        sql.and([
          sql`o.workspace_id = ${page.workspaceId}`,
          ...(page.state === null ? [] : [sql`o.state = ${page.state}`]),
          ...(page.kind === null ? [] : [sql`o.kind = ${page.kind}`]),
          ...(page.before === null ? [] : [sql`o.id < ${page.before}::uuid`]),
          ...(scopeKeys.some((key) => page.scope[key] !== undefined) ? [sql`o.scope @> ${sql.json(page.scope)}`] : [])
        ])
      } order by o.id desc limit ${page.limit}`).pipe(Effect.map(decodeOperations)),

    withInput: (refs) =>
      outcome(sql<OperationRef>`select i.workspace_id as "workspaceId", i.operation_id as id from operation_inputs i
        join ${table(sql, refs, refColumns)} on i.workspace_id = r.workspace_id and i.operation_id = r.id`),

    // A loose scan: one index descent for each lane, however long the lane is.
    stalledLanes: (after, scan) =>
      outcome(sql`with recursive heads as (
          (select workspace_id, lane, ready from operations
            where state in ('pending', 'running')
              and (workspace_id, lane) > (${after?.workspaceId ?? ""}, ${after?.lane ?? ""})
            order by workspace_id, lane, seq limit 1)
          union all
          select n.workspace_id, n.lane, n.ready from heads h cross join lateral (
            select o.workspace_id, o.lane, o.ready from operations o
            where o.state in ('pending', 'running') and (o.workspace_id, o.lane) > (h.workspace_id, h.lane)
            order by o.workspace_id, o.lane, o.seq limit 1
          ) n
        )
        select workspace_id as "workspaceId", lane, ready from heads limit ${scan}`).pipe(
        Effect.map((rows) => {
          const heads = decodeLanes(rows).map(({ ready, ...lane }) => ({ ready, lane }))
          return {
            stalled: heads.filter(({ ready }) => !ready).map(({ lane }) => lane),
            next: heads.length < scan ? null : heads.at(-1)?.lane ?? null
          }
        })
      ),

    expiredInputs: (ageMs, limit) =>
      outcome(sql<OperationRef>`select o.workspace_id as "workspaceId", o.id from operations o
        where o.state = 'failed' and o.completed_at < statement_timestamp() - ${ageMs}::float8 * interval '1 millisecond'
          and exists (select from operation_inputs i where i.workspace_id = o.workspace_id and i.operation_id = o.id)
        order by o.completed_at limit ${limit}`),

    pruneAnnouncements: (ageMs, limit) =>
      outcome(sql`delete from outbox where (workspace_id, seq) in (
          select workspace_id, seq from outbox where at < statement_timestamp() - ${ageMs}::float8 * interval '1 millisecond'
          limit ${limit}) returning 1`).pipe(Effect.map((rows) => rows.length))
  }
}
