/**
 * The database when none is configured: a real Postgres in the data directory, for as long as the service runs. One
 * service to a directory; after any crash, of either, the next start recovers.
 */
import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Context, Data, Deferred, Duration, Effect, Layer, Queue, Redacted, Schedule } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { spawn } from "node:child_process"
import * as Fs from "node:fs"
import * as Net from "node:net"
import { EmbeddedPostgresFailed, locate, type PostgresBinaries, serverUser } from "./PostgresBinaries.ts"
import * as Cluster from "./PostgresCluster.ts"

export interface Options {
  /** The service's data directory; the server lives in `postgres` below it. */
  readonly dataDir: string
  /** False survives a crash of the server but not of the machine. For tests only. Default true. */
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

/** Where root puts the binaries when both the project and the data directory are private. */
const systemCache = "/var/cache/indelible"

/** Crash recovery is part of a start. */
const startBound = "10 minutes"

/**
 * A fast shutdown writes a checkpoint, or hangs when it meets a crash recovery. After this long comes an immediate one,
 * which loses nothing: the next start recovers.
 */
const stopBound = Duration.seconds(5)

/** A server log longer than this starts anew at the next start. */
const maxLogBytes = 1_000_000

const open = Effect.fnUntraced(function*(options: Options) {
  const { dataDir, user } = yield* Cluster.place(options.dataDir, yield* serverUser)
  const binaries = yield* locate({ user, copyTo: [dataDir, systemCache] })
  const cluster = yield* Cluster.open({ dataDir, user, binaries, durable: options.durable ?? true })
  return { binaries, cluster }
})

/** For tools beside the service: the server of a service that runs on this directory, or our own if none does. */
export const attach = Effect.fn("EmbeddedPostgres.attach")(function*(options: Options) {
  const { cluster } = yield* open(options)
  const found = Cluster.postmaster(cluster)
  return found?.status === "ready"
    ? EmbeddedPostgres.of({ url: url(cluster, found.port, database), watch: Effect.never })
    : yield* make(options)
})

export const make = Effect.fn("EmbeddedPostgres.make")(function*(options: Options) {
  const { binaries, cluster } = yield* open(options)
  const running = yield* start(cluster, binaries, options).pipe(
    Effect.retry({ while: (error) => error._tag === "Again", schedule: Schedule.spaced("250 millis"), times: 40 }),
    Effect.catchTag("Again", () => Effect.fail(didNotStart(cluster)))
  )
  yield* ensureDatabase(cluster, running.port).pipe(Effect.mapError(() => didNotStart(cluster)))
  return EmbeddedPostgres.of({
    url: url(cluster, running.port, database),
    watch: Effect.andThen(Deferred.await(running.exited), Effect.fail(stoppedByItself))
  })
})

export const layer = (options: Options): Layer.Layer<EmbeddedPostgres, EmbeddedPostgresFailed> =>
  Layer.effect(EmbeddedPostgres, make(options))

const failed = (reason: EmbeddedPostgresFailed["reason"], message: string) =>
  new EmbeddedPostgresFailed({ reason, message })

const didNotStart = (cluster: Cluster.PostgresCluster, detail?: string) =>
  failed(
    "did_not_start",
    `The embedded Postgres did not start; ${cluster.log} says why${detail === undefined ? "." : `: ${detail}`}`
  )

const inUse = (cluster: Cluster.PostgresCluster) =>
  failed(
    "in_use",
    `Another service is using ${cluster.data}. One data directory serves one service: ` +
      "give this one its own DATA_DIR, or both one DATABASE_URL."
  )

const doesNotStop = (pid: number) =>
  failed("in_use", `A Postgres server that an earlier service left behind does not stop: end process ${pid}.`)

const stoppedByItself = failed(
  "stopped",
  "The embedded Postgres stopped by itself. Start the service again: it recovers what was committed."
)

const url = (cluster: Cluster.PostgresCluster, port: number, name: string): Redacted.Redacted =>
  Redacted.make(`postgres://${Cluster.role}:${cluster.password}@127.0.0.1:${port}/${name}`, { label: "database url" })

/** One try: clears a server that a dead service left behind, starts ours, and makes sure that it is ours alone. */
const start = Effect.fnUntraced(function*(
  cluster: Cluster.PostgresCluster,
  binaries: PostgresBinaries,
  options: Options
) {
  yield* evict(cluster)
  const port = yield* freePort
  const { child, exited, logged } = yield* launch(cluster, binaries, port, options)
  yield* Effect.raceFirst(
    Effect.andThen(untilReady(cluster, child.pid), own(cluster, port, exited)),
    Effect.andThen(Deferred.await(exited), Effect.suspend(() => Effect.fail(whyNot(cluster, logged))))
  ).pipe(Effect.timeoutOrElse({ duration: startBound, orElse: () => Effect.fail(didNotStart(cluster)) }))
  return { port, exited } satisfies Running
})

const launch = Effect.fnUntraced(function*(
  cluster: Cluster.PostgresCluster,
  binaries: PostgresBinaries,
  port: number,
  options: Options
) {
  const exited = yield* Deferred.make<void>()
  const begin = Effect.try({
    try: () => {
      const long = (Fs.statSync(cluster.log, { throwIfNoEntry: false })?.size ?? 0) > maxLogBytes
      const log = Fs.openSync(cluster.log, long ? "w" : "a", 0o600)
      const logged = Fs.fstatSync(log).size
      // Detached: an interrupt from the terminal is for the service, which stops the server after its own work.
      const child = spawn(binaries.postgres, flags(cluster, port, options), {
        ...Cluster.spawnOptions(cluster),
        detached: true,
        stdio: ["ignore", log, log]
      })
      Fs.closeSync(log)
      child.once("exit", () => Deferred.doneUnsafe(exited, Effect.void))
      child.once("error", () => Deferred.doneUnsafe(exited, Effect.void))
      return { child, exited, logged }
    },
    catch: Cluster.unreachable(options.dataDir, "its database cannot be started")
  })
  return yield* Effect.acquireRelease(
    begin,
    ({ child, exited }) => stop((signal) => child.kill(signal), Deferred.await(exited))
  )
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
    ...(options.durable === false ? { fsync: "off", full_page_writes: "off" } : {})
  }
  const set = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])
  return ["-D", cluster.dataArgument, ...set]
}

