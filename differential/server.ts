/** A sequence on Postgres: a connection each, and somebody who looks on and says who waits for whom. */
import { PgClient } from "@effect/sql-pg"
import { Effect, Exit, Predicate, type Redacted, Scope } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import type { Connection } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import { session } from "../src/adapters/PgDatabase.ts"
import { isCircular, type Settled, type Side, type Told, type Wait } from "./history.ts"
import { homes, type Step, things } from "./sequence.ts"
import { queryOf } from "./statements.ts"

/** Connections to tables of their own, used for one sequence after the other. */
export interface Lane {
  /** The tables as every sequence finds them, and nobody in a transaction. */
  readonly begin: Effect.Effect<Side>
}

/** How often somebody looks before he says that Postgres never comes to rest. */
const looks = 200_000
/** The tables are made anew after so many sequences, for what was deleted stays in them. */
const freshAfter = 100

const schema = (name: string): ReadonlyArray<string> => [
  `drop schema if exists ${name} cascade`,
  `create schema ${name}`,
  "create table homes (id text primary key)",
  `create table things (id text primary key, code text, n integer not null, at timestamptz not null,
    home text constraint things_home_fkey references homes)`,
  "create unique index things_code on things (code) where code is not null"
]

export const make = Effect.fnUntraced(function*(url: Redacted.Redacted, number: number) {
  const name = `lane_${number}`
  const connect = Effect.gen(function*() {
    const options = session(url, `differential ${name}`)
    const startupParameters = {
      ...options.startupParameters,
      search_path: name,
      // Whoever waits in a circle finds out at once, and nobody gives up before he is told to.
      deadlock_timeout: "1ms",
      lock_timeout: "0",
      statement_timeout: "0",
      idle_in_transaction_session_timeout: "0"
    }
    const sql = yield* PgClient.make({ ...options, startupParameters, maxConnections: 1 })
    return yield* sql.reserve
  }).pipe(Effect.provide(Reactivity.layer))
  const observer = yield* connect
  for (const statement of schema(name)) yield* observer.executeUnprepared(statement, [], undefined)
  const members: Array<Member> = []
  for (let on = 0; on < 3; on++) {
    const connection = yield* connect
    const rows = yield* connection.execute("select pg_backend_pid() as pid", [], undefined)
    members.push({ on, connection, pid: Number(rows[0].pid), busy: false, open: false })
  }
  const scope = yield* Effect.scope
  let begun = 0
  const begin = Effect.gen(function*() {
    const one = new Server(observer, members, number, scope)
    yield* one.prepare(begun++ % freshAfter === 0)
    return one as Side
  }).pipe(Effect.orDie)
  return { begin } satisfies Lane
})

interface Member {
  readonly on: number
  readonly connection: Connection
  readonly pid: number
  busy: boolean
  open: boolean
}

class Server implements Side {
  readonly rows: Effect.Effect<string>
  private readonly observer: Connection
  private readonly members: ReadonlyArray<Member>
  private readonly lane: number
  private readonly scope: Scope.Scope
  private told: Array<Told> = []

  constructor(observer: Connection, members: ReadonlyArray<Member>, lane: number, scope: Scope.Scope) {
    this.observer = observer
    this.members = members
    this.lane = lane
    this.scope = scope
    this.rows = Effect.gen({ self: this }, function*() {
      const things = yield* this.observer.execute("select id, code, n, home from things order by id", [], undefined)
      const homes = yield* this.observer.execute("select id from homes order by id", [], undefined)
      return JSON.stringify([things, homes.map(({ id }: { readonly id: string }) => id)])
    }).pipe(Effect.orDie)
  }

  prepare(fresh: boolean): Effect.Effect<void, SqlError> {
    return Effect.gen({ self: this }, function*() {
      // A sequence that was given up has left transactions behind.
      for (const { connection, open } of this.members) if (open) yield* connection.execute("rollback", [], undefined)
      for (const member of this.members) member.open = false
      const wipe = fresh ? ["truncate things, homes"] : ["delete from things", "delete from homes"]
      for (const statement of wipe) yield* this.observer.execute(statement, [], undefined)
      for (const id of homes) yield* this.observer.execute("insert into homes values ($1)", [id], undefined)
      for (const { code, home, id, n } of things) {
        yield* this.observer.execute("insert into things values ($1, $2, $3, '1970-01-01', $4)", [id, code, n, home], undefined)
      }
    })
  }

