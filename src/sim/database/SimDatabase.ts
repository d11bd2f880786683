/** The database of a simulated world: transactions as READ COMMITTED has them, in memory, and all that can go wrong. */
import { Context, Deferred, Effect, Exit, Scope } from "effect"
import { type OperationRef, refKey } from "../../domain/Ids.ts"
import { ApiKeys } from "../../services/ApiKeys.ts"
import { Ledger } from "../../services/Ledger.ts"
import { Store } from "../../services/Store.ts"
import { OutcomeUnknown, Transaction } from "../../services/Transaction.ts"
import { VectorIndex } from "../../services/VectorIndex.ts"
import type { Commit, Committed } from "../Commit.ts"
import { HostClock } from "../HostClock.ts"
import type { Kernel } from "../Kernel.ts"
import * as SimApiKeys from "../ports/SimApiKeys.ts"
import * as SimLedger from "../ports/SimLedger.ts"
import * as SimMemoryStore from "../ports/SimMemoryStore.ts"
import * as SimOperationStore from "../ports/SimOperationStore.ts"
import * as SimTransaction from "../ports/SimTransaction.ts"
import * as SimVectorIndex from "../ports/SimVectorIndex.ts"
import { type Process, processOf } from "../Process.ts"
import type { Strikes } from "../Strikes.ts"
import { Connections } from "./Connections.ts"
import { Engine, type Statement } from "./Engine.ts"
import { indexFaults, statementFaults } from "./Fate.ts"
import { Session } from "./Session.ts"
import { Tables } from "./Tables.ts"
import type { Steps, Tx } from "./Tx.ts"

export interface SimDatabaseOptions {
  readonly kernel: Kernel
  readonly strikes: Strikes
  /** The clock of its machine. An exact one, unless given. */
  readonly clock?: HostClock
  /** Of the vectors that its index takes. Any, unless given. */
  readonly dimension?: number
  /** Of each process, for everything but leases. Default 10. */
  readonly connections?: number
  /** Of each process, for renewing leases. Default 2. */
  readonly leaseConnections?: number
  /** Whose turn it is when this many who waited can go on at once. The first one's, unless given. */
  readonly pick?: (count: number) => number
}

/** The transaction that a fiber is in. */
const CurrentSession = Context.Reference<Session | null>("indelible/sim/CurrentSession", { defaultValue: () => null })

const unknown = () => new OutcomeUnknown({ reason: "connection" })

export class SimDatabase {
  readonly tables = new Tables()
  /** What is durable and visible, as oracles see it. */
  readonly committed: Committed = this.tables.committed
  private readonly kernel: Kernel
  private readonly clock: HostClock
  private readonly engine: Engine
  private readonly connections: Connections
  private readonly dimension: number | null

  constructor({ clock, connections = 10, dimension, kernel, leaseConnections = 2, pick, strikes }: SimDatabaseOptions) {
    this.dimension = dimension ?? null
    this.kernel = kernel
    this.clock = clock ?? new HostClock(kernel, { name: "database" })
    this.engine = new Engine(kernel, pick)
    this.connections = new Connections({
      kernel,
      strikes,
      engine: this.engine,
      now: () => this.now,
      pools: { connections, leaseConnections }
    })
  }

  /** Its clock, in milliseconds and parts of them. */
  get now(): number {
    return this.clock.wallMicros / 1_000
  }

  /** Whether a transaction waits for another. */
  get blocked(): boolean {
    return this.engine.blocked
  }

  /** Which processes wait for which others. */
  get waits(): ReadonlyArray<{ readonly by: string; readonly behind: ReadonlyArray<string> }> {
    return this.engine.waits.map(({ behind, by }) => ({ by: by.by, behind: behind.map(({ by }) => by) }))
  }

  /** Whether a transaction has the row of this operation locked. */
  isLocked(ref: OperationRef): boolean {
    return (this.tables.operations.slots.get(refKey(ref))?.holder ?? null) !== null
  }

  /** Calls `listener` once for each commit that changes something, when its changes are visible. */
  onCommit(listener: (commit: Commit) => void): void {
    this.engine.onCommit(listener)
  }

  /** Everybody's connection breaks, every open transaction is undone, and nobody is let in until `ms` are over. */
  down(ms: number): void {
    this.kernel.mark(this.kernel.world, "note", "database", `down for ${ms} ms`)
    this.connections.down(ms)
  }

