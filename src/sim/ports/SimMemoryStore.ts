/** `MemoryStore` on the simulated database: statement by statement what the adapter of Postgres does. */
import { Effect } from "effect"
import { contains } from "../../domain/Containment.ts"
import { inLockOrder, type MemoryRef, refKey, type WorkspaceId } from "../../domain/Ids.ts"
import type { Memory } from "../../domain/Memory.ts"
import type { MemoryWrite } from "../../domain/Plan.ts"
import { type ScopeFilter, scopeKeys } from "../../domain/Scope.ts"
import type { MemoryStore, Projection } from "../../services/MemoryStore.ts"
import type { SimDatabase } from "../database/SimDatabase.ts"
import { removeLocked } from "../database/Deletion.ts"
import { matching, named, type Slot, takeFree } from "../database/Table.ts"
import { type Tables, versionKey } from "../database/Tables.ts"
import type { Steps, Tx } from "../database/Tx.ts"
import * as SimRecentMemories from "./SimRecentMemories.ts"
import { ranked } from "./Words.ts"

export const make = (database: SimDatabase): MemoryStore => {
  const { tables } = database
  const { memories, projections } = tables

  /** The slots of these projections in lock order, as they are now. */
  const projectionSlots = (tx: Tx, rows: ReadonlyArray<Projection>) =>
    inLockOrder(rows).flatMap((row): ReadonlyArray<Slot<Projection & { readonly dueAt: number }>> => {
      const slot = projections.slots.get(versionKey(row))
      return slot === undefined || slot.seen(tx) === null ? [] : [slot]
    })

  return {
    lock: (refs) =>
      refs.length === 0
        ? Effect.succeed([])
        : database.askInTurn("memories.lock", function*(tx) {
          const rows: Array<Memory> = []
          for (const slot of named(memories, tx, inLockOrder(refs))) {
            yield* tx.lock(slot)
            const row = slot.seen(tx)
            if (row !== null) rows.push(row)
          }
          return rows
        }),

    write: (writes) =>
      writes.length === 0
        ? Effect.succeed([])
        : database.askInTurn("memories.write", (tx) => write(tables, tx, firstOfEach(writes))),

    get: (refs) =>
      refs.length === 0
        ? Effect.succeed([])
        : database.ask("memories.get", (tx) =>
          tx.inAnyOrder(named(memories, tx, refs)).map((slot) => slot.seen(tx)!)),

    list: ({ before, limit, metadata, scope, workspaceId }) =>
      database.ask("memories.list", (tx) =>
        newestFirst(inScope(tables, tx, workspaceId, scope).filter((row) =>
          contains(row.metadata, metadata) && (before === null || row.id < before)
        )).slice(0, limit)),

    history: (ref) =>
      database.ask("memories.history", (tx) =>
        tables.historyOf.rows(tx, refKey(ref))
          .toSorted((a, b) => a.version - b.version)
          .map(({ workspaceId: _, ...entry }) => entry)),

    lexical: ({ limit, metadata, query, scope, workspaceId }) =>
      database.ask("memories.lexical", (tx) => {
        const found = inScope(tables, tx, workspaceId, scope).filter((row) => contains(row.metadata, metadata))
        return ranked(query, newestFirst(found)).slice(0, limit).map(({ id }) => id)
      }),

    recent: SimRecentMemories.make(database),

    claimProjections: (limit, leaseMs) =>
      database.ask("memories.claimProjections", (tx) => {
        const due = matching([...projections.slots.values()], tx, ({ dueAt }) => dueAt <= tx.startedAt)
        const inOrder = tx.inAnyOrder(due).toSorted((a, b) => a.seen(tx)!.dueAt - b.seen(tx)!.dueAt)
        return tx.inAnyOrder(takeFree(tx, inOrder, limit)).map((row) => {
          const { dueAt: _, ...projection } = { ...row, attempts: row.attempts + 1 }
          projections.set(tx, projections.slots.get(versionKey(row))!, { ...projection, dueAt: tx.startedAt + leaseMs })
          const memory = memories.get(tx, refKey(row))
          return { projection, memory: memory?.version === row.version ? memory : null }
        })
      }),

    finishProjections: (done) =>
      done.length === 0
        ? Effect.void
        : database.askInTurn("memories.finishProjections", function*(tx) {
          yield* removeLocked(tx, projections, projectionSlots(tx, done))
        }),

    postponeProjections: (rows) =>
      rows.length === 0
        ? Effect.void
        : database.askInTurn("memories.postponeProjections", function*(tx) {
          const wanted = new Map(rows.map((row) => [versionKey(row.projection), row]))
          const isClaimed = (row: Projection | null) =>
            row !== null && row.attempts === wanted.get(versionKey(row))!.projection.attempts
          const slots = projectionSlots(tx, rows.map(({ projection }) => projection)).filter((slot) => isClaimed(slot.seen(tx)))
          for (const slot of slots) {
            yield* tx.lock(slot)
            const row = slot.seen(tx)
            if (row === null || !isClaimed(row) || slot.touched(tx)) continue
            projections.set(tx, slot, { ...row, dueAt: tx.startedAt + wanted.get(versionKey(row))!.delayMs })
          }
        }),

    projectionAttempts: (refs) =>
      refs.length === 0
        ? Effect.succeed([])
        : database.ask("memories.projectionAttempts", (tx) =>
          tx.inAnyOrder([...new Map(refs.map((ref) => [refKey(ref), ref])).values()]).flatMap(({ id, workspaceId }) => {
            const rows = tables.projectionsOf.rows(tx, refKey({ workspaceId, id }))
            const maxAttempts = rows.reduce((most, { attempts }) => Math.max(most, attempts), 0)
            return rows.length === 0 ? [] : [{ workspaceId, id, pending: rows.length, maxAttempts }]
          }))
  }
}

