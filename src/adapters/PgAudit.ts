/**
 * Holds the invariants of the domain, and its limits of time, against a live database. Each workspace is one read-only
 * snapshot, read a page at a time: memory does not grow with the database, and no text is read at all.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { OperationId, refKey, WorkspaceId } from "../domain/Ids.ts"
import { type Violation, violations } from "../domain/Invariant.ts"
import { checkLane, checkMemory, checkOperation, checkWorkspace } from "../domain/Invariants.ts"
import type { Authorization, Transfer } from "../domain/Ledger.ts"
import {
  type Limits,
  overdueLanes,
  overdueOperations,
  overdueProjections,
  overdueWork
} from "../domain/Overdue.ts"
import { laneSlices, memorySlices, operationSlices, type Snapshot } from "../domain/Snapshot.ts"
import {
  decodeHeld,
  decodeKeys,
  decodeMoved,
  decodeTotals,
  laneQuery,
  memoryQueries,
  operationQueries,
  readers
} from "./PgAuditRows.ts"
import { sideBySide } from "./PgCursor.ts"
import { milliseconds } from "./PgRows.ts"
import * as PgVectorTable from "./PgVectorTable.ts"

/** Rows of one kind that are in memory at a time, unless more belong to one operation or one memory. */
const defaultPageSize = 500

/** What was looked at. */
export interface Looked {
  readonly workspaces: number
  readonly operations: number
  readonly memories: number
}

export interface Look {
  /** All when absent. */
  readonly workspaceId?: WorkspaceId | undefined
  readonly limits: Limits
  readonly pageSize?: number | undefined
  /** Is handed what was found, workspace by workspace, as it is found. */
  readonly see: (found: ReadonlyArray<Violation>) => Effect.Effect<void>
}

const decodeWorkspaces = Schema.decodeUnknownSync(Schema.Array(Schema.Struct({ id: WorkspaceId })))
const decodeNow = Schema.decodeUnknownSync(Schema.Tuple([Schema.Struct({ now: Schema.Finite })]))

const nothing: Snapshot = {
  operations: [],
  keys: [],
  authorizations: [],
  transfers: [],
  accounts: [],
  memories: [],
  history: [],
  projections: [],
  plans: [],
  inputs: [],
  vectors: null
}

const tables = ["workspaces", "accounts", "operations", "authorizations", "transfers", "memories", "memory_history", "memory_vectors"]

/** Whether a workspace has a row anywhere. */
export const knows = Effect.fn("PgAudit.knows")(function*(workspaceId: WorkspaceId) {
  const sql = yield* PgClient.PgClient
  const rows = tables.map((table) => `exists (select from ${table} where workspace_id = $1)`).join(" or ")
  return (yield* sql.unsafe(`select where ${rows}`, [workspaceId]).unprepared).length > 0
})

/** Every workspace that has a row anywhere. */
const workspaces = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const named = tables.map((table) => `select distinct workspace_id as id from ${table}`).join(" union ")
  return decodeWorkspaces(yield* sql.unsafe(`${named} order by id`).unprepared).map(({ id }) => id)
})

/** Looks at everything, or at one workspace. */
export const look = Effect.fn("PgAudit.look")(function*(
  options: Look
): Effect.fn.Return<Looked, SqlError, PgClient.PgClient> {
  const sql = yield* PgClient.PgClient
  const ids = options.workspaceId === undefined ? yield* workspaces : [options.workspaceId]
  const looked = { workspaces: ids.length, operations: 0, memories: 0 }
  for (const workspaceId of ids) {
    yield* sql.withTransaction(Effect.gen(function*() {
      yield* sql`set transaction isolation level repeatable read, read only`.unprepared
      const [{ now }] = decodeNow(yield* sql`select ${sql.literal(milliseconds("now()"))} as now`)
      const part: Part = { ...options, pageSize: options.pageSize ?? defaultPageSize, sql, workspaceId, now }
      yield* lookAtMoney(part)
      looked.operations += yield* lookAtOperations(part)
      yield* lookAtLanes(part)
      looked.memories += yield* lookAtMemories(part)
    }))
  }
  return looked
})

interface Part extends Omit<Look, "workspaceId" | "pageSize"> {
  readonly pageSize: number
  readonly sql: PgClient.PgClient
  readonly workspaceId: WorkspaceId
  readonly now: number
}

/**
 * The invariants of an account add up every transfer and hold: the database adds them up by kind, which is the same, and
 * hands over one of each.
 */
