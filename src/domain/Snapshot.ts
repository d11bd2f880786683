/** The rows of a moment, and the slices of them that have to agree: what the invariants are held against. */
import type { LaneRef, MemoryRef, OperationId, OperationRef, Sha256Hex, WorkspaceId } from "./Ids.ts"
import { refKey } from "./Ids.ts"
import type { Authorization, Balances, Transfer } from "./Ledger.ts"
import type { HistoryEntry, Memory } from "./Memory.ts"
import type { Operation } from "./Operation.ts"

export interface KeyRecord {
  readonly workspaceId: WorkspaceId
  readonly keyHash: Sha256Hex
  readonly operationId: OperationId
}

export interface AccountRecord {
  readonly workspaceId: WorkspaceId
  readonly balances: Balances
}

export interface HistoryRecord extends HistoryEntry {
  readonly workspaceId: WorkspaceId
}

/** A (memory, version) that waits to be projected. */
export interface ProjectionRecord extends MemoryRef {
  readonly version: number
}

/** A (memory, version) as the vector index has it. */
export interface VectorRecord extends MemoryRef {
  readonly version: number
}

/** Whole workspaces at one instant. */
export interface Snapshot {
  readonly operations: ReadonlyArray<Operation>
  readonly keys: ReadonlyArray<KeyRecord>
  readonly authorizations: ReadonlyArray<Authorization>
  readonly transfers: ReadonlyArray<Transfer>
  readonly accounts: ReadonlyArray<AccountRecord>
  readonly memories: ReadonlyArray<Memory>
  readonly history: ReadonlyArray<HistoryRecord>
  readonly projections: ReadonlyArray<ProjectionRecord>
  /** The operations whose plan, or input, is kept. */
  readonly plans: ReadonlyArray<OperationRef>
  readonly inputs: ReadonlyArray<OperationRef>
  /** Null when the index was not read at the same instant: nothing is then said about it. */
  readonly vectors: ReadonlyArray<VectorRecord> | null
}

/** One operation and all that refers to it. `operation` is null when something refers to one that does not exist. */
export interface OperationSlice {
  readonly ref: OperationRef
  readonly operation: Operation | null
  readonly keys: ReadonlyArray<KeyRecord>
  readonly authorizations: ReadonlyArray<Authorization>
  readonly transfers: ReadonlyArray<Transfer>
  /** The versions that it made. */
  readonly history: ReadonlyArray<HistoryEntry>
  readonly hasPlan: boolean
  readonly hasInput: boolean
}

/** Holds what has to be true of an operation against its slice. */
export const ofOperation =
  <A>(check: (operation: Operation, slice: OperationSlice) => ReadonlyArray<A>) =>
  (slice: OperationSlice): ReadonlyArray<A> => slice.operation === null ? [] : check(slice.operation, slice)

/** One memory and all that refers to it. */
export interface MemorySlice {
  readonly ref: MemoryRef
  readonly memory: Memory | null
  readonly history: ReadonlyArray<HistoryEntry>
  /** The versions that wait to be projected. */
  readonly projections: ReadonlyArray<number>
  /** The versions in the vector index; null when it was not read. */
  readonly vectors: ReadonlyArray<number> | null
}

/** The operations of one lane: at least all that are not terminal. */
export interface LaneSlice {
  readonly ref: LaneRef
  readonly operations: ReadonlyArray<Operation>
}

/** The money and the keys of one workspace. */
export interface WorkspaceSlice {
  readonly workspaceId: WorkspaceId
  readonly accounts: ReadonlyArray<AccountRecord>
  readonly authorizations: ReadonlyArray<Authorization>
  readonly transfers: ReadonlyArray<Transfer>
  readonly keys: ReadonlyArray<KeyRecord>
}

