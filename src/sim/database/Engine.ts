/**
 * Runs statements to their end: lets them wait and wakes them in the order of their coming, breaks circles, bounds every
 * wait, and makes what was committed visible at once.
 */
import type { Change, Commit } from "../Commit.ts"
import type { Entry, Kernel } from "../Kernel.ts"
import {
  cancelled, connectionLost, DatabaseError, deadlockDetected, inFailedTransaction, lockTimeout
} from "./DatabaseError.ts"
import { behind, circle, leave, movesOn, type Wait } from "./Lock.ts"
import type { Steps, Tx } from "./Tx.ts"

/** What one statement does. It happens at one instant, but for its waits. */
export type Statement<A> =
  | { readonly waits: false; readonly body: (tx: Tx) => A }
  | { readonly waits: true; readonly body: (tx: Tx) => Steps<A> }

/** What became of it: an error, or a value. */
export type Done<A> = (error: DatabaseError | null, value: A | null) => void

/** As sessions are opened with, and as the server has it, in microseconds. */
const lockTimeoutMicros = 10_000_000
const idleTimeoutMicros = 60_000_000
const deadlockTimeoutMicros = 1_000_000

interface Suspended {
  readonly steps: Steps<unknown>
  readonly done: Done<never>
}

export class Engine {
  private readonly kernel: Kernel
  /** What can be ended from outside: transactions in sessions, and statements that wait. */
  private readonly open = new Map<Tx, Suspended | null>()
  private readonly listeners: Array<(commit: Commit) => void> = []
  private readonly woken: Array<Wait> = []
  private waking = false
  private guard: Entry | null = null

  /** Whose turn it is when this many can go on at once. On a server it is anybody's; unless given, the first one's. */
  private readonly pick: (count: number) => number

  constructor(kernel: Kernel, pick: (count: number) => number = () => 0) {
    this.kernel = kernel
    this.pick = pick
  }

  onCommit(listener: (commit: Commit) => void): void {
    this.listeners.push(listener)
  }

  /** Whether some transaction waits for another. */
  get blocked(): boolean {
    return Array.from(this.open.keys()).some(({ wait }) => wait !== null)
  }

  /** Everybody who waits, and for whom: those who have what is wanted, and those who wanted it before. */
  get waits(): ReadonlyArray<{ readonly by: Tx; readonly behind: ReadonlyArray<Tx> }> {
    return Array.from(this.open.keys()).flatMap((by) =>
      by.wait === null ? [] : [{ by, behind: behind(by.wait) as ReadonlyArray<Tx> }])
  }

  /** A transaction that stays open between its statements. */
  begin(tx: Tx): void {
    this.open.set(tx, null)
    this.idle(tx)
  }

  /** Runs a statement. It may be done when this returns, or later; its transaction stays open. */
  execute<A>(tx: Tx, statement: Statement<A>, done: Done<A>): void {
    if (tx.failed) return done(inFailedTransaction, null)
    if (statement.waits) return this.advance(tx, { steps: statement.body(tx), done: done as Done<never> })
    let value: A
    try {
      value = statement.body(tx)
      checkEvents(tx)
    } catch (error) {
      return this.fail(tx, error, done)
    }
    done(null, value)
  }

  /** Nothing is under way in it now. */
  idle(tx: Tx): void {
    if (tx.over) return
    tx.idleSince = this.kernel.micros
    this.watch(tx.idleSince + idleTimeoutMicros)
  }

  /** Everything that it has done is visible from now on. */
  commit(tx: Tx, at: number): void {
    const changes = tx.writes.length === 0 ? [] : this.publish(tx)
    this.release(tx)
    this.close(tx)
    if (changes.length > 0) {
      for (const listen of this.listeners) listen({ at, by: tx.by, sentAt: tx.sentAt, changes })
    }
    this.wake()
  }

  rollBack(tx: Tx): void {
    this.undo(tx)
    this.close(tx)
    this.wake()
  }

  /** A statement of it fails before it does anything. */
  refuse(tx: Tx): void {
    this.undo(tx)
    tx.failed = true
    this.wake()
  }

  /** Somebody gives up a statement: it fails if it waits. */
  cancel(tx: Tx): void {
    if (tx.wait !== null) this.interrupt(tx, cancelled)
  }

  /** The server ends a session: its transaction is undone, whatever it is doing. */
  kill(tx: Tx): void {
    tx.killed = true
    if (tx.wait !== null) return this.interrupt(tx, connectionLost)
    this.rollBack(tx)
  }

  /** The same for all of them at once: nobody gets what another had. */
  killAll(): void {
    this.waking = true
    for (const tx of Array.from(this.open.keys())) this.kill(tx)
    this.woken.length = 0
    this.waking = false
  }

