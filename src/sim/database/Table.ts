/**
 * A table in memory. A row that a transaction has changed is there twice, as it was and as it will be, and everybody
 * else sees it as it was. Rows are replaced, never changed.
 */
import { refKey, type WorkspaceId } from "../../domain/Ids.ts"
import type { Change, TableName } from "../Commit.ts"
import { foreignKeyViolation, uniqueViolation } from "./DatabaseError.ts"
import { always, holderIn, type Index, mayBe } from "./Index.ts"
import { follow, Lock, type Mode } from "./Lock.ts"
import type { Event, Steps, Tx } from "./Tx.ts"

const nothing: ReadonlyArray<never> = []

/** The place of one row, by its primary key. */
export class Slot<Row extends object> extends Lock {
  readonly table: Table<Row>
  readonly key: string
  committed: Row | null = null
  /** Who has changed it and has not ended, and what it is for him: null when he deleted it. */
  writer: Tx | null = null
  pending: Row | null = null
  /** Deleted, or never there after all, and that is committed. */
  gone = false
  /** The writer has deleted the row and put another in its place: whoever waits for the row waits for one that goes. */
  replaced = false
  /** What else the writer has made of it meanwhile. Whoever wants something of that alone waits for his end all the same. */
  past: ReadonlyArray<Row> = nothing
  /** The statement of the writer that changed it last. */
  statement = 0

  constructor(table: Table<Row>, key: string) {
    super()
    this.table = table
    this.key = key
  }

  override get written(): boolean {
    return this.writer !== null
  }

  /** A row that is gone keeps nobody waiting, and nobody has it. */
  override take(by: Tx, mode?: Mode): boolean {
    if (this.gone || !super.take(by, mode)) return this.gone
    by.numbered()
    return true
  }

  /** The row as this transaction sees it. */
  seen(tx: Tx): Row | null {
    return this.writer === tx ? this.pending : this.committed
  }

  /** Whether the present statement of this transaction has changed it. It does so once. */
  touched(tx: Tx): boolean {
    return this.writer === tx && this.statement === tx.statement
  }
}

/** A foreign key: the row with this primary key must exist when the statement ends. Null: nothing is referred to. */
export interface Reference<Row> {
  readonly name: string
  readonly table: { readonly get: (tx: Tx, key: string) => object | null }
  readonly keyOf: (row: Row) => string | null
}

export interface TableOptions<Row extends object> {
  readonly name: TableName
  /** In the schema, where it is another one. */
  readonly schemaName?: string
  readonly keyOf: (row: Row) => string
  readonly unique?: ReadonlyArray<Index<Row>>
  readonly indexes?: ReadonlyArray<Index<Row>>
  readonly references?: ReadonlyArray<Reference<Row>>
  /** Throws when no row may be like this. */
  readonly check?: (row: Row) => void
  /** Throws when a row may not become this: triggers that refuse, when the statement has done all it does. */
  readonly rule?: (before: Row | null, after: Row | null) => void
}

export class Table<Row extends object> {
  readonly name: TableName
  /** What everybody sees. */
  readonly committed = new Map<string, Row>()
  readonly slots = new Map<string, Slot<Row>>()
  readonly keyOf: (row: Row) => string
  private readonly primary: string
  private readonly unique: ReadonlyArray<Index<Row>>
  private readonly indexes: ReadonlyArray<Index<Row>>
  private readonly references: ReadonlyArray<Reference<Row>>
  /** Throws when no row may be like this. Whoever updates looks before he waits for the row, and again afterwards. */
  readonly check: (row: Row) => void
  private readonly rule: ((before: Row | null, after: Row | null) => void) | null

  constructor(options: TableOptions<Row>) {
    const { check = () => {}, indexes = [], keyOf, name, references = [], rule = null, schemaName = name, unique = [] } = options
    this.name = name
    this.keyOf = keyOf
    this.primary = `${schemaName}_pkey`
    this.unique = unique
    this.indexes = indexes
    this.references = references
    this.check = check
    this.rule = rule
  }