  step(step: Step): Effect.Effect<Settled> {
    return Effect.gen({ self: this }, function*() {
      this.told = []
      yield* this.start(step)
      for (let look = 0; look < looks; look++) {
        const waits = yield* this.look
        if (waits !== null && !(step.hurried === true && waits.some(({ on }) => on === step.on))) {
          return { told: this.told, waits }
        }
      }
      return yield* Effect.die(new Error("Postgres does not come to rest"))
    }).pipe(Effect.orDie)
  }

  /** Who waits, if everybody who is busy does, and nobody for himself. Null: something is still happening. */
  private get look(): Effect.Effect<ReadonlyArray<Wait> | null, SqlError> {
    return Effect.gen({ self: this }, function*() {
      const busy = this.members.filter(({ busy }) => busy)
      if (busy.length === 0) return []
      // One look at all locks says who waits at that moment. If everybody does, nobody changes that but who is in a circle.
      const rows: ReadonlyArray<{ readonly pid: number; readonly blocker: number }> = yield* this.observer.execute(
        `with waiting as materialized (select distinct pid from pg_locks where not granted and pid = any($1::int4[]))
         select pid, blocker from waiting, unnest(pg_blocking_pids(pid)) as blocker`,
        [`{${busy.map(({ pid }) => pid).join()}}`],
        undefined
      )
      const still = this.members.filter(({ busy }) => busy)
      const waits = still.map(({ on, pid }): Wait => ({
        on,
        for: rows.filter((row) => row.pid === pid).map(({ blocker }) => this.members.findIndex(({ pid }) => pid === blocker))
      }))
      if (still.length !== busy.length) return still.length === 0 ? [] : null
      return waits.some((wait) => wait.for.length === 0) || isCircular(waits) ? null : waits
    })
  }

  private start(step: Step): Effect.Effect<void, SqlError> {
    return Effect.gen({ self: this }, function*() {
      const { act, on } = step
      const member = this.members[on]!
      if (act.do === "cancel") {
        yield* this.observer.execute("select pg_cancel_backend($1::int4)", [member.pid], undefined)
        // It is only a signal: he waits no more once he has answered.
        return yield* Effect.repeat(Effect.yieldNow, { until: () => !member.busy })
      }
      if (act.do === "commit" || act.do === "rollback") {
        member.open = false
        yield* member.connection.execute(act.do, [], undefined)
        return void this.told.push({ on, what: "ended" })
      }
      if (!member.open) yield* member.connection.execute("begin", [], undefined)
      member.open = true
      const [text, parameters, answer] = queryOf(act, this.lane)
      const patience = (limit: string) => member.connection.execute(`set local lock_timeout = ${limit}`, [], undefined)
      const asked = member.connection.execute(text, parameters, undefined)
      const statement = step.hurried === true ? Effect.tap(Effect.andThen(patience("'1ms'"), asked), () => patience("0")) : asked
      member.busy = true
      yield* Effect.forkIn(
        Effect.map(Effect.exit(statement), (exit) => {
          member.busy = false
          const what = Exit.match(exit, {
            onSuccess: (rows) => JSON.stringify(answer(rows)),
            onFailure: (cause) => wordsOf(cause.reasons.map((reason) => "error" in reason ? reason.error : null)[0])
          })
          this.told.push({ on, what })
        }),
        this.scope,
        { startImmediately: true }
      )
    })
  }
}

/** The SQLSTATE, and the constraint that was in the way. Whatever has none is no answer of a database. */
const wordsOf = (error: SqlError | null | undefined): string => {
  const cause = error?.reason.cause
  if (!Predicate.hasProperty(cause, "code")) throw new Error("Postgres did not answer", { cause: error })
  return `${String(cause.code)} ${Predicate.hasProperty(cause, "constraint") ? String(cause.constraint ?? "") : ""}`.trim()
}
