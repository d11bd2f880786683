/**
 * The audit of a live database: `npm run audit -- --help`. Reads only, unless it is told to repair. Exit codes: 0 nothing
 * found, 1 differences, 2 wrong usage, 3 it could not look.
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { PgClient } from "@effect/sql-pg"
import { Cause, Console, Data, Duration, Effect, Layer, Logger, Option, Redacted, References, Schema } from "effect"
import { CliError, Command, Flag } from "effect/cli"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Fs from "node:fs"
import * as Path from "node:path"
import * as Configuration from "./adapters/Configuration.ts"
import * as EmbeddedPostgres from "./adapters/EmbeddedPostgres.ts"
import * as PgAudit from "./adapters/PgAudit.ts"
import * as PgDatabase from "./adapters/PgDatabase.ts"
import * as PgMend from "./adapters/PgMend.ts"
import * as PgMigrations from "./adapters/PgMigrations.ts"
import { WorkspaceId } from "./domain/Ids.ts"
import type { Violation } from "./domain/Invariant.ts"
import { Repair } from "./services/Repair.ts"
import { startFailure } from "./startFailure.ts"
import { storage } from "./storage.ts"

/** Why nothing could be looked at. */
class CannotLook extends Data.TaggedError("CannotLook")<{ readonly message: string }> {}

/** What was asked about does not exist. */
class NoSuch extends Data.TaggedError("NoSuch")<{ readonly message: string }> {}

/** How many differences one run mends. What is more waits for the next run. */
const mendMax = 10_000

const flags = {
  databaseUrl: Flag.Redacted("database-url").pipe(
    Flag.withDescription("The database. Default: DATABASE_URL, or the service's own in DATA_DIR"),
    // Nothing is no name of another database, such as the service's own.
    Flag.filter((url) => Redacted.value(url) !== "", () => "a URL, or no such flag"),
    Flag.optional
  ),
  workspace: Flag.String("workspace").pipe(
    Flag.withDescription("Only this workspace"),
    Flag.withSchema(WorkspaceId),
    Flag.optional
  ),
  overdue: Flag.Int("overdue").pipe(
    Flag.withDescription("Seconds that work may wait before it counts as stuck. Raise it when the backlog is longer"),
    Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 31_536_000 }))),
    Flag.withDefault(900)
  ),
  repair: Flag.Boolean("repair").pipe(
    Flag.withDescription("Mend what is safe to mend: projections, lanes, redaction, wake-ups. Never money"),
    Flag.withDefault(false)
  ),
  json: Flag.Boolean("json").pipe(Flag.withDescription("One JSON object to a line"), Flag.withDefault(false))
}

interface Asked {
  readonly workspace: Option.Option<WorkspaceId>
  readonly overdue: number
  readonly repair: boolean
  readonly json: boolean
}

const run = Command.make("audit", flags, ({ databaseUrl, ...asked }) =>
  Effect.gen(function*() {
    const given = Option.match(databaseUrl, { onNone: () => ({}), onSome: (url) => ({ DATABASE_URL: Redacted.value(url) }) })
    const config = yield* Configuration.load({ ...process.env, ...given })
    const url = yield* database(config)
    yield* Effect.andThen(atThisSchema, existing(asked.workspace)).pipe(Effect.provide(readOnly(url)))
    const left = yield* audit(config, url, asked)
    if (left > 0) process.exitCode = 1
  }).pipe(
    Effect.scoped,
    Effect.provideService(References.MinimumLogLevel, "Error"),
    Effect.provide(Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])),
    Effect.catchCause((cause) => {
      const error = cause.reasons.flatMap((reason) => Cause.isFailReason(reason) ? [reason.error] : [])[0]
      process.exitCode = error instanceof Configuration.ConfigurationError || error instanceof NoSuch ? 2 : 3
      return Console.error(`indelible audit: ${startFailure(error)}`)
    })
  )).pipe(Command.withDescription(
  "Hold a live database against its invariants. Exit code 0: nothing found, 1: differences, 2: wrong usage, 3: could not look"
))

/** The database that was named, or the service's own. Unlike a start, a look makes none. */
const database = Effect.fnUntraced(function*({ dataDir, databaseUrl }: Configuration.Configuration) {
  if (databaseUrl !== null) return databaseUrl
  if (!Fs.existsSync(Path.join(dataDir, "postgres"))) {
    return yield* new CannotLook({ message: "there is no database in DATA_DIR, and DATABASE_URL names none" })
  }
  return (yield* EmbeddedPostgres.attach({ dataDir })).url
})