  /** A row that is there from the beginning. */
  begin(row: Row): void {
    const slot = new Slot(this, this.keyOf(row))
    for (const index of [...this.unique, ...this.indexes]) index.enter(slot, row)
    slot.committed = row
    this.slots.set(slot.key, slot)
    this.committed.set(slot.key, row)
  }

  /** The row with this primary key as a transaction sees it. */
  get(tx: Tx, key: string): Row | null {
    return this.slots.get(key)?.seen(tx) ?? null
  }

  /** Inserts a row, once nobody in flight has anything of it that must be unique. */
  *insert(tx: Tx, row: Row): Steps<Slot<Row>> {
    this.check(row)
    tx.numbered()
    yield* this.await(tx, this.primary, () => this.holder(tx, row))
    const slot = this.place(tx, row)
    yield* this.enterUnique(tx, slot, row)
    return slot
  }

  /**
   * The same, but null if what it must have alone is taken: anything of it, or what `arbiter` keeps. That is looked at
   * first; a row that is on its way into the table is there for whoever wants the same.
   */
  *insertUnlessTaken(tx: Tx, row: Row, arbiter: string | null = null): Steps<Slot<Row> | null> {
    this.check(row)
    const isArbiter = (name: string) => arbiter === null || name === arbiter
    const arbiters = this.unique.filter(({ name }) => isArbiter(name))
    const finders = arbiters.map((index) => () => holderIn(index, tx, row, null))
    if (isArbiter(this.primary)) finders.unshift(() => this.holder(tx, row))
    while (true) {
      for (const find of finders) {
        for (let rival = find(); rival !== null; rival = find()) {
          if (rival.writer === null || rival.writer === tx) return null
          yield follow(tx, rival.writer)
        }
      }
      if (!isArbiter(this.primary)) yield* this.await(tx, this.primary, () => this.holder(tx, row))
      // While it waited, somebody may have taken what decides.
      if (finders.some((find) => find() !== null)) continue
      const slot = this.place(tx, row)
      for (const index of arbiters) index.enter(slot, row)
      yield* this.enterUnique(tx, slot, row)
      return slot
    }
  }

  /** Updates a row that this transaction has locked, once nobody in flight has what it must have alone. */
  *update(tx: Tx, slot: Slot<Row>, row: Row): Steps<void> {
    this.write(tx, slot, row)
    yield* this.enterUnique(tx, slot, row)
  }

  /** Updates, or deletes with null, a row that this transaction has locked, and nothing in it that must be unique. */
  set(tx: Tx, slot: Slot<Row>, row: Row | null): void {
    this.write(tx, slot, row)
    if (row !== null) for (const index of this.unique) index.enter(slot, row)
  }

  /** What a transaction has made of a row becomes what everybody sees. */
  commit(slot: Slot<Row>): Change | null {
    const { committed: before, pending: after, replaced } = slot
    const stays = replaced ? null : after
    this.unindex(slot, before, stays)
    for (const row of slot.past) this.unindex(slot, row, stays)
    slot.version++
    if (replaced) this.unindex(slot, after, null)
    this.settle(slot, stays)
    if (after === null) {
      this.slots.delete(slot.key)
      this.committed.delete(slot.key)
    } else this.committed.set(slot.key, after)
    if (replaced && after !== null) this.begin(after)
    if (before === null && after === null) return null
    return { table: this.name, key: slot.key, before, after } as unknown as Change
  }

  /** Nothing has happened. */
  rollBack(slot: Slot<Row>): void {
    this.unindex(slot, slot.pending, slot.committed)
    for (const row of slot.past) this.unindex(slot, row, slot.committed)
    this.settle(slot, slot.committed)
    if (slot.committed === null) this.slots.delete(slot.key)
  }

  /** Throws when what an inserted row refers to does not exist, or a row may not have become this. */
  checkEvent(tx: Tx, { after, before, slot }: Event): void {
    if (before === null && slot.seen(tx) !== null) {
      for (const { keyOf, name, table } of this.references) {
        const key = keyOf(after as Row)
        if (key !== null && table.get(tx, key) === null) throw foreignKeyViolation(name)
      }
    }
    this.rule?.(before as Row | null, after as Row | null)
  }

