/**
 * The database when none is configured: a real Postgres in the data directory, for as long as the service runs. One
 * service to a directory; after any crash, of either, the next start recovers.
 */
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Context, Data, Deferred, Effect, Layer, Queue, Redacted, Schedule, type Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { type ChildProcess, spawn } from "node:child_process"
import * as Fs from "node:fs"
import * as Net from "node:net"
import { EmbeddedPostgresFailed, locate, type PostgresBinaries, serverUser } from "./PostgresBinaries.ts"
import * as Cluster from "./PostgresCluster.ts"

export interface Options {
  /** The service's data directory; the server lives in `postgres` below it. */
  readonly dataDir: string
  /** False gives up durability for speed. For tests only. Default true. */
  readonly durable?: boolean
  /** Default 100. */
  readonly maxConnections?: number
}

export class EmbeddedPostgres extends Context.Service<EmbeddedPostgres, {
  /** Where the service's own database is. Loopback, with a password that only the data directory knows. */
  readonly url: Redacted.Redacted
  /** Never succeeds. Fails when the server goes away by itself: the service ends then, and its next start recovers. */
  readonly watch: Effect.Effect<never, EmbeddedPostgresFailed>
}>()("indelible/adapters/EmbeddedPostgres") {}

/** Somebody else's server came or went while we looked. Look again. */
class Again extends Data.TaggedError("Again") {}

interface Running {
  readonly port: number
  readonly exited: Deferred.Deferred<void>
}

const database = "indelible"

export const make = Effect.fn("EmbeddedPostgres.make")(function*(options: Options) {
  const durable = options.durable ?? true
  const asRoot = yield* serverUser
  yield* Effect.sync(() => Fs.mkdirSync(options.dataDir, { recursive: true, mode: asRoot === undefined ? 0o700 : 0o711 }))
  const user = asRoot === undefined ? undefined : Cluster.owner(options.dataDir) ?? asRoot
  const binaries = yield* locate({ user, copyTo: options.dataDir })
  const cluster = yield* Cluster.open({ dataDir: options.dataDir, user, binaries, durable })
  const running = yield* start(cluster, binaries, options).pipe(
    Effect.retry({ while: (error) => error._tag === "Again", schedule: Schedule.spaced("250 millis"), times: 40 }),
    Effect.catchTag("Again", () => Effect.fail(didNotStart(cluster)))
  )
  yield* ensureDatabase(cluster, running.port).pipe(Effect.mapError(() => didNotStart(cluster)))
  return EmbeddedPostgres.of({
    url: url(cluster, running.port, database),
    watch: Effect.andThen(
      Deferred.await(running.exited),
      Effect.fail(failed("stopped", "The embedded Postgres stopped by itself. Start the service again: it recovers what was committed."))
    )
  })
})

export const layer = (options: Options): Layer.Layer<EmbeddedPostgres, EmbeddedPostgresFailed> =>
  Layer.effect(EmbeddedPostgres, make(options))

const failed = (reason: EmbeddedPostgresFailed["reason"], message: string) =>
  new EmbeddedPostgresFailed({ reason, message })

const didNotStart = (cluster: Cluster.PostgresCluster, detail = "") =>
  failed("did_not_start", `The embedded Postgres did not start; ${cluster.log} says why${detail === "" ? "." : `: ${detail}`}`)

const inUse = (cluster: Cluster.PostgresCluster) =>
  failed("in_use", `Another service is using ${cluster.data}. One data directory serves one service: give this one its own, or a DATABASE_URL.`)

const url = (cluster: Cluster.PostgresCluster, port: number, name: string): Redacted.Redacted =>
  Redacted.make(`postgres://${Cluster.role}:${cluster.password}@127.0.0.1:${port}/${name}`, { label: "database url" })

/** One try: clears a server that a dead service left behind, starts ours, and makes sure that it is ours alone. */
const start = Effect.fnUntraced(function*(cluster: Cluster.PostgresCluster, binaries: PostgresBinaries, options: Options) {
  const found = Cluster.postmaster(cluster)
  if (found !== undefined) yield* evict(cluster, found)
  const port = yield* freePort
  const logged = Fs.statSync(cluster.log, { throwIfNoEntry: false })?.size ?? 0
  const { child, exited } = yield* launch(cluster, binaries, port, options)
  yield* Effect.raceFirst(
    untilReady(cluster, child.pid),
    Effect.andThen(Deferred.await(exited), Effect.suspend(() => Effect.fail(whyNot(cluster, logged))))
  ).pipe(Effect.timeoutOrElse({ duration: "10 minutes", orElse: () => Effect.fail(didNotStart(cluster)) }))
  yield* own(cluster, port)
  return { port, exited } satisfies Running
})

const launch = Effect.fnUntraced(function*(
  cluster: Cluster.PostgresCluster,
  binaries: PostgresBinaries,
  port: number,
  options: Options
) {
  const exited = yield* Deferred.make<void>()
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const log = Fs.openSync(cluster.log, "a", 0o600)
      // Detached: an interrupt from the terminal is for the service, which stops the server after its own work.
      const child = spawn(binaries.postgres, flags(cluster, port, options), {
        ...Cluster.spawnOptions(cluster),
        detached: true,
        stdio: ["ignore", log, log]
      })
      Fs.closeSync(log)
      child.once("exit", () => Deferred.doneUnsafe(exited, Effect.void))
      child.once("error", () => Deferred.doneUnsafe(exited, Effect.void))
      return child
    }),
    (child) => stop(child, exited)
  )
  return { child, exited }
})

