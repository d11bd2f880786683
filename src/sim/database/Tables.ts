/** Every table of the schema, with its keys, its indexes, what it refers to, and the sequences. */
import { refKey } from "../../domain/Ids.ts"
import { isTerminal } from "../../domain/Operation.ts"
import type { Committed, Rows, TableName } from "../Commit.ts"
import * as Constraints from "./Constraints.ts"
import { Index } from "./Index.ts"
import { Table } from "./Table.ts"

interface OfWorkspace {
  readonly workspaceId: string
}

export const operationKey = (row: OfWorkspace & { readonly operationId: string }): string =>
  `${row.workspaceId}/${row.operationId}`
export const laneKey = (row: OfWorkspace & { readonly lane: string }): string => `${row.workspaceId}/${row.lane}`
export const keyKey = (row: OfWorkspace & { readonly keyHash: string }): string => `${row.workspaceId}/${row.keyHash}`
export const versionKey = (row: OfWorkspace & { readonly id: string; readonly version: number }): string =>
  `${row.workspaceId}/${row.id}/${row.version}`
export const authorizationKey = (row: OfWorkspace & { readonly operationId: string; readonly no: number }): string =>
  `${row.workspaceId}/${row.operationId}/${row.no}`

const workspaceOf = (row: OfWorkspace): string => row.workspaceId
const memoryKey = (row: Rows["history"]): string => `${row.workspaceId}/${row.memoryId}`
const seqKey = (row: OfWorkspace & { readonly seq: number | bigint }): string => `${row.workspaceId}/${row.seq}`
const spenderKey = (row: Rows["transfers"]): string => `${row.workspaceId}/${row.operationId}/${row.authorizationNo}`

/** The only key of an index that holds the rows of one kind. */
export const all = ""

/** An index that holds only some rows. */
const partial = <Row extends object>(
  name: string,
  test: (row: Row) => boolean,
  keyOf: (row: Row) => string = () => all
): Index<Row> => new Index(name, (row) => test(row) ? keyOf(row) : null)

/** The key of the row in a table that has one. */
export const singleton = "singleton"

const spends = (row: Rows["transfers"]): boolean => row.operationId !== null

/** A database right after its migration. */
export class Tables {
  /** Sequences give each number once, whoever rolls back. */
  operationSeq = 0
  outboxSeq = 0
  transferSeq = 0n

  readonly workspaces = new Table<Rows["workspaces"]>({ name: "workspaces", keyOf: (row) => row.id })
  /** A foreign key, or a trigger that looks at all new rows of a statement at once: it comes to the same. */
  private readonly toWorkspace = (name: string) => ({ name, table: this.workspaces, keyOf: workspaceOf })

  readonly apiKeysOf = new Index<Rows["apiKeys"]>("api_keys_workspace", workspaceOf)
  readonly apiKeysBySecret = new Index<Rows["apiKeys"]>("api_keys_secret_hash_key", (row) => row.secretHash)
  readonly apiKeys = new Table<Rows["apiKeys"]>({
    name: "apiKeys",
    schemaName: "api_keys",
    keyOf: refKey,
    unique: [this.apiKeysBySecret],
    indexes: [this.apiKeysOf],
    references: [this.toWorkspace("api_keys_workspace_id_fkey")]
  })

