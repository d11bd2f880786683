/** Brings a database to the schema of this release: each migration once, in order, whoever else starts at that time. */
import { PgClient } from "@effect/sql-pg"
import { Effect, Schema } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import type { SqlError } from "effect/sql/SqlError"
import * as initial from "./migrations/0001_initial.ts"
import * as vectors from "./migrations/0002_vectors.ts"

export interface Migration {
  readonly name: string
  readonly statements: ReadonlyArray<string>
}

/** In order, and append-only: a released migration never changes. */
export const migrations: ReadonlyArray<Migration> = [initial, vectors]

/** This release must not run on this database. The message is one line for the operator. */
export class DatabaseRefused extends Schema.TaggedError<DatabaseRefused>()("DatabaseRefused", {
  reason: Schema.Literals(["too_old", "newer_release"]),
  message: Schema.String
}) {}

export interface MigrateOptions {
  readonly migrations?: ReadonlyArray<Migration>
  /** The oldest Postgres that will do. Default 15. */
  readonly oldestServer?: number
}

/**
 * Runs what is missing, one transaction to a migration, on a connection of its own. One advisory lock is held from the
 * check to the last commit, so that of several processes one migrates and the others find it done.
 */
export const run = Effect.fn("PgMigrations.run")(function*(
  config: PgClient.PgClientConfig,
  options: MigrateOptions = {}
): Effect.fn.Return<ReadonlyArray<string>, DatabaseRefused | SqlError> {
  return yield* Effect.scoped(
    Effect.flatMap(
      // Waits for whoever migrates, and migrates, without bounds: neither is a statement that went wrong.
      PgClient.makeClient({ ...config, startupParameters: { ...config.startupParameters, ...unbounded } }),
      (sql) => migrate(sql, options.migrations ?? migrations, options.oldestServer ?? 15)
    )
  ).pipe(Effect.provide(Reactivity.layer))
})

const unbounded = { statement_timeout: "0", lock_timeout: "0", idle_in_transaction_session_timeout: "0" }

const migrate = Effect.fnUntraced(function*(
  sql: PgClient.PgClient,
  known: ReadonlyArray<Migration>,
  oldestServer: number
) {
  const [server] = yield* sql<{ readonly major: number; readonly version: string }>`
    select current_setting('server_version_num')::integer / 10000 as major,
      current_setting('server_version') as version`
  if (server !== undefined && server.major < oldestServer) {
    return yield* new DatabaseRefused({
      reason: "too_old",
      message: `This database is Postgres ${server.version}; Indelible needs Postgres ${oldestServer} or newer.`
    })
  }
  yield* sql`select pg_advisory_lock(7102412)`
  yield* sql`create table if not exists schema_migrations (
    name text primary key,
    applied_at timestamptz not null default now()
  )`
  const rows = yield* sql<{ readonly name: string }>`select name from schema_migrations order by name`
  const applied = new Set(rows.map((row) => row.name))
  const unknown = rows.find((row) => !known.some((migration) => migration.name === row.name))
  if (unknown !== undefined) {
    return yield* new DatabaseRefused({
      reason: "newer_release",
      message: `This database holds the migration ${unknown.name} of a newer release. Run that release or a later one.`
    })
  }
  const missing = known.filter((migration) => !applied.has(migration.name))
  for (const migration of missing) {
    yield* Effect.forEach(migration.statements, (statement) => sql.unsafe(statement), { discard: true }).pipe(
      Effect.andThen(sql`insert into schema_migrations (name) values (${migration.name})`),
      sql.withTransaction
    )
  }
  yield* sql`select pg_advisory_unlock(7102412)`
  return missing.map((migration) => migration.name)
})
