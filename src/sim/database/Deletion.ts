/** Deletes rows as a statement does: one after the other, or all locked first. */
import type { Slot, Table } from "./Table.ts"
import type { Steps, Tx } from "./Tx.ts"

/** Deletes these rows, one after the other. Those that somebody else has deleted meanwhile are gone. */
export function* remove<Row extends object>(tx: Tx, table: Table<Row>, slots: ReadonlyArray<Slot<Row>>): Steps<number> {
  let count = 0
  for (const slot of slots) {
    yield* tx.claim(slot)
    if (slot.seen(tx) === null) continue
    table.set(tx, slot, null)
    count++
  }
  return count
}

/** Deletes what its statement locks first: all of them before the first goes, or one by one, as the plan has it. */
export function* removeLocked<Row extends object>(tx: Tx, table: Table<Row>, slots: ReadonlyArray<Slot<Row>>): Steps<number> {
  if (tx.key.of("plan").chance(0.5)) for (const slot of slots) yield* tx.lock(slot)
  return yield* remove(tx, table, slots)
}
