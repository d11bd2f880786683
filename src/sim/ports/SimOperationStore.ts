/** `OperationStore` on the simulated database: statement by statement what the adapter of Postgres does. */
import { Effect, Random } from "effect"
import { handedTag } from "../../domain/Fairness.ts"
import { inLockOrder, type LaneRef, type OperationRef, refKey, Timestamp } from "../../domain/Ids.ts"
import { isTerminal, type Operation } from "../../domain/Operation.ts"
import { pickScope } from "../../domain/Scope.ts"
import type { NewOperation, OperationStore, SavedOperation } from "../../services/OperationStore.ts"
import { Lock } from "../database/Lock.ts"
import type { SimDatabase } from "../database/SimDatabase.ts"
import { remove } from "../database/Deletion.ts"
import { matching, named, type Slot, takeFree } from "../database/Table.ts"
import { all, laneKey, singleton, type Tables } from "../database/Tables.ts"
import type { Steps, Tx } from "../database/Tx.ts"
import { makeReads } from "./SimOperationReads.ts"

export const make = (database: SimDatabase): OperationStore => {
  const { tables } = database
  const { operations } = tables
  const clock = () => Math.floor(database.now)
  const lanes = new Map<string, Lock>()
  const laneLock = (key: string): Lock => {
    let lock = lanes.get(key)
    if (lock === undefined) lanes.set(key, lock = new Lock())
    return lock
  }
  const locked = (rows: ReadonlyArray<Operation>) => ({ now: rows.length === 0 ? 0 : clock(), operations: rows })
  const work: OperationStore["work"] = (rows) =>
    database.ask("operations.work", (tx) =>
      tx.inAnyOrder(rows).map(({ id, workspaceId }) => {
        const key = refKey({ workspaceId, id })
        const [input, plan] = [tables.inputs.get(tx, key)?.input ?? null, tables.plans.get(tx, key)?.plan ?? null]
        return { workspaceId, id, input, plan }
      }))

  const store: Omit<OperationStore, keyof ReturnType<typeof makeReads>> = {
    now: database.ask("operations.now", clock),

    lockLanes: (laneRefs) =>
      laneRefs.length === 0
        ? Effect.void
        : database.askInTurn("operations.lockLanes", function*(tx) {
          for (const key of new Set(laneRefs.map(laneKey).toSorted())) yield* tx.lock(laneLock(key))
        }),

    occupiedLanes: (laneRefs) =>
      database.ask("operations.occupiedLanes", (tx) =>
        tx.inAnyOrder(laneRefs.flatMap(({ lane, workspaceId }) =>
          tables.open.rows(tx, laneKey({ workspaceId, lane })).length > 0 ? [{ workspaceId, lane }] : []
        ))),

    insertKeys: (keys) =>
      keys.length === 0
        ? Effect.void
        : database.askInTurn("operations.insertKeys", function*(tx) {
          for (const key of tx.inAnyOrder(keys)) yield* tables.keys.insert(tx, key)
        }),

    insert: (rows) =>
      rows.length === 0
        ? Effect.void
        : database.askInTurn("operations.insert", (tx) => insert(tables, tx, rows)),

    fairClock: database.ask("operations.fairClock", (tx) => ({
      clock: tables.fairClock.get(tx, singleton)?.value ?? 0,
      now: clock()
    })),

    advanceFairClock: (to) =>
      database.askInTurn("operations.advanceFairClock", function*(tx) {
        const slot = tables.fairClock.slots.get(singleton)!
        if (slot.seen(tx)!.value >= to) return
        yield* tx.claim(slot)
        if (slot.seen(tx)!.value < to) tables.fairClock.set(tx, slot, { value: to })
      }),

    claimable: (limit) =>
      Effect.flatMap(Random.nextBoolean, (toFresh) =>
        database.ask("operations.claimable", (tx) => locked(claimable(tables, tx, limit, toFresh)))),

    expired: (limit) =>
      database.ask("operations.expired", (tx) => {
        const expired = matching(tables.running.at(all), tx, ({ leaseExpiresAt, state }) =>
          state === "running" && leaseExpiresAt! < tx.statementAt)
        return locked(takeFree(tx, expired.sort((a, b) => a.seen(tx)!.id < b.seen(tx)!.id ? -1 : 1), limit))
      }),

    lock: (rows) =>
      rows.length === 0
        ? Effect.succeed({ now: 0, operations: [] })
        : database.askInTurn("operations.lock", function*(tx) {
          const found: Array<Operation> = []
          for (const slot of named(operations, tx, inLockOrder(rows))) {
            yield* tx.lock(slot)
            const row = slot.seen(tx)
            if (row !== null) found.push(row)
          }
          return locked(found)
        }),

    save: (rows) =>
      rows.length === 0
        ? Effect.succeed([])
        : database.askInTurn("operations.save", (tx) => save(tables, tx, rows)),

    renew: (leases, leaseMs) =>
      leases.length === 0
        ? Effect.succeed([])
        : database.askAside("operations.renew", (tx) => {
          const until = Timestamp.make(Math.floor(database.now + leaseMs))
          return tx.inAnyOrder(leases).flatMap(({ epoch, id, workspaceId }) => {
            const slot = operations.slots.get(refKey({ workspaceId, id }))
            const row = slot?.seen(tx) ?? null
            if (slot === undefined || row === null || row.epoch !== epoch || row.state !== "running") return []
            if (slot.touched(tx) || !slot.take(tx)) return []
            operations.set(tx, slot, { ...row, leaseExpiresAt: until })
            return [{ workspaceId, id, epoch }]
          })
        }),

    work,

    // Only where something was not written, an older plan has to be read.
    freeze: Effect.fnUntraced(function*(rows) {
      if (rows.length === 0) return []
      const written = yield* database.askInTurn("operations.freeze", function*(tx) {
        let count = 0
        for (const { id, plan, workspaceId } of tx.inAnyOrder(rows)) {
          if ((yield* tables.plans.insertUnlessTaken(tx, { workspaceId, id, plan })) !== null) count++
        }
        return count
      })
      if (written === rows.length) return rows
      const inForce = yield* work(rows)
      return inForce.flatMap(({ id, plan, workspaceId }) => plan === null ? [] : [{ workspaceId, id, plan }])
    }),

    redact: (rows) =>
      rows.length === 0
        ? Effect.void
        : database.askInTurn("operations.redact", function*(tx) {
          const inputs = named(tables.inputs, tx, tx.inAnyOrder(rows))
          const plans = named(tables.plans, tx, tx.inAnyOrder(rows))
          yield* remove(tx, tables.inputs, inputs)
          yield* remove(tx, tables.plans, plans)
        }),

    announce: (rows) =>
      rows.length === 0
        ? Effect.void
        : database.askInTurn("operations.announce", function*(tx) {
          for (const { id, state, workspaceId } of tx.inAnyOrder(rows)) {
            yield* tables.outbox.insert(tx, { workspaceId, id, state, seq: ++tables.outboxSeq, at: clock() })
          }
        }),

    readyNext: (laneRefs) =>
      laneRefs.length === 0
        ? Effect.succeed(0)
        : database.askInTurn("operations.readyNext", (tx) => readyNext(tables, tx, laneRefs)),

    nextSeq: database.ask("operations.nextSeq", () => ++tables.operationSeq)
  }
  return { ...store, ...makeReads(database) }
}