  private place(tx: Tx, row: Row): Slot<Row> {
    const key = this.keyOf(row)
    let slot = this.slots.get(key)
    if (slot === undefined) this.slots.set(key, slot = new Slot(this, key))
    slot.take(tx)
    slot.replaced ||= slot.committed !== null
    this.write(tx, slot, row)
    return slot
  }

  /** What a row is to be is there, but for what it must have alone. */
  private write(tx: Tx, slot: Slot<Row>, row: Row | null): void {
    const before = slot.seen(tx)
    if (row !== null) this.check(row)
    if (this.rule !== null || (before === null && this.references.length > 0)) {
      tx.events.push({ slot: slot as unknown as Slot<object>, before, after: row })
    }
    if (slot.writer === null) {
      slot.writer = tx
      tx.writes.push(slot as unknown as Slot<object>)
    } else if (slot.pending !== null) {
      slot.past = [...slot.past, slot.pending]
      for (const index of this.indexes) index.leave(slot, slot.pending, slot.committed)
    }
    slot.pending = row
    slot.statement = tx.statement
    if (row !== null) for (const index of this.indexes) index.enter(slot, row)
  }

  /** Enters one unique index after the other, each once nobody in flight is in the way. */
  private *enterUnique(tx: Tx, slot: Slot<Row>, row: Row): Steps<void> {
    for (const index of this.unique) {
      yield* this.await(tx, index.name, () => holderIn(index, tx, row, slot))
      index.enter(slot, row)
    }
  }

  /** Waits until nobody has, or may come to have, what a row must have alone. */
  private *await(tx: Tx, constraint: string, find: () => Slot<Row> | null): Steps<void> {
    for (let slot = find(); slot !== null; slot = find()) {
      if (slot.writer === null || slot.writer === tx) throw uniqueViolation(constraint)
      yield follow(tx, slot.writer)
    }
  }

  /** Who has, or may come to have, the primary key of this row. */
  private holder(tx: Tx, row: Row): Slot<Row> | null {
    const slot = this.slots.get(this.keyOf(row))
    return slot !== undefined && mayBe(slot, tx, always) ? slot : null
  }

  /** Nobody is changing it any more. */
  private settle(slot: Slot<Row>, row: Row | null): void {
    slot.writer = null
    slot.committed = row
    slot.gone = row === null
    slot.pending = null
    slot.replaced = false
    slot.past = nothing
  }

  /** Takes a row out of every index that does not hold it for `stays`. */
  private unindex(slot: Slot<Row>, row: Row | null, stays: Row | null): void {
    if (row === null || row === stays) return
    for (const index of [...this.unique, ...this.indexes]) index.leave(slot, row, stays)
  }
}

/** The slots whose row, as this transaction sees it, is like this. */
export const matching = <Row extends object>(
  slots: ReadonlyArray<Slot<Row>>,
  tx: Tx,
  like: (row: Row) => boolean
): Array<Slot<Row>> =>
  slots.filter((slot) => {
    const row = slot.seen(tx)
    return row !== null && like(row)
  })

/** The slots of these references that have a row for this transaction, each once. */
export const named = <Row extends object>(
  table: Table<Row>,
  tx: Tx,
  refs: ReadonlyArray<{ readonly workspaceId: WorkspaceId; readonly id: string }>
): ReadonlyArray<Slot<Row>> => {
  const slots = new Set<Slot<Row>>()
  for (const ref of refs) {
    const slot = table.slots.get(refKey(ref))
    if (slot !== undefined && slot.seen(tx) !== null) slots.add(slot)
  }
  return [...slots]
}

/** Locks up to `limit` of these that nobody else has, and returns their rows. */
export const takeFree = <Row extends object>(tx: Tx, slots: ReadonlyArray<Slot<Row>>, limit: number): ReadonlyArray<Row> => {
  const rows: Array<Row> = []
  for (const slot of slots) {
    if (rows.length >= limit) break
    if (slot.take(tx)) rows.push(slot.seen(tx)!)
  }
  return rows
}
