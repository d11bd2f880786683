/** `Ledger` on the simulated database: a transfer moves the balances, and the schema refuses what would break a rule. */
import { Effect } from "effect"
import { refKey, Timestamp, type WorkspaceId } from "../../domain/Ids.ts"
import * as Money from "../../domain/Ledger.ts"
import { type AccountRow, Ledger } from "../../services/Ledger.ts"
import { DatabaseError, refusedChange } from "../database/DatabaseError.ts"
import type { SimDatabase } from "../database/SimDatabase.ts"
import { matching, type Slot } from "../database/Table.ts"
import { authorizationKey, type Tables } from "../database/Tables.ts"
import type { Steps, Tx } from "../database/Tx.ts"

export const make = (database: SimDatabase): Ledger["Service"] => {
  const { tables } = database
  return Ledger.of({
    lock: (workspaceIds) =>
      database.askInTurn("ledger.lock", function*(tx) {
        const rows: Array<AccountRow> = []
        for (const slot of accountSlots(tables, tx, workspaceIds)) {
          yield* tx.lock(slot)
          const row = slot.seen(tx)
          if (row !== null) rows.push(row)
        }
        return rows
      }),

    setFairTimes: (rows) =>
      rows.length === 0
        ? Effect.void
        : database.askInTurn("ledger.setFairTimes", function*(tx) {
          for (const { fairTime, workspaceId } of tx.inAnyOrder(rows)) {
            const slot = tables.accounts.slots.get(workspaceId)
            if (slot === undefined || slot.seen(tx) === null || slot.touched(tx)) continue
            yield* tx.claim(slot)
            tables.accounts.set(tx, slot, { ...slot.seen(tx)!, fairTime })
          }
        }),

    openAuthorizations: (refs) =>
      refs.length === 0
        ? Effect.succeed([])
        : database.askInTurn("ledger.openAuthorizations", function*(tx) {
          const isOpen = ({ state }: Money.Authorization) => state === "open"
          const slots = refs.flatMap((ref) => matching(tables.authorizationsOf.at(refKey(ref)), tx, isOpen))
          const found: Array<Money.Authorization> = []
          for (const slot of new Set(slots.sort((a, b) => byOperation(a.seen(tx)!, b.seen(tx)!)))) {
            yield* tx.lock(slot)
            const row = slot.seen(tx)
            if (row !== null && isOpen(row)) found.push(row)
          }
          return found
        }),

    post: (authorizations, transfers) =>
      authorizations.length + transfers.length === 0
        ? Effect.void
        : database.askInTurn("ledger.post", (tx) => post(tables, tx, authorizations, transfers)),

    authorizations: (refs) =>
      refs.length === 0
        ? Effect.succeed([])
        : database.ask("ledger.authorizations", (tx) =>
          refs.flatMap((ref) => tables.authorizationsOf.rows(tx, refKey(ref))).sort((a, b) => byOperation(a, b) || a.no - b.no)),

    balances: (workspaceId) =>
      database.ask("ledger.balances", (tx) => tables.accounts.get(tx, workspaceId)?.balances ?? Money.emptyBalances),

    transfers: ({ before, limit, workspaceId }) =>
      database.ask("ledger.transfers", (tx) =>
        tables.transfersOf.rows(tx, workspaceId)
          .filter(({ seq }) => before === null || seq < before)
          .toSorted((a, b) => a.seq < b.seq ? 1 : -1)
          .slice(0, limit)),

    grant: (workspaceId, amount, reference) =>
      database.askInTurn("ledger.grant", function*(tx) {
        const transfer = { workspaceId, kind: "grant", operationId: null, authorizationNo: null, amount, reference } as const
        const slot = yield* tables.transfers.insertUnlessTaken(tx, rowOf(tables, tx, transfer), "transfers_grant")
        if (slot === null) return false
        yield* moveBalances(tables, tx, [transfer])
        return true
      }),

    granted: (workspaceId, reference) =>
      database.ask("ledger.granted", (tx) =>
        tables.transfersOf.rows(tx, workspaceId).find((row) => row.kind === "grant" && row.reference === reference)?.amount ??
          null)
  })
}

