/** The database server of a run: a real one, durable, that is killed and started again, each time at another port. */
import { PgClient } from "@effect/sql-pg"
import { Effect, Exit, Redacted, Schedule, Scope, Semaphore } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Fs from "node:fs"
import * as Path from "node:path"
import * as EmbeddedPostgres from "../src/adapters/EmbeddedPostgres.ts"
import { alive } from "../src/adapters/PostgresCluster.ts"

export interface Database {
  /** Null while it is down. */
  readonly port: () => number | null
  /** Its URL on a port, that of a proxy, for a role. */
  readonly urlAt: (port: number, role: string) => Redacted.Redacted
  /** That of its owner. Roles that are made have the same. */
  readonly password: () => string
  /** Its own URL, past every proxy. */
  readonly url: () => Redacted.Redacted
  /** Ends it as `pg_ctl stop -m immediate` does. False when it was down already. */
  readonly crash: Effect.Effect<boolean>
  /** Starts it unless it runs, and waits until it has recovered. */
  readonly start: Effect.Effect<void>
  /** Statements of an operator, on a connection of their own. */
  readonly operate: (statements: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<object>, unknown>
}

interface Running {
  readonly url: URL
  readonly pid: number
  readonly scope: Scope.Closeable
}

export const make = Effect.fnUntraced(function*(dataDir: string): Effect.fn.Return<Database, never, Scope.Scope> {
  let running: Running | null = null
  let last: URL | null = null
  const one = yield* Semaphore.make(1)
  const pidFile = Path.join(dataDir, "postgres/data/postmaster.pid")

  const stop = Effect.suspend(() => {
    const it = running
    running = null
    return it === null ? Effect.void : Scope.close(it.scope, Exit.void)
  })
  yield* Effect.addFinalizer(() => stop)

  const start = one.withPermits(1)(Effect.suspend(() =>
    running !== null ? Effect.void : Effect.gen(function*() {
      const scope = yield* Scope.make()
      const { url } = yield* EmbeddedPostgres.make({ dataDir, maxConnections: 200 }).pipe(Scope.provide(scope), Effect.orDie)
      last = new URL(Redacted.value(url))
      running = { url: last, scope, pid: Number(Fs.readFileSync(pidFile, "utf8").split("\n")[0]) }
    })
  ))

  const crash = one.withPermits(1)(Effect.suspend(() => {
    const it = running
    if (it === null) return Effect.succeed(false)
    running = null
    process.kill(it.pid, "SIGQUIT")
    return Effect.sync(() => alive(it.pid)).pipe(
      Effect.repeat({ while: (there) => there, schedule: Schedule.spaced("20 millis") }),
      Effect.andThen(Scope.close(it.scope, Exit.void)),
      Effect.as(true)
    )
  }))

  const urlAt = (port: number, role: string) => {
    const url = new URL(last!.href)
    url.port = String(port)
    url.username = role
    return Redacted.make(url.href)
  }
  const password = () => decodeURIComponent(last!.password)
  const url = () => Redacted.make(last!.href)

  const operate = (statements: ReadonlyArray<string>) =>
    PgClient.make({ url: url(), maxConnections: 1, applicationName: "chaos", connectTimeout: "2 seconds" }).pipe(
      Effect.flatMap((sql) => Effect.forEach(statements, (statement) => sql.unsafe(statement))),
      Effect.map((answers) => answers.at(-1) ?? []),
      Effect.scoped,
      Effect.provide(Reactivity.layer)
    )

  yield* start
  return { port: () => running === null ? null : Number(running.url.port), urlAt, password, url, crash, start, operate }
})
