/** Reads whole workspaces at one instant, as the invariants want them. For tests: it reads everything at once. */
import { PgClient } from "@effect/sql-pg"
import { Effect, Schema } from "effect"
import { MemoryId, OperationId, Sha256Hex, WorkspaceId } from "../domain/Ids.ts"
import { Authorization, Balances, TransferRow } from "../domain/Ledger.ts"
import { HistoryEntry } from "../domain/Memory.ts"
import { Operation } from "../domain/Operation.ts"
import type { Snapshot } from "../domain/Snapshot.ts"
import { decodeMemories, memoryColumns } from "./PgMemoryRows.ts"
import { milliseconds, operationColumns, rowsOf } from "./PgRows.ts"
import { outcome } from "./PgTransaction.ts"

const decodeOperations = rowsOf(Operation)
const decodeKeys = rowsOf(Schema.Struct({ workspaceId: WorkspaceId, keyHash: Sha256Hex, operationId: OperationId }))
const decodeAuthorizations = rowsOf(Authorization)
const decodeTransfers = rowsOf(TransferRow)
const decodeAccounts = rowsOf(Schema.Struct({ workspaceId: WorkspaceId, ...Balances.fields }))
const decodeHistory = rowsOf(Schema.Struct({ workspaceId: WorkspaceId, ...HistoryEntry.fields }))
const decodeVersions = rowsOf(Schema.Struct({ workspaceId: WorkspaceId, id: MemoryId, version: Schema.Int }))
const decodeRefs = rowsOf(Schema.Struct({ workspaceId: WorkspaceId, id: OperationId }))

/** The rows of the instant at which it began. The vector index has its own time, and is left out. */
export const load: Effect.Effect<Snapshot, never, PgClient.PgClient> = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const operation = sql.literal(operationColumns)
  const memory = sql.literal(memoryColumns)
  const read = sql.withTransaction(Effect.gen(function*() {
    yield* sql`set transaction isolation level repeatable read, read only`
    return {
      operations: decodeOperations(yield* sql`select ${operation} from operations o`),
      keys: decodeKeys(yield* sql`select workspace_id as "workspaceId", key_hash as "keyHash",
        operation_id as "operationId" from idempotency_keys`),
      authorizations: decodeAuthorizations(yield* sql`select workspace_id as "workspaceId",
        operation_id as "operationId", no, state, reserved, charged, price from authorizations`),
      transfers: decodeTransfers(yield* sql`select workspace_id as "workspaceId", seq, kind,
        operation_id as "operationId", authorization_no as "authorizationNo", amount, reference,
        ${sql.literal(milliseconds("at"))} as at from transfers order by seq`),
      accounts: decodeAccounts(yield* sql`select workspace_id as "workspaceId", available, reserved, consumed, issued
        from accounts`).map(({ workspaceId, ...balances }) => ({ workspaceId, balances })),
      memories: decodeMemories(yield* sql`select ${memory} from memories m`),
      history: decodeHistory(yield* sql`select workspace_id as "workspaceId", memory_id as "memoryId", version, change,
        text, operation_id as "operationId", ${sql.literal(milliseconds("at"))} as at
        from memory_history order by memory_id, version`),
      projections: decodeVersions(yield* sql`select workspace_id as "workspaceId", memory_id as id, version
        from projections`),
      plans: decodeRefs(yield* sql`select workspace_id as "workspaceId", operation_id as id from operation_plans`),
      inputs: decodeRefs(yield* sql`select workspace_id as "workspaceId", operation_id as id from operation_inputs`),
      vectors: null
    }
  }))
  return yield* Effect.orDie(outcome(read))
})
