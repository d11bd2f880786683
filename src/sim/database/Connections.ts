/**
 * The way of every request to the database and back. What has arrived is done, whoever hears of it; what a dead process
 * had open is undone a little later.
 */
import { Effect, Exit } from "effect"
import type { OutcomeUnknown } from "../../services/Transaction.ts"
import type { FaultKind } from "../Faults.ts"
import { type Call, io } from "../Io.ts"
import type { Kernel } from "../Kernel.ts"
import type { Key } from "../Keyed.ts"
import type { Process } from "../Process.ts"
import type { Strikes } from "../Strikes.ts"
import { Client, type Pool, type PoolSizes } from "./Client.ts"
import { connectionLost, exitOf, rolledBack } from "./DatabaseError.ts"
import type { Engine, Statement } from "./Engine.ts"
import { beginFaults, commitFaults, Fate, latencyMs, type Reply, rollbackFaults, statementFaults } from "./Fate.ts"
import { Session } from "./Session.ts"
import { Tx } from "./Tx.ts"

export interface ConnectionsOptions {
  readonly kernel: Kernel
  readonly strikes: Strikes
  readonly engine: Engine
  /** Milliseconds of the database clock. */
  readonly now: () => number
  readonly pools: PoolSizes
}

export class Connections {
  private readonly kernel: Kernel
  private readonly engine: Engine
  private readonly now: () => number
  private readonly pools: PoolSizes
  private readonly key: Key
  private readonly clients = new Map<Process, Client>()
  private readonly fate: Fate

  constructor({ engine, kernel, now, pools, strikes }: ConnectionsOptions) {
    this.kernel = kernel
    this.fate = new Fate(kernel, strikes)
    this.engine = engine
    this.now = now
    this.pools = pools
    this.key = kernel.key.of("latency")
  }

  /** Everything that is under way is lost, and nobody is let in until `ms` are over. */
  down(ms: number): void {
    this.fate.down(ms)
    this.engine.killAll()
  }

  clientOf(process: Process): Client {
    const known = this.clients.get(process)
    if (known !== undefined) return known
    const client = new Client(process, this.key, this.pools)
    this.clients.set(process, client)
    process.onDeath(() => {
      this.clients.delete(process)
      for (const session of client.sessions) this.hangUp(client, session)
    })
    return client
  }

  /** A statement that is a transaction of its own. */
  alone<A>(
    client: Client,
    pool: Pool,
    label: string,
    statement: Statement<A>,
    faults: ReadonlyArray<FaultKind>
  ): Effect.Effect<A, OutcomeUnknown> {
    const { engine } = this
    const key = client.next(label)
    const sentAt = this.kernel.now
    let tx: Tx | null = null
    const serve = (reply: Reply<A>) => {
      const mine = tx = new Tx(client.process.id, this.now(), sentAt, key)
      engine.execute(mine, statement, (error, value) => {
        if (error === null) engine.commit(mine, this.now())
        else engine.rollBack(mine)
        reply(error === null ? Exit.succeed(value as A) : exitOf(error))
      })
    }
    return io({
      label,
      latencyMs: latencyMs(key),
      arrive: (call) =>
        pool.take((late) => {
          // It was never sent: the process or the caller was gone before a connection was free.
          if (late && !call.waiting) return pool.give()
          const finish = () => pool.give()
          this.fate.meet({ call, key, faults, serve, refuse: nothing, lose: nothing, later: nothing, finish })
        }),
      abandoned: () => {
        if (tx !== null) engine.cancel(tx)
      }
    })
  }

  /** A statement of an open transaction. */
  inside<A>(client: Client, session: Session, label: string, statement: Statement<A>): Effect.Effect<A, OutcomeUnknown> {
    let running: Tx | null = null
    const serve = (tx: Tx, reply: Reply<A>) => {
      running = tx
      this.engine.execute(tx, statement, (error, value) => {
        running = null
        reply(error === null ? Exit.succeed(value as A) : exitOf(error))
      })
    }
    const cancel = () => {
      if (running !== null) this.engine.cancel(running)
    }
    return this.request<A>(client, session, { label, faults: statementFaults, serve, finish: nothing, abandoned: cancel })
  }