export const operationSlices = (snapshot: Snapshot): ReadonlyArray<OperationSlice> => {
  const spending = snapshot.transfers.flatMap(({ operationId, workspaceId }) =>
    operationId === null ? [] : [{ workspaceId, operationId }]
  )
  const referredTo: ReadonlyArray<OperationRef> = [
    ...snapshot.operations,
    ...snapshot.plans,
    ...snapshot.inputs,
    ...[...snapshot.keys, ...snapshot.authorizations, ...spending, ...snapshot.history].map(operationOf)
  ]
  const operations = Map.groupBy(snapshot.operations, refKey)
  const keys = Map.groupBy(snapshot.keys, (row) => refKey(operationOf(row)))
  const authorizations = Map.groupBy(snapshot.authorizations, (row) => refKey(operationOf(row)))
  const transfers = Map.groupBy(snapshot.transfers, (row) => `${row.workspaceId}/${row.operationId}`)
  const history = Map.groupBy(snapshot.history, (row) => refKey(operationOf(row)))
  const plans = Map.groupBy(snapshot.plans, refKey)
  const inputs = Map.groupBy(snapshot.inputs, refKey)
  return distinct(referredTo).map(([key, { id, workspaceId }]) => ({
    ref: { workspaceId, id },
    operation: operations.get(key)?.[0] ?? null,
    keys: keys.get(key) ?? [],
    authorizations: authorizations.get(key) ?? [],
    transfers: transfers.get(key) ?? [],
    history: history.get(key) ?? [],
    hasPlan: plans.has(key),
    hasInput: inputs.has(key)
  }))
}

export const memorySlices = (snapshot: Snapshot): ReadonlyArray<MemorySlice> => {
  const referredTo: ReadonlyArray<MemoryRef> = [
    ...snapshot.memories,
    ...snapshot.projections,
    ...(snapshot.vectors ?? []),
    ...snapshot.history.map(memoryOf)
  ]
  const memories = Map.groupBy(snapshot.memories, refKey)
  const history = Map.groupBy(snapshot.history, (row) => refKey(memoryOf(row)))
  const projections = Map.groupBy(snapshot.projections, refKey)
  const vectors = Map.groupBy(snapshot.vectors ?? [], refKey)
  return distinct(referredTo).map(([key, { id, workspaceId }]) => ({
    ref: { workspaceId, id },
    memory: memories.get(key)?.[0] ?? null,
    history: history.get(key) ?? [],
    projections: (projections.get(key) ?? []).map((row) => row.version),
    vectors: snapshot.vectors === null ? null : (vectors.get(key) ?? []).map((row) => row.version)
  }))
}

export const laneSlices = (snapshot: Snapshot): ReadonlyArray<LaneSlice> =>
  [...Map.groupBy(snapshot.operations, (row) => `${row.workspaceId}/${row.lane}`).values()].map((operations) => ({
    ref: { workspaceId: operations[0]!.workspaceId, lane: operations[0]!.lane },
    operations
  }))

export const workspaceSlices = (snapshot: Snapshot): ReadonlyArray<WorkspaceSlice> => {
  const { accounts, authorizations, keys, transfers } = snapshot
  const workspaceIds = new Set([...accounts, ...authorizations, ...keys, ...transfers].map((row) => row.workspaceId))
  const rows = {
    accounts: byWorkspace(accounts),
    authorizations: byWorkspace(authorizations),
    keys: byWorkspace(keys),
    transfers: byWorkspace(transfers)
  }
  return [...workspaceIds].map((workspaceId) => ({
    workspaceId,
    accounts: rows.accounts.get(workspaceId) ?? [],
    authorizations: rows.authorizations.get(workspaceId) ?? [],
    keys: rows.keys.get(workspaceId) ?? [],
    transfers: rows.transfers.get(workspaceId) ?? []
  }))
}

const operationOf = (row: { readonly workspaceId: WorkspaceId; readonly operationId: OperationId }): OperationRef => ({
  workspaceId: row.workspaceId,
  id: row.operationId
})

const memoryOf = ({ memoryId, workspaceId }: HistoryRecord): MemoryRef => ({ workspaceId, id: memoryId })

const byWorkspace = <Row extends { readonly workspaceId: WorkspaceId }>(rows: ReadonlyArray<Row>) =>
  Map.groupBy(rows, (row) => row.workspaceId)

const distinct = <Ref extends OperationRef | MemoryRef>(refs: ReadonlyArray<Ref>): ReadonlyArray<[string, Ref]> => [
  ...new Map(refs.map((ref) => [refKey(ref), ref]))
]