const stop = (kill: (signal: NodeJS.Signals) => void, gone: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.sync(() => kill("SIGINT")).pipe(
    Effect.andThen(gone),
    Effect.timeoutOrElse({
      duration: stopBound,
      orElse: () => Effect.andThen(Effect.sync(() => kill("SIGQUIT")), gone)
    })
  )

const untilReady = (cluster: Cluster.PostgresCluster, pid: number | undefined): Effect.Effect<void> =>
  Effect.sync(() => {
    const found = Cluster.postmaster(cluster)
    return found?.pid === pid && found?.status === "ready"
  }).pipe(Effect.repeat({ until: (ready) => ready, schedule: Schedule.spaced("20 millis") }), Effect.asVoid)

/** Whether a server that ended at once lost a race, which is worth another look, or has a reason that stays. */
const whyNot = (cluster: Cluster.PostgresCluster, logged: number): Again | EmbeddedPostgresFailed => {
  const text = Fs.readFileSync(cluster.log).subarray(logged).toString("utf8")
  return /lock file|pre-existing shared memory|Address already in use|shutdown request/.test(text)
    ? new Again()
    : didNotStart(cluster, /FATAL: {2}(.*)/.exec(text)?.[1])
}

/**
 * Ends a server that a dead service left behind. The proof that it serves nobody is the lock that a live service holds
 * in it. One that is starting may be recovering for a service that waits for it, so it is waited for first.
 */
const evict = Effect.fnUntraced(function*(cluster: Cluster.PostgresCluster) {
  const found = yield* Effect.sync(() => Cluster.postmaster(cluster)).pipe(
    Effect.repeat({ while: (found) => found?.status === "starting", schedule: Schedule.spaced("20 millis") }),
    Effect.timeoutOrElse({ duration: startBound, orElse: () => Effect.fail(inUse(cluster)) })
  )
  if (found === undefined) return
  yield* Effect.scoped(provenAbandoned(cluster, found.port)).pipe(
    Effect.catchTag("SqlError", () => found.status === "stopping" ? Effect.void : Effect.fail(new Again()))
  )
  yield* Effect.logInfo("Stopping a database server that an earlier service left behind")
  const gone = Effect.sync(() => Cluster.postmaster(cluster)?.pid === found.pid).pipe(
    Effect.repeat({ while: (there) => there, schedule: Schedule.spaced("20 millis") }),
    Effect.asVoid
  )
  yield* stop((signal) => process.kill(found.pid, signal), gone).pipe(
    Effect.timeoutOrElse({ duration: Duration.times(stopBound, 2), orElse: () => Effect.fail(doesNotStop(found.pid)) })
  )
})

/**
 * Takes the ownership lock of a server that somebody else started. One that has just begun to serve, for the first time
 * or after a crash of its own, is left alone for a while: its service may be about to take the lock.
 */
const provenAbandoned = Effect.fnUntraced(function*(cluster: Cluster.PostgresCluster, port: number) {
  const connection = yield* ownerConnection(cluster, port)
  const { rowCount } = yield* connection.query(`select 1 from pg_stat_activity
    where backend_type = 'walwriter' and backend_start < clock_timestamp() - interval '2 seconds'
      or pid in (select pid from pg_locks where locktype = 'advisory' and objid = 7102411)`)
  if (rowCount === 0) return yield* new Again()
  yield* lockOwnership(cluster, connection)
})

const ownerConnection = (cluster: Cluster.PostgresCluster, port: number) =>
  PgConnection.make({ url: url(cluster, port, "postgres"), applicationName: "indelible owner" })

/** Tries for half a second: a service that was killed holds the lock until its server notices. */
const lockOwnership = (cluster: Cluster.PostgresCluster, connection: PgConnection.PgConnection) =>
  connection.query("select 1 where pg_try_advisory_lock(7102411)").pipe(
    Effect.filterOrFail(({ rowCount }) => rowCount === 1, () => inUse(cluster)),
    Effect.retry({
      while: (error) => error._tag === "EmbeddedPostgresFailed",
      schedule: Schedule.spaced("100 millis"),
      times: 5
    })
  )

/** Holds the ownership lock while the server runs, and takes it again after a crash of the server's sessions. */
const own = Effect.fnUntraced(function*(
  cluster: Cluster.PostgresCluster,
  port: number,
  exited: Deferred.Deferred<void>
) {
  const first = yield* Deferred.make<void, EmbeddedPostgresFailed>()
  yield* Effect.scoped(Effect.gen(function*() {
    const connection = yield* ownerConnection(cluster, port)
    yield* lockOwnership(cluster, connection)
    yield* Deferred.succeed(first, undefined)
    const lost = yield* connection.listen("indelible_owner")
    return yield* Effect.forever(Queue.take(lost))
  })).pipe(
    Effect.tapError((error) => error._tag === "SqlError" ? Effect.void : Deferred.fail(first, error)),
    Effect.retry({ schedule: Schedule.spaced("100 millis") }),
    Effect.raceFirst(Deferred.await(exited)),
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