  private publish(tx: Tx): ReadonlyArray<Change> {
    const changes: Array<Change> = []
    for (const slot of tx.writes) {
      const change = slot.table.commit(slot)
      if (change !== null) changes.push(change)
    }
    tx.writes.length = 0
    return changes
  }

  private advance(tx: Tx, run: Suspended): void {
    let step: IteratorResult<Wait, unknown>
    try {
      step = run.steps.next()
      if (step.done === true) checkEvents(tx)
    } catch (error) {
      return this.fail(tx, error, run.done)
    }
    if (step.done === true) run.done(null, step.value as never)
    else this.suspend(tx, run, step.value)
  }

  private suspend(tx: Tx, run: Suspended, wait: Wait): void {
    tx.wait = wait
    movesOn(wait)
    this.open.set(tx, run)
    this.count(wait)
    this.breakCircle(wait)
  }

  private count(wait: Wait): void {
    wait.since = this.kernel.micros
    this.watch(wait.since + lockTimeoutMicros)
  }

  /**
   * Whoever has waited for a second looks for a circle, once, and gives up if it is in one: of those in this circle the
   * first whose second is not over.
   */
  private breakCircle(closing: Wait): void {
    const waits = circle(closing)
    if (waits === null) return
    const now = this.kernel.micros
    const looking = waits.filter(({ since }) => since + deadlockTimeoutMicros >= now)
    const since = looking.reduce((least, wait) => Math.min(least, wait.since), closing.since)
    const firsts = [closing, ...looking.filter((wait) => wait !== closing)].filter((wait) => wait.since === since)
    const first = firsts[firsts.length === 1 ? 0 : this.pick(firsts.length)]!
    this.kernel.after((first.since + deadlockTimeoutMicros - now) / 1_000, "deadlock timeout", () => {
      if (first.by.wait === first && circle(first) !== null) this.interrupt(first.by as Tx, deadlockDetected)
      if (closing.by.wait === closing) this.breakCircle(closing)
    })
  }

  /** Ends the wait of a transaction, and with it the transaction. */
  private interrupt(tx: Tx, error: DatabaseError): void {
    const run = this.open.get(tx)!
    leave(tx.wait!, this.woken)
    tx.wait = null
    this.fail(tx, error, run.done)
  }

  private fail<A>(tx: Tx, error: unknown, done: Done<A>): void {
    // Anything else is a bug of the simulation, and no answer of a database.
    if (!(error instanceof DatabaseError)) throw error
    this.refuse(tx)
    done(error, null)
  }

  /** Nothing of it has happened, and nobody waits for it. */
  private undo(tx: Tx): void {
    for (const slot of tx.writes) slot.table.rollBack(slot)
    tx.writes.length = 0
    this.release(tx)
  }

  private release(tx: Tx): void {
    for (const lock of tx.locks) lock.release(tx, this.woken)
    tx.locks.length = 0
    for (const { wait } of this.open.keys()) {
      if (wait === null || !movesOn(wait)) continue
      // Whoever waited for one waits for the next now, and counts anew.
      this.count(wait)
      this.breakCircle(wait)
    }
    if (tx.followers.length > 0) this.woken.push(...tx.followers.splice(0))
  }

  private close(tx: Tx): void {
    tx.over = true
    this.open.delete(tx)
  }

  /** Lets those go on whose wait is over, and those whose wait that ends, in order. */
  private wake(): void {
    if (this.waking || this.woken.length === 0) return
    this.waking = true
    try {
      while (this.woken.length > 0) {
        const wait = this.woken.splice(this.pick(this.woken.length), 1)[0]!
        const tx = wait.by as Tx
        const run = this.open.get(tx)!
        tx.wait = null
        this.open.set(tx, null)
        this.advance(tx, run)
      }
    } finally {
      this.waking = false
    }
  }

  /** Looks after every bound again at this time, in microseconds, unless it does so before. */
  private watch(at: number): void {
    if (this.guard !== null && this.guard.at <= at) return
    if (this.guard !== null) this.kernel.cancel(this.guard)
    this.guard = this.kernel.postAt(at, this.kernel.world, "event", "timeouts", () => this.expire(), false)
  }

  private expire(): void {
    this.guard = null
    const now = this.kernel.micros
    for (const tx of Array.from(this.open.keys())) {
      if (tx.wait !== null && tx.wait.since + lockTimeoutMicros <= now) this.interrupt(tx, lockTimeout)
      else if (tx.idleSince !== null && tx.idleSince + idleTimeoutMicros <= now) this.kill(tx)
    }
    for (const { idleSince, wait } of this.open.keys()) {
      if (wait !== null) this.watch(wait.since + lockTimeoutMicros)
      else if (idleSince !== null) this.watch(idleSince + idleTimeoutMicros)
    }
  }
}

/** Foreign keys, and triggers that refuse: they look when a statement has done all it does. */
const checkEvents = (tx: Tx): void => {
  for (const event of tx.events) event.slot.table.checkEvent(tx, event)
}
