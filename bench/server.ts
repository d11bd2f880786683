/** The one database server that a run measures on, durable, and fresh databases on it for every trial. */
import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Redacted, Schedule } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import * as EmbeddedPostgres from "../src/adapters/EmbeddedPostgres.ts"
import { session } from "../src/adapters/PgDatabase.ts"
import * as PgMigrations from "../src/adapters/PgMigrations.ts"

export interface Database {
  readonly name: string
  readonly url: string
}

/** What a new database starts as: empty, with our schema, or a copy of another that nobody is connected to. */
export type Origin = "empty" | "migrated" | Database

export class Server extends Context.Service<Server, {
  readonly make: (origin: Origin) => Effect.Effect<Database>
  readonly admin: PgClient.PgClient
}>()("indelible/bench/Server") {}

/** A new database, dropped when the scope closes: once those who used it have gone, whose drivers may mind a cut. */
export const fresh = Effect.fnUntraced(function*(origin: Origin) {
  const { admin, make } = yield* Server
  const users = (name: string) => admin`select 1 from pg_stat_activity where datname = ${name}`
  return yield* Effect.acquireRelease(make(origin), ({ name }) =>
    Effect.repeat(users(name), { while: (rows) => rows.length > 0, schedule: Schedule.spaced("20 millis"), times: 100 }).pipe(
      Effect.andThen(admin.unsafe(`drop database if exists ${name} with (force)`)),
      Effect.orDie
    ))
})

/** A small pool of its own, for the bench to look and to load. */
export const look = (database: Database) =>
  PgClient.make({ url: Redacted.make(database.url), maxConnections: 2, startupParameters: { timezone: "UTC" } }).pipe(
    Effect.provide(Reactivity.layer),
    Effect.orDie
  )

const serverUrl = Effect.gen(function*() {
  const own = process.env.BENCH_DATABASE_URL
  if (own !== undefined) return own
  const dataDir = yield* Effect.acquireRelease(
    Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "indelible-bench-"))),
    (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
  )
  Fs.chmodSync(dataDir, 0o711)
  return Redacted.value((yield* EmbeddedPostgres.make({ dataDir, durable: true, maxConnections: 200 })).url)
})

/** `BENCH_DATABASE_URL`, or an embedded Postgres in a temporary directory with the settings that the service gives it. */
export const layer = Layer.effect(Server, Effect.gen(function*() {
  const url = yield* serverUrl
  const admin = yield* PgClient.make({ url: Redacted.make(url), maxConnections: 1 })
  const urlOf = (name: string) => {
    const its = new URL(url)
    its.pathname = name
    return its.href
  }
  let made = 0
  const create = (template: string) =>
    Effect.gen(function*() {
      const name = `indelible_bench_${process.pid}_${++made}`
      // Copied as files: through the log, a copy would be a load of its own on what is measured next.
      yield* admin.unsafe(`create database ${name} template ${template} strategy file_copy`)
      return { name, url: urlOf(name) }
    })
  const template = yield* Effect.acquireRelease(
    create("template0"),
    ({ name }) => Effect.orDie(admin.unsafe(`drop database if exists ${name} with (force)`))
  )
  yield* PgMigrations.run(session(Redacted.make(template.url), "indelible bench"))
  return Server.of({
    admin,
    make: (origin) =>
      Effect.orDie(create(origin === "empty" ? "template0" : origin === "migrated" ? template.name : origin.name))
  })
})).pipe(Layer.provide(Reactivity.layer), Layer.orDie)