/** A connection that cannot write, and may take its time. */
const readOnly = (url: Redacted.Redacted) => {
  const session = PgDatabase.session(url, "indelible audit")
  return PgClient.layer({
    ...session,
    maxConnections: 1,
    startupParameters: { ...session.startupParameters, default_transaction_read_only: "on", statement_timeout: "30min" }
  }).pipe(Layer.provide(Reactivity.layer))
}

/** An audit migrates nothing: it is the service's start that does. */
const atThisSchema = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const [made] = yield* sql<{ readonly there: boolean }>`select to_regclass('schema_migrations') is not null as there`
  const rows = made?.there === true ? yield* sql<{ readonly name: string }>`select name from schema_migrations` : []
  const names = new Set(rows.map(({ name }) => name))
  if (names.size !== PgMigrations.migrations.length || PgMigrations.migrations.some(({ name }) => !names.has(name))) {
    return yield* new CannotLook({
      message: "this database is not at the schema of this release: start the service on it first, or use its own release"
    })
  }
})

/** A name that was mistyped is no workspace without differences. */
const existing = Effect.fnUntraced(function*(workspace: Option.Option<WorkspaceId>) {
  if (Option.isNone(workspace) || (yield* PgAudit.knows(workspace.value))) return
  return yield* new NoSuch({ message: "there is no such workspace" })
})

/** Looks, mends when asked to, and looks again at what is left. Returns how many differences are. */
const audit = Effect.fnUntraced(function*(config: Configuration.Configuration, url: Redacted.Redacted, asked: Asked) {
  const first = yield* report(config, url, asked)
  const mended = asked.repair && first.mendable.length > 0
    ? yield* PgMend.mend(first.mendable).pipe(Effect.provide(Repair.layer.pipe(Layer.provideMerge(storage(config, url)))))
    : []
  yield* Effect.forEach(mended, (one) =>
    Console.log(asked.json ? JSON.stringify({ mended: one }) : line("mended", one.workspaceId, one.id, one.did)), { discard: true })
  if (mended.length === 0) return first.differences
  yield* asked.json ? Effect.void : Console.log(`Mended ${mended.length}. Looking again.`)
  return (yield* report(config, url, asked)).differences
})

/** One look, printed as it goes. */
const report = Effect.fnUntraced(function*(config: Configuration.Configuration, url: Redacted.Redacted, asked: Asked) {
  const byInvariant = new Map<string, number>()
  const mendable: Array<Violation> = []
  const looked = yield* PgAudit.look({
    workspaceId: Option.getOrUndefined(asked.workspace),
    limits: {
      overdueMs: asked.overdue * 1_000,
      inputRetentionMs: Duration.toMillis(config.settings.failedInputRetention)
    },
    see: (found) =>
      Effect.forEach(found, (one) => {
        byInvariant.set(one.invariant, (byInvariant.get(one.invariant) ?? 0) + 1)
        if (asked.repair && PgMend.isMendable(one) && mendable.length < mendMax) mendable.push(one)
        return Console.log(
          asked.json ? JSON.stringify({ difference: one }) : line(one.invariant, one.workspaceId, one.id, one.detail)
        )
      }, { discard: true })
  }).pipe(Effect.provide(readOnly(url)))
  const differences = [...byInvariant.values()].reduce((sum, count) => sum + count, 0)
  const summary = { ...looked, differences, byInvariant: Object.fromEntries(byInvariant) }
  yield* Console.log(asked.json ? JSON.stringify({ summary }) : inWords(summary))
  return { differences, mendable }
})

const line = (...words: ReadonlyArray<string>): string => words.join("  ")

const inWords = (summary: PgAudit.Looked & { readonly differences: number; readonly byInvariant: Record<string, number> }) =>
  `${summary.workspaces} workspaces, ${summary.operations} operations, ${summary.memories} memories: ` +
  (summary.differences === 0
    ? "no difference."
    : `${summary.differences} differences (${
      Object.entries(summary.byInvariant).map(([name, count]) => `${name} ${count}`).join(", ")
    }).`)

/** `indelible audit …` leaves its own name in the arguments. */
const root = Command.make("indelible").pipe(Command.withSubcommands([run]))

/** A question that was asked wrongly is neither a difference nor a look that failed. */
const wrongUsage = (error: unknown) =>
  Effect.sync(() => {
    const asked = CliError.isCliError(error) && error._tag === "ShowHelp" && error.errors.length === 0
    process.exitCode = asked ? 0 : 2
  })

NodeRuntime.runMain(
  Command.run(root, { version: "0.1.0" }).pipe(Effect.provide(NodeServices.layer), Effect.catch(wrongUsage))
)