/** Keys first: what stands in WITH comes after what it stands before. */
function* insert(tables: Tables, tx: Tx, rows: ReadonlyArray<NewOperation>): Steps<void> {
  for (const { key } of tx.inAnyOrder(rows)) if (key !== null) yield* tables.keys.insert(tx, key)
  for (const { input, operation: { id, workspaceId } } of tx.inAnyOrder(rows)) {
    if (input !== null) yield* tables.inputs.insert(tx, { workspaceId, id, input })
  }
  for (const { operation } of rows) {
    yield* tables.operations.insert(tx, {
      ...operation,
      scope: pickScope(operation.scope),
      seq: ++tables.operationSeq,
      nextAttemptAt: null,
      epoch: 0,
      attempts: 0,
      invalidOutputs: 0,
      windowStartedAt: operation.createdAt,
      leaseOwner: null,
      leaseExpiresAt: null,
      failure: null,
      startedAt: null
    })
  }
}

/** Retries that are due go first, and take at most half; of an odd batch a coin has the last place. */
const claimable = (tables: Tables, tx: Tx, limit: number, toFresh: boolean): ReadonlyArray<Operation> => {
  const offered = tables.offered.at(all)
  const isFresh = (row: Operation) => row.state === "pending" && row.ready && row.nextAttemptAt === null
  const isDue = (row: Operation) =>
    row.state === "pending" && row.ready && row.nextAttemptAt !== null && row.nextAttemptAt <= tx.statementAt
  const due = tx.inAnyOrder(matching(offered, tx, isDue))
    .toSorted((a, b) => a.seen(tx)!.nextAttemptAt! - b.seen(tx)!.nextAttemptAt!)
  const fresh = matching(offered, tx, isFresh).sort((a, b) => {
    const [one, other] = [a.seen(tx)!, b.seen(tx)!]
    return one.fairTag - other.fairTag || one.seq - other.seq
  })
  const last = toFresh && fresh.length > 0 ? 0 : limit % 2
  const retries = takeFree(tx, due, Math.floor(limit / 2) + last)
  return [...retries, ...takeFree(tx, fresh, limit - retries.length)]
}