  /** All that programs see of it. Any process may use them: whatever belongs to one of them is kept apart. */
  ports(): Context.Context<Transaction | Store | Ledger | ApiKeys | VectorIndex> {
    const store = Store.of({ operations: SimOperationStore.make(this), memories: SimMemoryStore.make(this) })
    return Context.make(Store, store).pipe(
      Context.add(Transaction, SimTransaction.make(this)),
      Context.add(Ledger, SimLedger.make(this)),
      Context.add(ApiKeys, SimApiKeys.make(this)),
      Context.add(VectorIndex, SimVectorIndex.make(this, this.dimension))
    )
  }

  /** A statement that waits for nobody. In the transaction of its fiber, or by itself. */
  ask<A>(label: string, body: (tx: Tx) => A): Effect.Effect<A, OutcomeUnknown> {
    return this.statement(label, { waits: false, body })
  }

  /** A statement that may have to wait for somebody. It reads all that it goes by before it waits. */
  askInTurn<A>(label: string, body: (tx: Tx) => Steps<A>): Effect.Effect<A, OutcomeUnknown> {
    return this.statement(label, { waits: true, body })
  }

  /** A statement on a connection kept for leases, whatever transaction its fiber is in. */
  askAside<A>(label: string, body: (tx: Tx) => A): Effect.Effect<A, OutcomeUnknown> {
    return Effect.withFiber((fiber) => {
      const client = this.connections.clientOf(processOf(fiber))
      return this.connections.alone(client, client.leases, label, { waits: false, body }, statementFaults)
    })
  }

  /** A statement of the vector index, which is never part of a transaction and has troubles of its own. */
  askIndex<A>(label: string, body: (tx: Tx) => Steps<A>): Effect.Effect<A, OutcomeUnknown> {
    return Effect.withFiber((fiber) => {
      const client = this.connections.clientOf(processOf(fiber))
      return this.connections.alone(client, client.main, label, { waits: true, body }, indexFaults)
    })
  }

  /** What a process keeps in its memory: made when it is first asked for, outside of any transaction, and gone with it. */
  oncePerProcess<A>(make: Effect.Effect<A, never, Scope.Scope>): Effect.Effect<A> {
    const made = new WeakMap<Process, Deferred.Deferred<A>>()
    return Effect.withFiber((fiber) => {
      const process = processOf(fiber)
      const known = made.get(process)
      if (known !== undefined) return Deferred.await(known)
      const deferred = Deferred.makeUnsafe<A>()
      made.set(process, deferred)
      return make.pipe(
        Scope.provide(Scope.makeUnsafe()),
        Effect.provideService(CurrentSession, null),
        Effect.tap((value) => Deferred.succeed(deferred, value)),
        Effect.uninterruptible
      )
    })
  }

  /** As the adapter does it: one inside another joins it, and a connection that is lost hides what failed before. */
  readonly transaction = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | OutcomeUnknown, R> =>
    Effect.withFiber((fiber) => {
      const outer = fiber.getRef(CurrentSession)
      if (outer !== null) return Effect.tapCause(effect, () => Effect.sync(() => outer.spoiled = true))
      const client = this.connections.clientOf(processOf(fiber))
      const session = new Session()
      const inside = Effect.tap(effect, () =>
        session.spoiled ? Effect.die(new Error("A transaction went on after something inside it had failed")) : Effect.void)
      const begun = Effect.flatMap(this.connections.begin(client, session), () => {
        session.begun = true
        return Effect.provideService(inside, CurrentSession, session)
      })
      const end = (succeeded: boolean): Effect.Effect<void, OutcomeUnknown> => {
        if (!session.begun) return Effect.sync(() => this.connections.lose(client, session))
        if (session.broken) return Effect.fail(unknown())
        return succeeded ? this.connections.commit(client, session) : this.connections.rollBack(client, session)
      }
      return Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(Effect.exit(restore(begun)), (exit) => Effect.andThen(end(Exit.isSuccess(exit)), exit)))
    })

  private statement<A>(label: string, statement: Statement<A>): Effect.Effect<A, OutcomeUnknown> {
    return Effect.withFiber((fiber) => {
      const session = fiber.getRef(CurrentSession)
      const client = this.connections.clientOf(processOf(fiber))
      return session === null
        ? this.connections.alone(client, client.main, label, statement, statementFaults)
        : this.connections.inside(client, session, label, statement)
    })
  }
}
