/** One transaction of the simulated database: what it has locked, what it has written, and by which clock. */
import type { Key } from "../Keyed.ts"
import type { Holder, Lock, Wait } from "./Lock.ts"
import type { Slot } from "./Table.ts"

/** What a statement yields when it cannot go on: it goes on when the wait is over. */
export type Steps<A> = Generator<Wait, A, void>

/** How a statement has changed a row. Null: it did not exist, or does no more. */
export interface Event {
  readonly slot: Slot<object>
  readonly before: object | null
  readonly after: object | null
}

/** How many have a number. Only their order is ever looked at, and it is that of one database. */
let numbers = 0

export class Tx implements Holder {
  /** The process incarnation that began it. */
  readonly by: string
  /** What `now()` is in it: milliseconds of the database clock. */
  readonly startedAt: number
  /** What `statement_timestamp()` is in its present statement. */
  statementAt: number
  /** Virtual time at which its last request left its process, in milliseconds. */
  sentAt: number
  /** What is random in its present statement. */
  key: Key
  readonly locks: Array<Lock> = []
  readonly followers: Array<Wait> = []
  wait: Wait | null = null
  /** Rows that it has changed, each once. */
  readonly writes: Array<Slot<object>> = []
  /** What its present statement has done that is looked at when it ends: foreign keys, and triggers that refuse. */
  readonly events: Array<Event> = []
  /** Which of its statements is the present one. A statement changes a row once. */
  statement = 0
  /** Something in it has failed, and all of it is undone: it only waits for its end. */
  failed = false
  /** The server has ended its session, or is down. */
  killed = false
  /** Committed or rolled back. */
  over = false
  /** Virtual time since when it has had nothing to do, in microseconds. Null while it has, and outside of sessions. */
  idleSince: number | null = null
  private number: number | null = null

  constructor(by: string, now: number, sentAt: number, key: Key) {
    this.by = by
    this.startedAt = now
    this.statementAt = now
    this.sentAt = sentAt
    this.key = key
  }

  numbered(): number {
    return this.number ??= ++numbers
  }

  /** A statement begins. */
  next(now: number, sentAt: number, key: Key): void {
    this.statementAt = now
    this.sentAt = sentAt
    this.key = key
    this.statement++
    this.events.length = 0
    this.idleSince = null
  }

  /** Rows in an order that no statement promises. */
  inAnyOrder<A>(rows: ReadonlyArray<A>): ReadonlyArray<A> {
    return rows.length < 2 ? rows : this.key.of("order").shuffled(rows)
  }

  /** Takes a row to change it, without locking it first. */
  *claim(lock: Lock): Steps<void> {
    this.numbered()
    if (!lock.take(this)) yield lock.queue(this, "exclusive", true)
  }

  /** Takes a lock, and waits for it if somebody has it. */
  *lock(lock: Lock, mode: Wait["mode"] = "exclusive"): Steps<void> {
    if (!lock.take(this, mode)) yield lock.queue(this, mode)
  }
}
