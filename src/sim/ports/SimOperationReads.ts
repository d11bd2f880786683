/** The reads of `OperationStore` on the simulated database, and the pruning of announcements. */
import { Effect } from "effect"
import { type LaneRef, type OperationRef, refKey } from "../../domain/Ids.ts"
import type { Operation } from "../../domain/Operation.ts"
import { scopeKeys } from "../../domain/Scope.ts"
import type { OperationPage, OperationStore } from "../../services/OperationStore.ts"
import type { SimDatabase } from "../database/SimDatabase.ts"
import { remove } from "../database/Deletion.ts"
import { matching } from "../database/Table.ts"
import { all, keyKey } from "../database/Tables.ts"
import type { Tx } from "../database/Tx.ts"

type Reads = Pick<
  OperationStore,
  "findKeys" | "get" | "list" | "withInput" | "stalledLanes" | "expiredInputs" | "pruneAnnouncements"
>

export const makeReads = (database: SimDatabase): Reads => {
  const { tables } = database

  /** The first open operation of every lane after this one, in the order of lanes. */
  const headsAfter = (tx: Tx, after: LaneRef | null): ReadonlyArray<Operation> =>
    [...tables.open.keys()].flatMap((key) => {
      const rows = tables.open.rows(tx, key)
      if (rows.length === 0) return []
      const head = rows.reduce((a, b) => a.seq < b.seq ? a : b)
      return after === null || byLane(after, head) < 0 ? [head] : []
    }).sort(byLane)

  return {
    findKeys: (keys) =>
      keys.length === 0
        ? Effect.succeed([])
        : database.ask("operations.findKeys", (tx) =>
          tx.inAnyOrder(keys).flatMap((key) => tables.keys.get(tx, keyKey(key)) ?? [])),

    get: (ref) => database.ask("operations.get", (tx) => tables.operations.get(tx, refKey(ref))),

    list: (page) =>
      database.ask("operations.list", (tx) =>
        tables.operationsOf.rows(tx, page.workspaceId)
          .filter((row) => isOnPage(page, row))
          .toSorted((a, b) => a.id < b.id ? 1 : -1)
          .slice(0, page.limit)),

    withInput: (refs) =>
      database.ask("operations.withInput", (tx) =>
        tx.inAnyOrder(refs).flatMap(({ id, workspaceId }): ReadonlyArray<OperationRef> =>
          tables.inputs.get(tx, refKey({ workspaceId, id })) === null ? [] : [{ workspaceId, id }]
        )),

    stalledLanes: (after, scan) =>
      database.ask("operations.stalledLanes", (tx) => {
        const heads = headsAfter(tx, after).slice(0, scan)
        const last = heads.at(-1)
        const stalled = heads.filter(({ ready }) => !ready).map(({ lane, workspaceId }) => ({ workspaceId, lane }))
        const next = heads.length < scan || last === undefined ? null : { workspaceId: last.workspaceId, lane: last.lane }
        return { stalled, next }
      }),

    expiredInputs: (ageMs, limit) =>
      database.ask("operations.expiredInputs", (tx) => {
        const keptTooLong = tables.failed.rows(tx, all).filter((row) =>
          row.completedAt! < tx.statementAt - ageMs && tables.inputs.get(tx, refKey(row)) !== null
        )
        return tx.inAnyOrder(keptTooLong)
          .toSorted((a, b) => a.completedAt! - b.completedAt!)
          .slice(0, limit)
          .map(({ id, workspaceId }) => ({ workspaceId, id }))
      }),

    pruneAnnouncements: (ageMs, limit) =>
      database.askInTurn("operations.pruneAnnouncements", (tx) => {
        const old = matching([...tables.outbox.slots.values()], tx, ({ at }) => at < tx.statementAt - ageMs)
        return remove(tx, tables.outbox, tx.inAnyOrder(old).slice(0, limit))
      })
  }
}

const isOnPage = (page: OperationPage, row: Operation): boolean =>
  (page.state === null || row.state === page.state) &&
  (page.kind === null || row.kind === page.kind) &&
  (page.before === null || row.id < page.before) &&
  scopeKeys.every((key) => page.scope[key] === undefined || row.scope[key] === page.scope[key])

const byLane = (a: LaneRef, b: LaneRef): number => compare(a.workspaceId, b.workspaceId) || compare(a.lane, b.lane)

const compare = (a: string, b: string): number => a < b ? -1 : a > b ? 1 : 0