const flags = (cluster: Cluster.PostgresCluster, port: number, options: Options): ReadonlyArray<string> => {
  const settings = {
    listen_addresses: "127.0.0.1",
    port,
    unix_socket_directories: "",
    max_connections: options.maxConnections ?? 100,
    timezone: "UTC",
    // What went wrong with the server, never what was in a statement.
    log_min_messages: "log",
    log_min_error_statement: "panic",
    log_error_verbosity: "terse",
    log_checkpoints: "off",
    ...(options.durable === false ? { fsync: "off", synchronous_commit: "off", full_page_writes: "off" } : {})
  }
  return ["-D", cluster.dataArgument, ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])]
}

/** Fast shutdown; if that takes a minute, immediate shutdown, from which the next start recovers. */
const stop = (child: ChildProcess, exited: Deferred.Deferred<void>): Effect.Effect<void> =>
  Effect.gen(function*() {
    child.kill("SIGINT")
    yield* Deferred.await(exited).pipe(
      Effect.timeoutOrElse({
        duration: "1 minute",
        orElse: () => Effect.andThen(Effect.sync(() => child.kill("SIGQUIT")), Deferred.await(exited))
      })
    )
  })

const untilReady = (cluster: Cluster.PostgresCluster, pid: number | undefined): Effect.Effect<void> =>
  Effect.sync(() => {
    const found = Cluster.postmaster(cluster)
    return found?.pid === pid && found?.status === "ready"
  }).pipe(Effect.repeat({ until: (ready) => ready, schedule: Schedule.spaced("20 millis") }), Effect.asVoid)

/** Whether a server that ended at once lost a race, which is worth another look, or has a reason that stays. */
const whyNot = (cluster: Cluster.PostgresCluster, logged: number): Again | EmbeddedPostgresFailed => {
  const text = Fs.readFileSync(cluster.log).subarray(logged).toString("utf8")
  return /lock file|pre-existing shared memory|Address already in use/.test(text)
    ? new Again()
    : didNotStart(cluster, /FATAL: {2}(.*)/.exec(text)?.[1])
}

/** Proves that nobody is served by `found`, and ends it. The proof is the lock that a live service holds in it. */
const evict = Effect.fnUntraced(function*(cluster: Cluster.PostgresCluster, found: Cluster.Postmaster) {
  const gone = Effect.sync(() => Cluster.alive(found.pid)).pipe(
    Effect.repeat({ while: (alive) => alive, schedule: Schedule.spaced("20 millis") })
  )
  yield* Effect.scoped(lockOwnership(cluster, found.port)).pipe(
    Effect.catchTag("SqlError", () => found.status === "stopping" ? Effect.void : Effect.fail(new Again()))
  )
  yield* Effect.sync(() => Cluster.postmaster(cluster)?.pid === found.pid && process.kill(found.pid, "SIGINT"))
  yield* gone.pipe(Effect.timeoutOrElse({
    duration: "1 minute",
    orElse: () => Effect.fail(failed("in_use", `A Postgres server that was left behind does not stop: end process ${found.pid}.`))
  }))
})

const lockOwnership = (
  cluster: Cluster.PostgresCluster,
  port: number
): Effect.Effect<PgConnection.PgConnection, SqlError | EmbeddedPostgresFailed, Scope.Scope> =>
  Effect.gen(function*() {
    const connection = yield* PgConnection.make({ url: url(cluster, port, "postgres"), applicationName: "indelible owner" })
    // A service that was killed a moment ago still holds the lock until its server notices.
    yield* connection.query("select 1 where pg_try_advisory_lock(7102411)").pipe(
      Effect.filterOrFail(({ rowCount }) => rowCount === 1, () => inUse(cluster)),
      Effect.retry({ while: (error) => error._tag === "EmbeddedPostgresFailed", schedule: Schedule.spaced("100 millis"), times: 10 })
    )
    return connection
  })

/** Holds the ownership lock until the scope closes, and takes it again after a crash of the server's sessions. */
const own = Effect.fnUntraced(function*(cluster: Cluster.PostgresCluster, port: number) {
  const first = yield* Deferred.make<void, EmbeddedPostgresFailed>()
  yield* Effect.scoped(Effect.gen(function*() {
    const connection = yield* lockOwnership(cluster, port)
    yield* Deferred.succeed(first, undefined)
    const lost = yield* connection.listen("indelible_owner")
    return yield* Queue.take(lost)
  })).pipe(
    Effect.tapError((error) => error._tag === "SqlError" ? Effect.void : Deferred.fail(first, error)),
    Effect.retry({ schedule: Schedule.spaced("100 millis") }),
    Effect.forkScoped
  )
  yield* Deferred.await(first).pipe(
    Effect.timeoutOrElse({ duration: "1 minute", orElse: () => Effect.fail(didNotStart(cluster)) })
  )
})

const ensureDatabase = (cluster: Cluster.PostgresCluster, port: number): Effect.Effect<void, SqlError> =>
  Effect.scoped(Effect.gen(function*() {
    const connection = yield* PgConnection.make({ url: url(cluster, port, "postgres") })
    const { rowCount } = yield* connection.query("select 1 from pg_database where datname = $1", [database])
    if (rowCount === 0) yield* connection.query(`create database ${database}`)
  }))

/** A port that is free now. Should somebody take it first, the server ends at once and another is tried. */
const freePort = Effect.callback<number>((resume) => {
  const server = Net.createServer()
  server.listen(0, "127.0.0.1", () => {
    const address = server.address()
    server.close(() => resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : 0)))
  })
})