  begin(client: Client, session: Session): Effect.Effect<void, OutcomeUnknown> {
    const key = client.next("begin")
    const sentAt = this.kernel.now
    const place = session.send()
    client.sessions.add(session)
    const serve = (reply: Reply<void>) => {
      session.tx = new Tx(client.process.id, this.now(), sentAt, key)
      this.engine.begin(session.tx)
      reply(Exit.void)
    }
    const lose = () => this.lose(client, session)
    const finish = () => session.done()
    return io({
      label: "begin",
      latencyMs: latencyMs(key),
      arrive: (call) =>
        client.main.take((late) => {
          if ((late && !call.waiting) || session.broken) return client.main.give()
          session.connected = true
          const arrival = { call, key, faults: beginFaults, serve, refuse: nothing, lose, later: nothing, finish }
          session.receive(place, () => this.fate.meet(arrival))
        })
    })
  }

  /** What its failure leaves of a transaction depends on whether it arrived. */
  commit(client: Client, session: Session): Effect.Effect<void, OutcomeUnknown> {
    const serve = (tx: Tx, reply: Reply<void>) => {
      if (tx.failed) {
        this.engine.rollBack(tx)
        return reply(exitOf(rolledBack))
      }
      this.engine.commit(tx, this.now())
      reply(Exit.void)
    }
    return this.request<void>(client, session, {
      label: "commit",
      faults: commitFaults,
      serve,
      finish: () => this.leave(client, session),
      abandoned: nothing
    })
  }

  rollBack(client: Client, session: Session): Effect.Effect<void, OutcomeUnknown> {
    const serve = (tx: Tx, reply: Reply<void>) => {
      this.engine.rollBack(tx)
      reply(Exit.void)
    }
    return this.request<void>(client, session, {
      label: "rollback",
      faults: rollbackFaults,
      serve,
      finish: () => this.leave(client, session),
      abandoned: nothing
    })
  }

  /** The connection is gone. The server undoes what was open on it once it has noticed. */
  lose(client: Client, session: Session): void {
    if (session.broken) return
    session.broken = true
    this.leave(client, session)
    this.hangUp(client, session)
  }

  private request<A>(client: Client, session: Session, { abandoned, faults, finish, label, serve }: {
    readonly label: string
    readonly faults: ReadonlyArray<FaultKind>
    readonly serve: (tx: Tx, reply: Reply<A>) => void
    readonly finish: () => void
    readonly abandoned: () => void
  }): Effect.Effect<A, OutcomeUnknown> {
    if (session.broken) return exitOf(connectionLost)
    const key = client.next(label)
    const sentAt = this.kernel.now
    const place = session.send()
    const lose = () => this.lose(client, session)
    const receive = (call: Call<A, OutcomeUnknown>) => {
      const tx = session.tx!
      const done = () => {
        finish()
        this.engine.idle(tx)
        session.done()
      }
      if (session.broken || tx.killed) {
        lose()
        done()
        return call.answer(exitOf(connectionLost))
      }
      tx.next(this.now(), sentAt, key)
      this.fate.meet<A>({
        call,
        key,
        faults: tx.failed ? none : faults,
        serve: (reply) => serve(tx, reply),
        refuse: () => this.engine.refuse(tx),
        lose,
        later: (ms) => {
          session.late = true
          this.kernel.after(ms, "late commit", () => this.engine.commit(tx, this.now()))
        },
        finish: done
      })
    }
    return io({
      label,
      latencyMs: latencyMs(key),
      arrive: (call) => session.receive(place, () => receive(call)),
      abandoned
    })
  }

  /** The client gives its connection back, or throws it away. */
  private leave(client: Client, session: Session): void {
    client.sessions.delete(session)
    if (!session.connected) return
    session.connected = false
    client.main.give()
  }

  /** What was open on a connection is undone once the server has noticed that nobody is there any more. */
  private hangUp(client: Client, session: Session): void {
    const delayMs = client.next("connection reset").logUniform(0.5, 3_000)
    this.kernel.after(delayMs, "connection reset", () =>
      session.hangUp(() => {
        const { tx } = session
        if (tx !== null && !tx.over && !session.late) this.engine.rollBack(tx)
      }))
  }
}

const nothing = () => {}
const none: ReadonlyArray<never> = []