/** The live memories that a filter matches: ids that are given must be equal, absent ones may be anything. */
export const inScope = (tables: Tables, tx: Tx, workspaceId: WorkspaceId, scope: ScopeFilter): ReadonlyArray<Memory> =>
  tables.live.rows(tx, workspaceId).filter((row) =>
    scopeKeys.every((key) => scope[key] === undefined || row.scope[key] === scope[key])
  )

export const newestFirst = (rows: ReadonlyArray<Memory>): ReadonlyArray<Memory> => rows.toSorted((a, b) => a.id < b.id ? 1 : -1)

/** Of several writes of one memory in a batch, the first counts: the others are not one version ahead of what is there. */
const firstOfEach = (writes: ReadonlyArray<MemoryWrite>): ReadonlyArray<MemoryWrite> => {
  const first = new Map<string, MemoryWrite>()
  for (const write of writes) {
    const key = refKey(write.memory)
    if (!first.has(key)) first.set(key, write)
  }
  return [...first.values()]
}

/**
 * Adds that are not taken, in lock order; then changes of what is one version behind, locked in lock order first; and
 * beside each a version in the history and a projection. Deleting erases the texts of all versions.
 */
function* write(tables: Tables, tx: Tx, writes: ReadonlyArray<MemoryWrite>): Steps<ReadonlyArray<MemoryRef>> {
  const { history, memories, projections } = tables
  const byRef = new Map(writes.map((write) => [refKey(write.memory), write]))
  const inOrder = inLockOrder(writes.map(({ memory }) => memory)).map((memory) => byRef.get(refKey(memory))!)
  const changes = inOrder.filter(({ change }) => change !== "add")
  // By what the statement has seen before it waited, and by what it finds then.
  const isBehind = (row: Memory | null, version: number): row is Memory =>
    row !== null && !row.deleted && row.version === version - 1
  const there = named(memories, tx, changes.map(({ memory }) => memory))
  const behind = there.filter((slot) => isBehind(slot.seen(tx), byRef.get(slot.key)!.memory.version))
  const written: Array<MemoryWrite> = []
  for (const add of inOrder.filter(({ change }) => change === "add")) {
    if ((yield* memories.insertUnlessTaken(tx, { ...add.memory, deleted: false })) !== null) written.push(add)
  }
  for (const slot of there) yield* tx.lock(slot)
  for (const slot of tx.inAnyOrder(behind)) {
    const [row, change] = [slot.seen(tx), byRef.get(slot.key)!]
    if (!isBehind(row, change.memory.version)) continue
    const { createdAt, id, scope, workspaceId } = row
    const deleted = change.change === "delete"
    memories.set(tx, slot, { ...change.memory, workspaceId, id, scope, createdAt, deleted })
    written.push(change)
  }
  for (const { change, memory: { id, operationId, text, updatedAt, version, workspaceId } } of written) {
    const erased = change === "delete" ? tables.historyOf.at(refKey({ workspaceId, id })).slice() : []
    for (const slot of erased) {
      const row = slot.seen(tx)
      if (row !== null && row.text !== null && slot.take(tx)) history.set(tx, slot, { ...row, text: null })
    }
    yield* history.insert(tx, { workspaceId, memoryId: id, version, change, text, operationId, at: updatedAt })
    yield* projections.insert(tx, { workspaceId, id, version, operationId, attempts: 0, dueAt: tx.startedAt })
  }
  return tx.inAnyOrder(written).map(({ memory: { id, workspaceId } }) => ({ workspaceId, id }))
}
