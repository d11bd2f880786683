/** Which rows of a table have something in common, as transactions have made them and as they were. */
import type { Slot } from "./Table.ts"
import type { Tx } from "./Tx.ts"

/** By a key of theirs. Null: the row is not in this index. */
export class Index<Row extends object> {
  readonly name: string
  readonly keyOf: (row: Row) => string | null
  private readonly slots = new Map<string, Array<Slot<Row>>>()

  constructor(name: string, keyOf: (row: Row) => string | null) {
    this.name = name
    this.keyOf = keyOf
  }

  /** The slots whose row has this key, or will have it if a transaction commits, or has it unless one commits. */
  at(key: string): ReadonlyArray<Slot<Row>> {
    return this.slots.get(key) ?? none
  }

  /** The rows with this key that a transaction sees. */
  rows(tx: Tx, key: string): ReadonlyArray<Row> {
    const rows: Array<Row> = []
    for (const slot of this.at(key)) {
      const row = slot.seen(tx)
      if (row !== null && this.keyOf(row) === key) rows.push(row)
    }
    return rows
  }

  keys(): IterableIterator<string> {
    return this.slots.keys()
  }

  /** Enters what a slot is to be, unless it is in for what it was. */
  enter(slot: Slot<Row>, row: Row): void {
    const key = this.keyOf(row)
    if (key === null || (slot.committed !== null && this.keyOf(slot.committed) === key)) return
    const slots = this.slots.get(key)
    if (slots === undefined) this.slots.set(key, [slot])
    else if (!slots.includes(slot)) slots.push(slot)
  }

  /** Takes out a slot that is in for `row`, unless it stays in for `stays`. It may have come to its end before it was in. */
  leave(slot: Slot<Row>, row: Row, stays: Row | null): void {
    const key = this.keyOf(row)
    if (key === null || (stays !== null && this.keyOf(stays) === key)) return
    const slots = this.slots.get(key)
    const place = slots?.indexOf(slot) ?? -1
    if (place < 0) return
    if (slots!.length === 1) this.slots.delete(key)
    else slots!.splice(place, 1)
  }
}

const none: ReadonlyArray<never> = []

/** Who has, or may come to have, the key that this row has in a unique index. */
export const holderIn = <Row extends object>(index: Index<Row>, tx: Tx, row: Row, self: Slot<Row> | null): Slot<Row> | null => {
  const key = index.keyOf(row)
  if (key === null) return null
  return index.at(key).find((slot) => slot !== self && mayBe(slot, tx, (row) => index.keyOf(row) === key)) ?? null
}

/** Any row. */
export const always = () => true

/** Whether a row like this is there for a transaction, or could be once another has ended. */
export const mayBe = <Row extends object>(slot: Slot<Row>, tx: Tx, like: (row: Row) => boolean): boolean => {
  const is = (row: Row | null) => row !== null && like(row)
  if (slot.writer === null) return is(slot.committed)
  return is(slot.pending) || (slot.writer !== tx && (is(slot.committed) || slot.past.some(like)))
}
