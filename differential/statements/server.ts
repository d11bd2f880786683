/** Statements on Postgres: a connection each, in a schema of its own lane. */
import { Effect, Exit, Predicate, type Redacted, Scope } from "effect"
import type { Connection } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import type { Told } from "../history.ts"
import type { Settled, Side } from "../kind.ts"
import * as Lookout from "../lookout.ts"
import { homes, type Step, things } from "./sequence.ts"
import { queryOf } from "./sql.ts"

/** The tables are made anew after so many sequences, for what was deleted stays in them. */
const freshAfter = 100

const tables: ReadonlyArray<string> = [
  "create table homes (id text primary key)",
  `create table things (id text primary key, code text, n integer not null, at timestamptz not null,
    home text constraint things_home_fkey references homes)`,
  "create unique index things_code on things (code) where code is not null"
]

export const connect = Effect.fnUntraced(function*(url: Redacted.Redacted, lane: number) {
  const name = `differential_statements_${lane}`
  const observer = yield* Lookout.connect(url, name)
  yield* Lookout.schema(observer, name)
  for (const statement of tables) yield* observer.executeUnprepared(statement, [], undefined)
  const members: Array<Member> = []
  for (let on = 0; on < 3; on++) {
    const connection = yield* Lookout.connect(url, name)
    members.push({ on, connection, pids: [yield* Lookout.pidOf(connection)], busy: false, open: false })
  }
  const scope = yield* Effect.scope
  let begun = 0
  const begin = Effect.gen(function*() {
    const one = new Server(observer, members, lane, scope)
    yield* one.prepare(begun++ % freshAfter === 0)
    return one as Side<Step>
  }).pipe(Effect.orDie)
  return { begin }
})

interface Member extends Lookout.Watched {
  readonly connection: Connection
  busy: boolean
  open: boolean
}

class Server implements Side<Step> {
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
      // Whoever is in a hurry does not wait for long.
      const waits = yield* Lookout.settled(this.observer, this.members, (waits) =>
        step.hurried === true && waits.some(({ on }) => on === step.on))
      return { told: this.told, waits }
    }).pipe(Effect.orDie)
  }

  private start(step: Step): Effect.Effect<void, SqlError> {
    return Effect.gen({ self: this }, function*() {
      const { act, on } = step
      const member = this.members[on]!
      if (act.do === "cancel") {
        yield* this.observer.execute("select pg_cancel_backend($1::int4)", [member.pids[0]], undefined)
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
