/** What became durable at one instant of the simulated database, and for whom: all that oracles go by. */
import type { InferInput } from "../domain/Command.ts"
import type { OperationRef, WorkspaceId } from "../domain/Ids.ts"
import type { Authorization, TransferRow } from "../domain/Ledger.ts"
import type { Memory } from "../domain/Memory.ts"
import type { Operation } from "../domain/Operation.ts"
import type { Plan } from "../domain/Plan.ts"
import type { HistoryRecord } from "../domain/Snapshot.ts"
import type { ApiKey } from "../services/ApiKeys.ts"
import type { AccountRow } from "../services/Ledger.ts"
import type { Projection } from "../services/MemoryStore.ts"
import type { KeyRow } from "../services/OperationStore.ts"

/** The rows of every table, as the domain and the ports know them. */
export interface Rows {
  readonly workspaces: { readonly id: WorkspaceId }
  readonly operations: Operation
  readonly keys: KeyRow
  readonly inputs: OperationRef & { readonly input: InferInput }
  readonly plans: OperationRef & { readonly plan: Plan }
  readonly outbox: OperationRef & { readonly seq: number; readonly state: Operation["state"]; readonly at: number }
  readonly memories: Memory
  readonly history: HistoryRecord
  /** `dueAt` in milliseconds of the database clock. */
  readonly projections: Projection & { readonly dueAt: number }
  readonly accounts: AccountRow
  readonly authorizations: Authorization
  readonly transfers: TransferRow
  readonly fairClock: { readonly value: number }
  readonly apiKeys: ApiKey & { readonly secretHash: string }
  readonly vectors: { readonly workspaceId: WorkspaceId; readonly id: Memory["id"]; readonly version: number; readonly deleted: boolean; readonly vector: Float32Array }
}

export type TableName = keyof Rows

/** One row before and after: null where it did not exist, or does no more. Rows are replaced, never changed. */
export type Change = {
  readonly [Name in TableName]: {
    readonly table: Name
    readonly key: string
    readonly before: Rows[Name] | null
    readonly after: Rows[Name] | null
  }
}[TableName]

export interface Commit {
  /** Milliseconds since the epoch, by the database clock. */
  readonly at: number
  /** The process incarnation whose transaction it was. */
  readonly by: string
  /** Virtual time, in milliseconds, at which the last request of this transaction left its process. */
  readonly sentAt: number
  readonly changes: ReadonlyArray<Change>
}

/** Committed rows, by key. */
export type Committed = { readonly [Name in TableName]: ReadonlyMap<string, Rows[Name]> }
