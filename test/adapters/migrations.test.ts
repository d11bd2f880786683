/** The schema arrives once, whoever starts first, and a release never runs on a database that is not its own. */
import { assert, it, layer } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as PgDatabase from "../../src/adapters/PgDatabase.ts"
import * as PgMigrations from "../../src/adapters/PgMigrations.ts"
import { PGliteTest, PgTest } from "../postgres.ts"

const migrate = (options?: PgMigrations.MigrateOptions) =>
  Effect.flatMap(PgTest, ({ url }) => PgMigrations.run(PgDatabase.session(url, "test"), options))

/** A database without a schema, of its own for each test. */
const empty = Layer.unwrap(Effect.map(PgTest, ({ url }) => PgDatabase.layer({ url }))).pipe(
  Layer.provideMerge(PgTest.empty)
)

const recorded = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ readonly name: string }>`select name from schema_migrations order by name`
  return rows.map((row) => row.name)
})

const first = { name: "0001_first", statements: ["create table first (n integer)", "insert into first values (1)"] }
const second = { name: "0002_second", statements: ["create table second (n integer)"] }

it.effect("three processes that start together apply each migration once", () =>
  Effect.gen(function*() {
    const applied = yield* Effect.all([migrate(), migrate(), migrate()], { concurrency: "unbounded" })
    assert.deepStrictEqual(applied.flat(), PgMigrations.migrations.map((migration) => migration.name))
    assert.deepStrictEqual(yield* recorded, PgMigrations.migrations.map((migration) => migration.name))
  }).pipe(Effect.provide(empty)))

it.effect("a second start changes nothing, and a later release adds only what is missing", () =>
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    assert.deepStrictEqual(yield* migrate({ migrations: [first] }), ["0001_first"])
    assert.deepStrictEqual(yield* migrate({ migrations: [first] }), [])
    assert.deepStrictEqual(yield* migrate({ migrations: [first, second] }), ["0002_second"])
    assert.deepStrictEqual(yield* sql`select n from first`, [{ n: 1 }])
  }).pipe(Effect.provide(empty)))

it.effect("a migration that fails leaves nothing behind, and the next start runs it whole", () =>
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    const broken = { name: second.name, statements: [...second.statements, "select 1 / 0"] }
    yield* Effect.flip(migrate({ migrations: [first, broken] }))
    assert.deepStrictEqual(yield* recorded, ["0001_first"])
    assert.deepStrictEqual(yield* sql`select to_regclass('second') is null as gone`, [{ gone: true }])
    assert.deepStrictEqual(yield* migrate({ migrations: [first, second] }), ["0002_second"])
  }).pipe(Effect.provide(empty)))

it.effect("a process that migrates for long makes the others wait, not fail", () =>
  Effect.gen(function*() {
    const { url } = yield* PgTest
    const sql = yield* SqlClient.SqlClient
    const hurried = PgDatabase.session(url, "test")
    const waiting = sql<{ readonly n: bigint }>`select count(*) as n
      from pg_locks l join pg_database d on d.oid = l.database
      where l.locktype = 'advisory' and not l.granted and d.datname = current_database()`
    const other = yield* sql.withTransaction(Effect.gen(function*() {
      yield* sql`select pg_advisory_xact_lock(7102412)`
      const other = yield* Effect.forkChild(PgMigrations.run({
        ...hurried,
        startupParameters: { ...hurried.startupParameters, lock_timeout: "1ms", statement_timeout: "1ms" }
      }, { migrations: [first] }))
      yield* Effect.repeat(waiting, { until: ([row]) => row?.n === 1n })
      yield* sql`select pg_sleep(0.01)`
      return other
    }))
    assert.deepStrictEqual(yield* Fiber.join(other), ["0001_first"])
  }).pipe(Effect.provide(empty)))

it.effect("a database that a newer release has migrated is refused in one line", () =>
  Effect.gen(function*() {
    yield* migrate({ migrations: [first, second] })
    const refused = yield* Effect.flip(migrate({ migrations: [first] }))
    assert.strictEqual(
      refused.message,
      "This database holds the migration 0002_second of a newer release. Run that release or a later one."
    )
    assert.deepStrictEqual(yield* recorded, ["0001_first", "0002_second"])
  }).pipe(Effect.provide(empty)))

it.effect("a Postgres that is too old is refused in one line, before anything is written", () =>
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    const refused = yield* Effect.flip(migrate({ oldestServer: 999 }))
    assert.match(refused.message, /^This database is Postgres \d+\S* ?.*; Indelible needs Postgres 999 or newer\.$/)
    const [database] = yield* sql`select to_regclass('schema_migrations') is null as untouched`
    assert.deepStrictEqual(database, { untouched: true })
  }).pipe(Effect.provide(empty)))

layer(PgTest.layer)("the pools", (it) => {
  it.effect("open sessions that are READ COMMITTED and UTC, with every wait bounded", () =>
    Effect.gen(function*() {
      for (const pool of [yield* PgClient.PgClient, yield* PgDatabase.LeasePool]) {
        const [settings] = yield* pool`select current_setting('default_transaction_isolation') as isolation,
          current_setting('timezone') as timezone, current_setting('statement_timeout') as statement,
          current_setting('lock_timeout') as lock, current_setting('idle_in_transaction_session_timeout') as idle`
        assert.deepStrictEqual(settings, {
          isolation: "read committed",
          timezone: "UTC",
          statement: "30s",
          lock: "10s",
          idle: "1min"
        })
      }
    }))

  it.effect("are two: work that holds every connection of one never keeps a lease from being renewed", () =>
    Effect.gen(function*() {
      const main = yield* PgClient.PgClient
      const leases = yield* PgDatabase.LeasePool
      yield* Effect.forEach(Array.from({ length: 10 }), () => main.reserve, { concurrency: "unbounded" })
      assert.deepStrictEqual(yield* leases`select 1 as n`, [{ n: 1 }])
    }))
})

layer(PGliteTest.layer)("PGlite", (it) => {
  it.effect("takes the same schema, and searches vectors", () =>
    Effect.gen(function*() {
      const sql = yield* SqlClient.SqlClient
      yield* sql`create extension vector`
      assert.deepStrictEqual(yield* sql`select count(*) as n from operations`, [{ n: 0n }])
      assert.deepStrictEqual(yield* sql`select ('[1,2]'::vector <-> '[1,3]')::float8 as n`, [{ n: 1 }])
    }))
})
