/** How memories look on their way out of Postgres, and what it means there to be in a scope. */
import type { PgClient } from "@effect/sql-pg"
import type { Fragment } from "effect/sql/Statement"
import { refKey, type WorkspaceId } from "../domain/Ids.ts"
import { Memory } from "../domain/Memory.ts"
import { type ScopeFilter, scopeKeys } from "../domain/Scope.ts"
import { milliseconds, rowsOf } from "./PgRows.ts"
import { refColumns, table } from "./PgTable.ts"

/** The columns of `memories m`, named and typed as `domain/Memory` wants them. */
export const memoryColumns = [
  `m.workspace_id as "workspaceId"`,
  "m.id",
  "m.version",
  "m.text",
  `jsonb_strip_nulls(jsonb_build_object(${scopeKeys.map((key) => `'${key}', m.${key}`).join(", ")})) as scope`,
  "m.metadata",
  `m.event_date as "eventDate"`,
  `m.operation_id as "operationId"`,
  `${milliseconds("m.created_at")} as "createdAt"`,
  `${milliseconds("m.updated_at")} as "updatedAt"`,
  "m.deleted"
].join(", ")

export const decodeMemories = rowsOf(Memory)

/** References as a table `r (workspace_id, id)`, each once. */
export const refRows = (
  sql: PgClient.PgClient,
  refs: ReadonlyArray<{ readonly workspaceId: WorkspaceId; readonly id: string }>
): Fragment => {
  const rows = new Map(refs.map((ref) => [refKey(ref), ref]))
  return table(sql, [...rows.values()], refColumns)
}

/** The live `memories m` that a filter matches: ids that are given must be equal, absent ones may be anything. */
export const inScope = (sql: PgClient.PgClient, workspaceId: WorkspaceId, scope: ScopeFilter): Fragment =>
  sql.and([
    sql`m.workspace_id = ${workspaceId} and not m.deleted`,
    ...scopeKeys.flatMap((key) => scope[key] === undefined ? [] : [sql`${column(sql, key)} = ${scope[key]}`])
  ])

const column = (sql: PgClient.PgClient, key: typeof scopeKeys[number]) => sql.literal(`m.${key}`)
