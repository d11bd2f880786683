/** Where each kind of row that oracles look at comes from in the schema: its table, its key and its columns. */
import { Schema } from "effect"
import { memoryColumns } from "../../adapters/PgMemoryRows.ts"
import { milliseconds, operationColumns, rowsOf } from "../../adapters/PgRows.ts"
import { InferInput } from "../../domain/Command.ts"
import { MemoryId, OperationId, Sha256Hex, WorkspaceId } from "../../domain/Ids.ts"
import { Authorization, Balances, TransferRow } from "../../domain/Ledger.ts"
import { HistoryEntry, Memory } from "../../domain/Memory.ts"
import { Operation, OperationState } from "../../domain/Operation.ts"
import { Plan } from "../../domain/Plan.ts"
import { ApiKey } from "../../services/ApiKeys.ts"
import type { Rows, TableName } from "../Commit.ts"

export interface Source<Name extends TableName = TableName> {
  readonly name: Name
  readonly table: string
  /** What its key is made of, in the order of the key. */
  readonly key: ReadonlyArray<string>
  /** Of the table as `alias`. */
  readonly alias: string
  readonly columns: string
  readonly decode: (rows: unknown) => ReadonlyArray<Rows[Name]>
}

/** The key of the row in a table that has one. */
export const singleton = "singleton"

const source = <Name extends TableName>(
  name: Name,
  table: string,
  key: ReadonlyArray<string>,
  columns: string,
  decode: (rows: unknown) => ReadonlyArray<Rows[Name]>,
  alias = "t"
): Source<Name> => ({ name, table, key, alias, columns, decode })

const ofOperation = `workspace_id as "workspaceId", operation_id as id`
const byOperation = ["workspace_id", "operation_id"]
const byId = ["workspace_id", "id"]

const decodeAccounts = rowsOf(Schema.Struct({ workspaceId: WorkspaceId, ...Balances.fields, fairTime: Schema.Finite }))
const decodeVectors = rowsOf(Schema.Struct({
  workspaceId: WorkspaceId,
  id: MemoryId,
  version: Schema.Int,
  embedding: Schema.Uint8Array
}))

/** A vector in a buffer of its own: what the wire gives is a part of something larger. */
const floats = (bytes: Uint8Array): Float32Array => new Float32Array(Uint8Array.from(bytes).buffer)

export const sources: ReadonlyArray<Source> = [
  source("workspaces", "workspaces", ["workspace_id"], "workspace_id as id", rowsOf(Schema.Struct({ id: WorkspaceId }))),
  source("operations", "operations", byId, operationColumns, rowsOf(Operation), "o"),
  source(
    "keys",
    "idempotency_keys",
    ["workspace_id", "key_hash"],
    `workspace_id as "workspaceId", key_hash as "keyHash", command_version as "commandVersion",
      command_hash as "commandHash", operation_id as "operationId"`,
    rowsOf(Schema.Struct({
      workspaceId: WorkspaceId,
      keyHash: Sha256Hex,
      commandVersion: Schema.Int,
      commandHash: Sha256Hex,
      operationId: OperationId
    }))
  ),
  source("inputs", "operation_inputs", byOperation, `${ofOperation}, input`, rowsOf(Schema.Struct({
    workspaceId: WorkspaceId,
    id: OperationId,
    input: InferInput
  }))),
  source("plans", "operation_plans", byOperation, `${ofOperation}, plan`, rowsOf(Schema.Struct({
    workspaceId: WorkspaceId,
    id: OperationId,
    plan: Plan
  }))),
  source(
    "outbox",
    "outbox",
    ["workspace_id", "seq"],
    `${ofOperation}, seq::float8 as seq, state, ${milliseconds("at")} as at`,
    rowsOf(Schema.Struct({
      workspaceId: WorkspaceId,
      id: OperationId,
      seq: Schema.Finite,
      state: OperationState,
      at: Schema.Finite
    }))
  ),
  source("memories", "memories", byId, memoryColumns, rowsOf(Memory), "m"),
  source(
    "history",
    "memory_history",
    ["workspace_id", "memory_id", "version"],
    `workspace_id as "workspaceId", memory_id as "memoryId", version, change, text, operation_id as "operationId",
      ${milliseconds("at")} as at`,
    rowsOf(Schema.Struct({ workspaceId: WorkspaceId, ...HistoryEntry.fields }))
  ),
  source(
    "projections",
    "projections",
    ["workspace_id", "memory_id", "version"],
    `workspace_id as "workspaceId", memory_id as id, version, operation_id as "operationId", attempts,
      date_part('epoch', next_attempt_at) * 1000 as "dueAt"`,
    rowsOf(Schema.Struct({
      workspaceId: WorkspaceId,
      id: MemoryId,
      version: Schema.Int,
      operationId: OperationId,
      attempts: Schema.Int,
      dueAt: Schema.Finite
    }))
  ),
  source(
    "accounts",
    "accounts",
    ["workspace_id"],
    `workspace_id as "workspaceId", available, reserved, consumed, issued, fair_time::float8 as "fairTime"`,
    (rows) => decodeAccounts(rows).map(({ fairTime, workspaceId, ...balances }) => ({ workspaceId, balances, fairTime }))
  ),
  source(
    "authorizations",
    "authorizations",
    ["workspace_id", "operation_id", "no"],
    `workspace_id as "workspaceId", operation_id as "operationId", no, state, reserved, charged, price`,
    rowsOf(Authorization)
  ),
  source(
    "transfers",
    "transfers",
    ["workspace_id", "seq"],
    `workspace_id as "workspaceId", seq, kind, operation_id as "operationId", authorization_no as "authorizationNo",
      amount, reference, ${milliseconds("at")} as at`,
    rowsOf(TransferRow)
  ),
  source("fairClock", "fair_clock", [], "value::float8 as value", rowsOf(Schema.Struct({ value: Schema.Finite }))),
  source(
    "apiKeys",
    "api_keys",
    byId,
    `workspace_id as "workspaceId", id, label, scopes, ${milliseconds("created_at")} as "createdAt",
      ${milliseconds("revoked_at")} as "revokedAt", secret_hash as "secretHash"`,
    rowsOf(Schema.Struct({ ...ApiKey.fields, secretHash: Schema.String }))
  ),
  source(
    "vectors",
    "memory_vectors",
    ["workspace_id", "memory_id"],
    `workspace_id as "workspaceId", memory_id as id, version, embedding`,
    (rows) => decodeVectors(rows).map(({ embedding, ...row }) => ({ ...row, deleted: false, vector: floats(embedding) }))
  )
] as ReadonlyArray<Source>

/** The key of a row of this alias, in SQL, as a text. */
export const keyOf = ({ key }: Source, alias: string): string =>
  key.length === 0 ? `'${singleton}'` : key.map((column) => `${alias}.${column}::text`).join(" || '/' || ")
