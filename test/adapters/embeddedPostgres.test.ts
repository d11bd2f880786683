/** The embedded database outlives crashes of the service and of itself, and never serves two services. */
import { PgClient } from "@effect/sql-pg"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Redacted, Schedule, Scope } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import * as EmbeddedPostgres from "../../src/adapters/EmbeddedPostgres.ts"
import { enterable, type ServerUser } from "../../src/adapters/PostgresBinaries.ts"

const isRoot = process.getuid?.() === 0
const nobody = { name: "nobody", uid: 65534, gid: 65534 }
const service = Path.join(import.meta.dirname, "embeddedService.ts")
/** A directory that everybody may enter, gone after the test. */
const directory = Effect.acquireRelease(
  Effect.sync(() => {
    const path = Fs.mkdtempSync(Path.join(Os.tmpdir(), "indelible-embedded-"))
    Fs.chmodSync(path, 0o755)
    return path
  }),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

let made = ""

beforeAll(async () => {
  made = Fs.mkdtempSync(Path.join(Os.tmpdir(), "indelible-embedded-"))
  await Effect.runPromise(Effect.scoped(start(made)))
  return () => Fs.rmSync(made, { recursive: true, force: true })
})

/** A data directory whose cluster was made, and stopped, before. */
const stopped = Effect.tap(directory, (path) =>
  Effect.sync(() => spawnSync("cp", ["-a", Path.join(made, "postgres"), path])))

const start = (dataDir: string) => EmbeddedPostgres.make({ dataDir, durable: false })

/** A server that stops within the test, by the returned effect. */
const startStoppable = Effect.fnUntraced(function*(dataDir: string) {
  const scope = yield* Scope.fork(yield* Effect.scope)
  const server = yield* Scope.provide(start(dataDir), scope)
  return { ...server, stop: Scope.close(scope, Exit.void) }
})

const query = (url: Redacted.Redacted, statement: string) =>
  PgClient.makeClient({ url }).pipe(
    Effect.flatMap((sql) => sql.unsafe<Record<string, unknown>>(statement)),
    Effect.scoped,
    Effect.provide(Reactivity.layer)
  )

const keep = (url: Redacted.Redacted) =>
  Effect.andThen(query(url, "create table kept (n integer)"), query(url, "insert into kept values (42)"))

const assertKept = Effect.fnUntraced(function*(url: Redacted.Redacted) {
  assert.deepStrictEqual(yield* query(url, "select n from kept"), [{ n: 42 }])
})

/** Kills the process that runs this statement, once it runs. */
const killStatement = Effect.fnUntraced(function*(url: Redacted.Redacted, statement: string) {
  const running = yield* Effect.forkChild(Effect.flip(query(url, statement)))
  const [row] = yield* query(url, "select pid from pg_stat_activity where wait_event = 'PgSleep'").pipe(
    Effect.repeat({ until: (rows) => rows.length > 0 })
  )
  yield* Effect.sync(() => process.kill(Number(row?.pid), "SIGKILL"))
  yield* Fiber.join(running)
})

const pidFile = (dataDir: string) => Path.join(dataDir, "postgres/data/postmaster.pid")

const postmaster = (dataDir: string) => Number(Fs.readFileSync(pidFile(dataDir), "utf8").split("\n")[0])

const exists = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Starts the service in a process of its own; the second word of what it says first is its URL. */
const spawnService = Effect.fnUntraced(function*(dataDir: string, user?: ServerUser) {
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, [service, dataDir], { stdio: ["ignore", "pipe", "inherit"], cwd: dataDir, ...user })),
    (child) => end(child, "SIGTERM")
  )
  const said = yield* Effect.callback<string>((resume) => {
    child.stdout.once("data", (chunk: Buffer) => resume(Effect.succeed(chunk.toString().trim())))
    child.once("exit", () => resume(Effect.succeed("exited")))
  })
  return { child, said }
})

