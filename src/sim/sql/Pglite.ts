/**
 * Postgres in this thread, one session of it, asked without a promise: what is asked is answered when the call returns.
 * Its clock is whatever the caller says.
 */
import { PGlite } from "@electric-sql/pglite"
import { PgConnection } from "@effect/sql-pg"
import { Effect, Result, Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { Duplex } from "node:stream"
import * as PgMigrations from "../../adapters/PgMigrations.ts"

export type Answer = Result.Result<PgConnection.Result, SqlError>

/**
 * No background process writes a checkpoint, and no plan is remembered from one run to the next: what a statement does
 * depends on the rows of its own run.
 */
const settings = [
  "set plan_cache_mode = force_generic_plan",
  "set jit = off",
  "set timezone = 'UTC'",
  "set synchronous_commit = off"
]

/** Runs between two checkpoints. Without one, files that were emptied are kept for ever. */
const checkpointEvery = 50

export class Pglite {
  private readonly connection: PgConnection.PgConnection
  private readonly wire: Wire
  private resets = 0

  private constructor(connection: PgConnection.PgConnection, wire: Wire) {
    this.connection = connection
    this.wire = wire
  }

  /** A migrated database. It takes seconds. */
  static async start(): Promise<Pglite> {
    const pglite = await PGlite.create()
    const wires: Array<Wire> = []
    const config = {
      stream: () => {
        const wire = new Wire(pglite)
        wires.push(wire)
        return wire
      },
      username: "postgres",
      database: "postgres",
      // All that a release has: one that is forgotten would be planned at another time.
      preparedStatementCacheSize: 10_000
    }
    await Effect.runPromise(PgMigrations.run(config))
    const connection = await Effect.runPromise(Scope.provide(PgConnection.make(config), Scope.makeUnsafe()))
    const one = new Pglite(connection, wires.at(-1)!)
    for (const statement of settings) one.must(statement)
    return one
  }

  /** Asks it, at this time in milliseconds and parts of them. */
  query(sql: string, params: ReadonlyArray<unknown>, at: number): Answer {
    this.wire.at = at
    return Effect.runSync(Effect.result(this.connection.query(sql, params)))
  }

  /** The same of a statement that cannot fail. */
  must(sql: string, params: ReadonlyArray<unknown> = [], at = 0): ReadonlyArray<PgConnection.Row> {
    return Result.getOrThrow(this.query(sql, params, at)).rows
  }

  /** Undoes what a run has left open, empties these tables, and lets every sequence begin again. */
  reset(tables: ReadonlyArray<string>): void {
    this.must("rollback")
    this.must("set session_replication_role = replica")
    this.must(`truncate ${tables.join(", ")} restart identity`)
    this.must("alter sequence operation_seq restart")
    this.must("insert into fair_clock (value) values (0)")
    this.must("set session_replication_role = origin")
    if (++this.resets % checkpointEvery === 0) this.must("checkpoint")
  }
}

/** A socket's place: what is written is answered at once, in the same call. */
class Wire extends Duplex {
  /** The time that the server finds on its clock, in milliseconds since the epoch. */
  at = 0
  private readonly pglite: PGlite

  constructor(pglite: PGlite) {
    super()
    this.pglite = pglite
  }

  override _read(): void {}

  override write(bytes: unknown): boolean {
    const answer = atTime(this.at, () => this.pglite.execProtocolRawSync(bytes as Uint8Array))
    if (answer.length > 0) this.emit("data", Buffer.from(answer))
    return true
  }

  /** The session goes on when a connection to it ends. */
  override end(): this {
    return this
  }
}

// oxlint-disable-next-line no-restricted-globals -- the server's clock, which is told what it shows
const RealDate = Date

/**
 * Lets the server find this time on its clocks, which are those of this thread. Its files are of this time too, and an
 * alarm that it sets never rings: all of its time goes by between its statements.
 */
const atTime = <A>(at: number, work: () => A): A => {
  const clock = new Proxy(RealDate, {
    construct: (target, args) => Reflect.construct(target, args.length === 0 ? [at] : args) as object,
    get: (target, name) => name === "now" ? () => at : Reflect.get(target, name)
  })
  const undo = [replace("Date", clock), replace("performance", { now: () => at }), replace("setTimeout", () => 0)]
  try {
    return work()
  } finally {
    for (const restore of undo) restore()
  }
}

const replace = (name: "Date" | "performance" | "setTimeout", value: object): () => void => {
  const before = Object.getOwnPropertyDescriptor(globalThis, name)!
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true })
  return () => void Object.defineProperty(globalThis, name, before)
}