  readonly operationsOf = new Index<Rows["operations"]>("operations_workspace", workspaceOf)
  /** What claims look at, due or not. */
  readonly offered = partial<Rows["operations"]>("operations_claim", (row) => row.state === "pending" && row.ready)
  readonly running = partial<Rows["operations"]>("operations_running", (row) => row.state === "running")
  readonly failed = partial<Rows["operations"]>("operations_failed", (row) => row.state === "failed")
  /** By lane, in no order. */
  readonly open = partial<Rows["operations"]>("operations_lane", (row) => !isTerminal(row.state), laneKey)
  readonly heads = partial<Rows["operations"]>("operations_lane_head", (row) => row.ready, laneKey)
  readonly operations = new Table<Rows["operations"]>({
    name: "operations",
    keyOf: refKey,
    unique: [this.heads],
    indexes: [this.operationsOf, this.offered, this.running, this.failed, this.open],
    references: [this.toWorkspace("operations_have_a_workspace")],
    ...Constraints.operation
  })
  private readonly toOperation = (name: string) => ({ name, table: this.operations, keyOf: operationKey })
  readonly keys = new Table<Rows["keys"]>({
    name: "keys",
    schemaName: "idempotency_keys",
    keyOf: keyKey,
    references: [this.toOperation("idempotency_keys_workspace_id_operation_id_fkey")],
    ...Constraints.key
  })
  readonly inputs = new Table<Rows["inputs"]>({
    name: "inputs",
    schemaName: "operation_inputs",
    keyOf: refKey,
    ...Constraints.input
  })
  readonly plans = new Table<Rows["plans"]>({
    name: "plans",
    schemaName: "operation_plans",
    keyOf: refKey,
    ...Constraints.plan
  })
  readonly fairClock = new Table<Rows["fairClock"]>({ name: "fairClock", schemaName: "fair_clock", keyOf: () => singleton })
  readonly outbox = new Table<Rows["outbox"]>({ name: "outbox", keyOf: seqKey })

  readonly live = partial<Rows["memories"]>("memories_workspace", (row) => !row.deleted, workspaceOf)
  readonly memories = new Table<Rows["memories"]>({
    name: "memories",
    keyOf: refKey,
    indexes: [this.live],
    references: [this.toWorkspace("memories_have_a_workspace")],
    ...Constraints.memory
  })
  readonly historyOf = new Index<Rows["history"]>("memory_history_memory", memoryKey)
  readonly history = new Table<Rows["history"]>({
    name: "history",
    schemaName: "memory_history",
    keyOf: (row) => `${memoryKey(row)}/${row.version}`,
    indexes: [this.historyOf],
    references: [{
      name: "memory_history_workspace_id_memory_id_fkey",
      table: this.memories,
      keyOf: memoryKey
    }],
    ...Constraints.history
  })
  readonly projectionsOf = new Index<Rows["projections"]>("projections_operation", operationKey)
  readonly projections = new Table<Rows["projections"]>({
    name: "projections",
    keyOf: versionKey,
    indexes: [this.projectionsOf]
  })

  readonly accounts = new Table<Rows["accounts"]>({
    name: "accounts",
    keyOf: workspaceOf,
    references: [this.toWorkspace("accounts_workspace_id_fkey")],
    ...Constraints.account
  })
  readonly authorizationsOf = new Index<Rows["authorizations"]>("authorizations_operation", operationKey)
  readonly authorizations = new Table<Rows["authorizations"]>({
    name: "authorizations",
    keyOf: authorizationKey,
    unique: [partial<Rows["authorizations"]>("authorizations_one_live", (row) => row.state !== "refunded", operationKey)],
    indexes: [this.authorizationsOf],
    references: [this.toOperation("authorizations_workspace_id_operation_id_fkey")],
    ...Constraints.authorization
  })
  readonly transfersOf = new Index<Rows["transfers"]>("transfers_workspace", workspaceOf)
  readonly transfers = new Table<Rows["transfers"]>({
    name: "transfers",
    keyOf: seqKey,
    unique: [
      partial("transfers_once", spends, (row) => `${spenderKey(row)}/${row.kind}`),
      partial("transfers_one_outcome", ({ kind }) => kind === "charge" || kind === "refund", spenderKey),
      partial("transfers_grant", ({ kind }) => kind === "grant", (row) => `${row.workspaceId}/${row.reference}`)
    ],
    indexes: [this.transfersOf],
    ...Constraints.transfer
  })

  /** Not a table of the records, and no part of their transactions. */
  readonly vectors = new Table<Rows["vectors"]>({ name: "vectors", schemaName: "memory_vectors", keyOf: refKey })

  constructor() {
    this.fairClock.begin({ value: 0 })
  }

  /** What is committed, as oracles see it. */
  get committed(): Committed {
    const names: ReadonlyArray<TableName> = [
      "workspaces", "operations", "keys", "inputs", "plans", "outbox", "memories", "history", "projections", "accounts",
      "authorizations", "transfers", "fairClock", "apiKeys", "vectors"
    ]
    return Object.fromEntries(names.map((name) => [name, this[name].committed])) as unknown as Committed
  }
}