const end = (child: ChildProcess, signal: NodeJS.Signals): Effect.Effect<void> =>
  Effect.callback((resume) => {
    if (child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
    child.once("exit", () => resume(Effect.void))
    child.kill(signal)
  })

describe("the embedded database", () => {
  it.live("keeps what was committed over a stop, which leaves no process behind", () =>
    Effect.gen(function*() {
      const dataDir = yield* stopped
      const first = yield* startStoppable(dataDir)
      yield* keep(first.url)
      const pid = postmaster(dataDir)
      yield* first.stop
      assert.isFalse(exists(pid))
      yield* assertKept((yield* start(dataDir)).url)
    }))

  it.live("lets nobody in without the password that only the data directory knows", () =>
    Effect.gen(function*() {
      const dataDir = yield* stopped
      const { url } = yield* start(dataDir)
      const wrong = new URL(Redacted.value(url))
      wrong.password = "guess"
      const refused = yield* Effect.flip(query(Redacted.make(wrong.href), "select 1"))
      assert.strictEqual(refused.reason._tag, "AuthenticationError")
      assert.strictEqual(Fs.statSync(Path.join(dataDir, "postgres/password")).mode & 0o777, 0o600)
      assert.strictEqual(wrong.hostname, "127.0.0.1")
      assert.isFalse(String(url).includes(new URL(Redacted.value(url)).password))
    }))

  it.live("turns a second service away in one line, and serves the first undisturbed", () =>
    Effect.gen(function*() {
      const dataDir = yield* stopped
      const { url } = yield* start(dataDir)
      const refused = yield* Effect.flip(Effect.scoped(start(dataDir)))
      assert.strictEqual(refused.reason, "in_use")
      assert.notInclude(refused.message, "\n")
      assert.deepStrictEqual(yield* query(url, "select 1 as n"), [{ n: 1 }])
    }))

  it.live("serves one of two services that start at the same time on nothing", () =>
    Effect.gen(function*() {
      const dataDir = yield* directory
      const results = yield* Effect.all([Effect.result(start(dataDir)), Effect.result(start(dataDir))], {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(results.map((result) => result._tag).toSorted(), ["Failure", "Success"])
      for (const result of results) {
        if (result._tag === "Failure") assert.strictEqual(result.failure.reason, "in_use")
        else assert.deepStrictEqual(yield* query(result.success.url, "select 1 as n"), [{ n: 1 }])
      }
    }))

  it.live("stays ours when a crash inside the server ends every session", () =>
    Effect.gen(function*() {
      const dataDir = yield* stopped
      const { url } = yield* start(dataDir)
      yield* keep(url)
      yield* killStatement(url, "select pg_sleep(600)")
      assert.strictEqual((yield* Effect.flip(Effect.scoped(start(dataDir)))).reason, "in_use")
      yield* assertKept(url)
    }))

  it.live("never writes into its log what was in a statement", () =>
    Effect.gen(function*() {
      const dataDir = yield* stopped
      const server = yield* startStoppable(dataDir)
      yield* Effect.flip(query(server.url, "select 'canary-of-a-refusal'::integer"))
      yield* killStatement(server.url, "select pg_sleep(600), 'canary-of-a-crash'")
      yield* Effect.retry(query(server.url, "select 1"), Schedule.spaced("20 millis"))
      yield* server.stop
      const log = Fs.readFileSync(Path.join(dataDir, "postgres/server.log"), "utf8")
      assert.include(log, "was terminated by signal 9")
      assert.notInclude(log, "canary")
    }))
})

describe("after a crash, the embedded database", () => {
  it.live("of a service that was killed is taken over by the next, with one server and every committed row", () =>
    Effect.gen(function*() {
      const dataDir = yield* stopped
      const { child, said } = yield* spawnService(dataDir)
      yield* keep(Redacted.make(said.slice("ready ".length)))
      yield* end(child, "SIGKILL")
      const orphan = postmaster(dataDir)
      assert.isTrue(exists(orphan))
      const next = yield* start(dataDir)
      assert.notStrictEqual(postmaster(dataDir), orphan)
      yield* assertKept(next.url)
    }))

  it.live("tells the service in one line when its server was killed, and recovers at the next start", () =>
    Effect.gen(function*() {
      const dataDir = yield* stopped
      const first = yield* startStoppable(dataDir)
      yield* keep(first.url)
      yield* Effect.sync(() => process.kill(postmaster(dataDir), "SIGKILL"))
      const told = yield* Effect.flip(first.watch)
      assert.strictEqual(told.reason, "stopped")
      assert.notInclude(told.message, "\n")
      yield* first.stop
      yield* assertKept((yield* start(dataDir)).url)
    }))

  it.live("is not kept from starting by a lock file that names a process of somebody else", () =>
    Effect.gen(function*() {
      const dataDir = yield* stopped
      const first = yield* startStoppable(dataDir)
      yield* keep(first.url)
      const lines = Fs.readFileSync(pidFile(dataDir), "utf8").split("\n")
      yield* first.stop
      Fs.writeFileSync(pidFile(dataDir), [String(process.pid), ...lines.slice(1)].join("\n"))
      yield* assertKept((yield* start(dataDir)).url)
    }))

  it.live("is made anew when the first start died in the middle of making it", () =>
    Effect.gen(function*() {
      const dataDir = yield* directory
      const dead = spawnSync(process.execPath, ["--version"]).pid
      Fs.mkdirSync(Path.join(dataDir, `postgres.new-${dead}`, "data"), { recursive: true })
      yield* start(dataDir)
      assert.deepStrictEqual(Fs.readdirSync(dataDir), ["postgres"])
    }))
})

describe("where it cannot run, the embedded database", () => {
  it.live("says in one line why its directory cannot be used, and what to do", () =>
    Effect.gen(function*() {
      const folder = yield* directory
      const at = (...path: ReadonlyArray<string>) => Path.join(folder, ...path)
      Fs.writeFileSync(at("file"), "")
      Fs.mkdirSync(at("taken"))
      Fs.writeFileSync(at("taken", "postgres"), "")
      Fs.symlinkSync(at("nowhere"), at("dangling"))
      // Nobody makes a directory there, root included.
      for (const place of [at("file"), at("file", "below"), at("taken"), at("dangling"), "/proc/nope", "/sys/nope/below"]) {
        const refused = yield* Effect.flip(Effect.scoped(start(place)))
        const line = /^DATA_DIR (\S+) cannot be used: .+ \(.+\)\. Set DATA_DIR to a directory that .+\.$/
        assert.strictEqual(line.exec(refused.message)?.[1], place, refused.message)
      }
    }))

  it.live("says in one line that another major version made its files", () =>
    Effect.gen(function*() {
      const dataDir = yield* stopped
      Fs.writeFileSync(Path.join(dataDir, "postgres/data/PG_VERSION"), "17\n")
      const refused = yield* Effect.flip(Effect.scoped(start(dataDir)))
      assert.strictEqual(refused.reason, "wrong_version")
      assert.match(refused.message, /made by Postgres 17, and this release brings Postgres 18/)
      assert.notInclude(refused.message, "\n")
    }))

  it.live("says why in one line when its server ends at once", () =>
    Effect.gen(function*() {
      const dataDir = yield* stopped
      Fs.appendFileSync(Path.join(dataDir, "postgres/data/postgresql.conf"), "no_such_setting = 1\n")
      const refused = yield* Effect.flip(Effect.scoped(start(dataDir)))
      assert.strictEqual(refused.reason, "did_not_start")
      assert.match(refused.message, /server\.log says why: /)
      assert.notInclude(refused.message, "\n")
    }))
})

describe("users", () => {
  it.live.runIf(isRoot)("root may keep the data below a directory that the server's user cannot enter", () =>
    Effect.gen(function*() {
      const root = yield* directory
      const dataDir = Path.join(root, "private/data")
      Fs.mkdirSync(Path.dirname(dataDir), { mode: 0o700 })
      const first = yield* startStoppable(dataDir)
      yield* keep(first.url)
      yield* Effect.sync(() => process.kill(postmaster(dataDir), "SIGKILL"))
      yield* Effect.flip(first.watch)
      yield* first.stop
      const next = yield* start(dataDir)
      yield* assertKept(next.url)
      assert.strictEqual((yield* Effect.flip(Effect.scoped(start(dataDir)))).reason, "in_use")
    }))

  const canTry = isRoot && enterable(import.meta.dirname, nobody)
  it.live.runIf(canTry)("a normal user runs it as himself, and root takes it over", () =>
    Effect.gen(function*() {
      const dataDir = Path.join(yield* directory, "data")
      Fs.mkdirSync(dataDir)
      Fs.chownSync(dataDir, nobody.uid, nobody.gid)
      const { child, said } = yield* spawnService(dataDir, nobody)
      assert.match(said, /^ready /)
      yield* keep(Redacted.make(said.slice("ready ".length)))
      yield* end(child, "SIGKILL")
      yield* assertKept((yield* start(dataDir)).url)
      assert.strictEqual(Fs.statSync(pidFile(dataDir)).uid, nobody.uid)
    }))
})