/** The accounts of these workspaces in lock order, each once. */
const accountSlots = ({ accounts }: Tables, tx: Tx, workspaceIds: ReadonlyArray<WorkspaceId>) =>
  [...new Set(workspaceIds)].sort().flatMap((id): ReadonlyArray<Slot<AccountRow>> => {
    const slot = accounts.slots.get(id)
    return slot === undefined || slot.seen(tx) === null ? [] : [slot]
  })

const rowOf = (tables: Tables, tx: Tx, transfer: Money.Transfer): Money.TransferRow => ({
  ...transfer,
  seq: ++tables.transferSeq,
  at: Timestamp.make(Math.floor(tx.startedAt))
})

/** Transfers first: what stands in WITH comes after what it stands before. What moves is checked when all is there. */
function* post(
  tables: Tables,
  tx: Tx,
  authorizations: ReadonlyArray<Money.Authorization>,
  transfers: ReadonlyArray<Money.Transfer>
): Steps<void> {
  for (const transfer of transfers) yield* tables.transfers.insert(tx, rowOf(tables, tx, transfer))
  for (const row of tx.inAnyOrder(authorizations)) yield* authorize(tables, tx, row)
  yield* moveBalances(tables, tx, transfers)
}

/** A new authorization, or the end of an open one. One that has ended stays as it is. */
function* authorize({ authorizations }: Tables, tx: Tx, row: Money.Authorization): Steps<void> {
  while (true) {
    if ((yield* authorizations.insertUnlessTaken(tx, row, "authorizations_pkey")) !== null) return
    const slot = authorizations.slots.get(authorizationKey(row))!
    if (slot.touched(tx)) throw new DatabaseError("21000")
    yield* tx.claim(slot)
    const current = slot.seen(tx)
    if (current === null) continue
    const { charged, state } = row
    if (current.state === "open") yield* authorizations.update(tx, slot, { ...current, state, charged })
    return
  }
}

/** What a trigger does once for all transfers of a statement: nothing moves but what was authorized. */
function* moveBalances(tables: Tables, tx: Tx, transfers: ReadonlyArray<Money.Transfer>): Steps<void> {
  if (transfers.some((transfer) => transfer.kind !== "grant" && transfer.amount !== authorized(tables, tx, transfer))) {
    throw refusedChange("transfer_moves_what_was_authorized")
  }
  const ids = new Set(transfers.map(({ workspaceId }) => workspaceId))
  const slots = accountSlots(tables, tx, [...ids])
  for (const slot of slots) yield* tx.lock(slot)
  for (const slot of slots) {
    const account = slot.seen(tx)!
    const mine = transfers.filter(({ workspaceId }) => workspaceId === account.workspaceId)
    tables.accounts.set(tx, slot, { ...account, balances: mine.reduce(Money.post, account.balances) })
  }
  if (slots.length !== ids.size) throw refusedChange("transfer_has_an_account")
}

/** What a transfer of this kind may move. */
const authorized = (tables: Tables, tx: Tx, transfer: Money.Transfer): bigint | null => {
  const { authorizationNo: no, kind, operationId, workspaceId } = transfer
  if (operationId === null || no === null) return null
  const authorization = tables.authorizations.get(tx, authorizationKey({ workspaceId, operationId, no }))
  if (authorization === null) return null
  const { charged, reserved, state } = authorization
  if (kind === "reserve") return reserved
  if (kind === "refund") return state === "refunded" ? reserved : null
  if (state !== "charged") return null
  return kind === "charge" ? charged : reserved - charged
}

const byOperation = (a: Money.Authorization, b: Money.Authorization): number =>
  compare(a.workspaceId, b.workspaceId) || compare(a.operationId, b.operationId)

const compare = (a: string, b: string): number => a < b ? -1 : a > b ? 1 : 0