const lookAtMoney = Effect.fnUntraced(function*({ see, sql, workspaceId }: Part) {
  const accounts = decodeTotals(yield* sql`select available, reserved, consumed, issued from accounts
    where workspace_id = ${workspaceId}`)
  const moved = decodeMoved(yield* sql`select kind, sum(amount)::text as amount from transfers
    where workspace_id = ${workspaceId} group by kind`)
  const [{ held }] = decodeHeld(yield* sql`select coalesce(sum(reserved), 0)::text as held from authorizations
    where workspace_id = ${workspaceId} and state = 'open'`)
  const twice = decodeKeys(yield* sql`select key_hash as "keyHash", operation_id as "operationId" from idempotency_keys
    where workspace_id = ${workspaceId} and key_hash in (
      select key_hash from idempotency_keys where workspace_id = ${workspaceId} group by key_hash having count(*) > 1 limit 100
    )`)
  yield* see(checkWorkspace({
    workspaceId,
    accounts: accounts.map((balances) => ({ workspaceId, balances })),
    transfers: moved.map(({ amount, kind }): Transfer => ({
      workspaceId,
      kind,
      amount: BigInt(amount),
      operationId: null,
      authorizationNo: null,
      reference: null
    })),
    authorizations: [{ ...anyAuthorization, workspaceId, reserved: BigInt(held) }],
    keys: twice.map((key) => ({ workspaceId, ...key }))
  }))
})

const anyAuthorization: Omit<Authorization, "workspaceId" | "reserved"> = {
  operationId: OperationId.make("00000000-0000-7000-8000-000000000000"),
  no: 1,
  state: "open",
  charged: 0n,
  price: { policy: "infer-add", stored: 0, noMemory: 0 }
}

const lookAtOperations = Effect.fnUntraced(function*({ limits, now, pageSize, see, sql, workspaceId }: Part) {
  let count = 0
  yield* sideBySide(sql, operationQueries(sql, workspaceId), pageSize, (portion) => {
    count += portion.operations.length
    const rows = readAll(portion, readers)
    const slices = operationSlices({ ...nothing, ...rows.read, history: rows.read.made })
      .filter(({ ref }) => !rows.unread.has(ref.id))
    return see([
      ...unreadable(workspaceId, rows.unread),
      ...slices.flatMap(checkOperation),
      ...slices.flatMap((slice) => violations(overdueOperations, { ...slice, limits, now }, slice.ref))
    ])
  })
  return count
})

const lookAtLanes = Effect.fnUntraced(function*({ limits, now, pageSize, see, sql, workspaceId }: Part) {
  const queries = { lanes: laneQuery(sql, workspaceId, limits.overdueMs) }
  yield* sideBySide(sql, queries, pageSize, (portion) => {
    const { lanes } = readAll(portion, readers).read
    return see([
      ...laneSlices({ ...nothing, operations: lanes }).flatMap((slice) => [
        ...checkLane(slice),
        ...violations(overdueLanes, slice, { workspaceId, id: slice.ref.lane })
      ]),
      ...lanes.flatMap((operation) =>
        violations(overdueWork, { operation, endedAt: operation.endedAt, limits, now }, operation)
      )
    ])
  })
})

const lookAtMemories = Effect.fnUntraced(function*({ limits, now, pageSize, see, sql, workspaceId }: Part) {
  const kind = (yield* PgVectorTable.bound)?.kind ?? null
  let count = 0
  yield* sideBySide(sql, memoryQueries(sql, workspaceId, kind), pageSize, (portion) => {
    count += portion.memories.length
    const { read, unread } = readAll(portion, readers)
    const vectors = kind === null ? null : read.vectors
    const slices = memorySlices({ ...nothing, ...read, vectors }).filter(({ ref }) => !unread.has(ref.id))
    const updatedAt = new Map(read.memories.map((memory) => [refKey(memory), memory.updatedAt]))
    return see([
      ...unreadable(workspaceId, unread),
      ...slices.flatMap(checkMemory),
      ...read.projections.flatMap((row) =>
        violations(overdueProjections, { ...row, limits, now, updatedAt: updatedAt.get(refKey(row)) ?? now }, row)
      )
    ])
  })
  return count
})

type Readers = typeof readers

/** Reads each kind of row of a portion. */
const readAll = <Name extends keyof Readers>(
  portion: Record<Name, ReadonlyArray<object>>,
  by: Readers
): {
  readonly read: { readonly [N in Name]: ReturnType<Readers[N]>["read"] }
  readonly unread: ReadonlySet<string>
} => {
  const names = Object.keys(portion) as Array<Name>
  const results = names.map((name) => by[name](portion[name]))
  return {
    read: Object.fromEntries(names.map((name, index) => [name, results[index]!.read])) as {
      readonly [N in Name]: ReturnType<Readers[N]>["read"]
    },
    unread: new Set(results.flatMap(({ unread }) => unread))
  }
}

const unreadable = (workspaceId: WorkspaceId, ids: ReadonlySet<string>): ReadonlyArray<Violation> =>
  [...ids].map((id) => ({
    invariant: "rows-are-readable",
    workspaceId,
    id,
    detail: "this release cannot read a row of it"
  }))