/** What may change beside the state. What no row of a batch has changed is not sent, and stays as it has become meanwhile. */
const savedFields: ReadonlyArray<keyof Operation> = [
  "seq", "ready", "fairTag", "nextAttemptAt", "epoch", "attempts", "invalidOutputs", "windowStartedAt", "leaseOwner",
  "leaseExpiresAt", "authorizationNo", "failure", "outcome", "results", "evidence", "startedAt", "completedAt"
]

/** A row is written only while it is as it was read, also after a wait. */
function* save({ operations }: Tables, tx: Tx, rows: ReadonlyArray<SavedOperation>): Steps<ReadonlyArray<OperationRef>> {
  const isAsRead = (row: Operation | null, from: Operation): row is Operation =>
    row !== null && row.state === from.state && row.epoch === from.epoch
  const candidates: Array<{ readonly slot: Slot<Operation>; readonly saved: SavedOperation }> = []
  for (const saved of tx.inAnyOrder(rows)) {
    const slot = operations.slots.get(refKey(saved.to))
    if (slot !== undefined && isAsRead(slot.seen(tx), saved.from)) candidates.push({ slot, saved })
  }
  const written: Array<OperationRef> = []
  const changed = savedFields.filter((field) => rows.some(({ from, to }) => from[field] !== to[field]))
  const merged = (row: Operation, to: Operation): Operation =>
    ({ ...row, state: to.state, ...Object.fromEntries(changed.map((field) => [field, to[field]])) })
  for (const { saved: { from, to }, slot } of candidates) {
    if (slot.touched(tx)) continue
    const seen = slot.seen(tx)!
    const next = merged(seen, to)
    operations.check(next)
    yield* tx.claim(slot)
    const row = slot.seen(tx)
    if (!isAsRead(row, from)) continue
    yield* operations.update(tx, slot, row === seen ? next : merged(row, to))
    written.push({ workspaceId: row.workspaceId, id: row.id })
  }
  return written
}

function* readyNext(tables: Tables, tx: Tx, lanes: ReadonlyArray<LaneRef>): Steps<number> {
  const { heads, open, operations } = tables
  const clock = tables.fairClock.get(tx, singleton)!.value
  const places = new Map<Slot<Operation>, number>()
  const counts = new Map<string, number>()
  const next: Array<Slot<Operation>> = []
  for (const key of new Set(tx.inAnyOrder(lanes).map(laneKey))) {
    if (heads.rows(tx, key).length > 0) continue
    const waiting = matching(open.at(key), tx, ({ state }) => !isTerminal(state))
    if (waiting.length > 0) next.push(waiting.reduce((a, b) => a.seen(tx)!.seq < b.seen(tx)!.seq ? a : b))
  }
  for (const slot of next.toSorted((a, b) => a.seen(tx)!.seq - b.seen(tx)!.seq)) {
    const { workspaceId } = slot.seen(tx)!
    const place = (counts.get(workspaceId) ?? 0) + 1
    counts.set(workspaceId, place)
    places.set(slot, place)
  }
  let count = 0
  for (const slot of next) {
    yield* tx.claim(slot)
    const row = slot.seen(tx)
    if (row === null) continue
    yield* operations.update(tx, slot, { ...row, ready: true, fairTag: handedTag(clock, places.get(slot)!, row.fairTag) })
    count++
  }
  return count
}
