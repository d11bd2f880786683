/** What a program learns when the database does not say yes: whether to come back, and nothing of the statement. */
import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, Layer, Logger, Redacted, References } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Net from "node:net"
import * as PgDatabase from "../../src/adapters/PgDatabase.ts"
import * as PgTransaction from "../../src/adapters/PgTransaction.ts"
import { OutcomeUnknown, Transaction } from "../../src/services/Transaction.ts"
import { PgTest } from "../postgres.ts"

const contention = new OutcomeUnknown({ reason: "contention" })
const connection = new OutcomeUnknown({ reason: "connection" })

const insert = (n: number) =>
  Effect.flatMap(PgClient.PgClient, (sql) => PgTransaction.outcome(sql`insert into tried values (${n})`))

/** A table of its own, and what is in it. */
const prepare = Effect.flatMap(PgClient.PgClient, (sql) =>
  Effect.andThen(sql`drop table if exists tried`, sql`create table tried (n integer primary key)`))
const stored = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const rows = yield* sql<{ readonly n: number }>`select n from tried order by n`
  return rows.map((row) => row.n)
})

const backend = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const [row] = yield* PgTransaction.outcome(sql<{ readonly pid: number }>`select pg_backend_pid() as pid`)
  return row?.pid ?? 0
})

/** Ends a session from another one, which is how a failover, a restart or an operator looks from inside. */
const terminate = (pid: number) =>
  Effect.gen(function*() {
    const other = yield* PgDatabase.LeasePool
    yield* other`select pg_terminate_backend(${pid}, 5000)`
  })

layer(PgTransaction.layer.pipe(Layer.provideMerge(PgTest.layer)))("a transaction", (it) => {
  it.effect("is durable when it returns, and leaves nothing when it fails, dies or is interrupted", () =>
    Effect.gen(function*() {
      const { run } = yield* Transaction
      yield* prepare
      assert.strictEqual(yield* run(Effect.as(insert(1), "done")), "done")
      assert.strictEqual(yield* Effect.flip(run(Effect.andThen(insert(2), Effect.fail("no")))), "no")
      yield* Effect.exit(run(Effect.andThen(insert(3), Effect.die("bug"))))
      const inside = yield* Deferred.make<void>()
      const fiber = yield* Effect.forkChild(
        run(insert(4).pipe(Effect.andThen(Deferred.succeed(inside, undefined)), Effect.andThen(Effect.never)))
      )
      yield* Deferred.await(inside)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(yield* stored, [1])
    }))

  it.effect("joins the one it is in: both become durable, or neither", () =>
    Effect.gen(function*() {
      const { run } = yield* Transaction
      yield* prepare
      yield* run(Effect.andThen(insert(1), run(insert(2))))
      yield* Effect.flip(run(Effect.andThen(run(insert(3)), Effect.fail("no"))))
      assert.deepStrictEqual(yield* stored, [1, 2])
    }))

  it.effect("never commits half of itself when what failed inside is swallowed", () =>
    Effect.gen(function*() {
      const { run } = yield* Transaction
      yield* prepare
      const swallowed = Effect.ignore(run(Effect.andThen(insert(1), Effect.fail("no"))))
      assert.isTrue(Exit.hasDies(yield* Effect.exit(run(Effect.andThen(swallowed, insert(2))))))
      assert.deepStrictEqual(yield* stored, [])
    }))

  it.effect("that lost a deadlock is told that it was rolled back", () =>
    Effect.gen(function*() {
      const { run } = yield* Transaction
      const sql = yield* PgClient.PgClient
      yield* prepare
      yield* run(Effect.andThen(insert(1), insert(2)))
      const gates = [yield* Deferred.make<void>(), yield* Deferred.make<void>()] as const
      const lock = (n: number) => PgTransaction.outcome(sql`select n from tried where n = ${n} for update`)
      const cross = (mine: 0 | 1) =>
        run(Effect.gen(function*() {
          yield* lock(mine + 1)
          yield* Deferred.succeed(gates[mine], undefined)
          yield* Deferred.await(gates[mine === 0 ? 1 : 0])
          yield* lock(mine === 0 ? 2 : 1)
        }))
      const results = yield* Effect.all([Effect.result(cross(0)), Effect.result(cross(1))], { concurrency: 2 })
      const failures = results.flatMap((result) => result._tag === "Failure" ? [result.failure] : [])
      assert.deepStrictEqual(failures, [contention])
    }))

  it.effect("that waits too long, for a lock or a statement, is told that it was rolled back", () =>
    Effect.gen(function*() {
      const { run } = yield* Transaction
      const sql = yield* PgClient.PgClient
      const other = yield* PgDatabase.LeasePool
      const within = (limit: string, statement: string) =>
        Effect.flip(run(PgTransaction.outcome(Effect.andThen(sql.unsafe(limit), sql.unsafe(statement)))))
      yield* prepare
      yield* run(insert(1))
      yield* other.withTransaction(Effect.gen(function*() {
        yield* other`delete from tried`
        assert.deepStrictEqual(yield* within("set local lock_timeout = '1ms'", "delete from tried"), contention)
      }))
      assert.deepStrictEqual(yield* within("set local statement_timeout = '1ms'", "select pg_sleep(60)"), contention)
    }))

  it.effect("whose session ends between or during its statements is told that nobody knows", () =>
    Effect.gen(function*() {
      const { run } = yield* Transaction
      const sql = yield* PgClient.PgClient
      yield* prepare
      const cut = Effect.flatMap(backend, terminate)
      const rest: ReadonlyArray<Effect.Effect<unknown, unknown, PgClient.PgClient>> = [
        insert(2),
        Effect.void,
        Effect.fail("no")
      ]
      for (const next of rest) {
        const told = yield* Effect.flip(run(insert(1).pipe(Effect.andThen(cut), Effect.andThen(next))))
        assert.deepStrictEqual(told, connection)
      }
      const pid = yield* Deferred.make<number>()
      const busy = yield* Effect.forkChild(Effect.flip(run(Effect.gen(function*() {
        yield* insert(1)
        yield* Deferred.succeed(pid, yield* backend)
        yield* PgTransaction.outcome(sql`select pg_sleep(600)`)
      }))))
      const sleeping = yield* Deferred.await(pid)
      const other = yield* PgDatabase.LeasePool
      yield* Effect.repeat(
        other`select pid from pg_stat_activity where pid = ${sleeping} and wait_event = 'PgSleep'`,
        { until: (rows) => rows.length > 0 }
      )
      yield* terminate(sleeping)
      assert.deepStrictEqual(yield* Fiber.join(busy), connection)
      assert.deepStrictEqual(yield* stored, [])
    }))

  it.effect("that is interrupted after its session ended is interrupted, and not broken", () =>
    Effect.gen(function*() {
      const { run } = yield* Transaction
      const inside = yield* Deferred.make<number>()
      const fiber = yield* Effect.forkChild(run(Effect.andThen(
        Effect.flatMap(backend, (pid) => Deferred.succeed(inside, pid)),
        Effect.never
      )))
      yield* terminate(yield* Deferred.await(inside))
      yield* Fiber.interrupt(fiber)
      const exit = yield* Fiber.await(fiber)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
    }))

  it.effect("that committed without anybody telling is durable, and is told that nobody knows", () =>
    Effect.gen(function*() {
      yield* prepare
      const { url } = yield* PgTest
      const deaf = PgDatabase.layer({ url: yield* losingAnswers(url, "COMMIT") })
      const told = yield* Effect.flatMap(Transaction, ({ run }) => Effect.flip(run(insert(1)))).pipe(
        Effect.provide(PgTransaction.layer.pipe(Layer.provideMerge(deaf)), { local: true })
      )
      assert.deepStrictEqual(told, connection)
      assert.deepStrictEqual(yield* stored, [1])
    }))

  it.effect("that finds no free connection at the server is told to come back", () =>
    Effect.gen(function*() {
      const sql = yield* PgClient.PgClient
      const url = new URL(Redacted.value((yield* PgTest).url))
      url.username = `narrow_${url.pathname.slice(-12)}`
      url.password = "narrow"
      yield* Effect.acquireRelease(
        sql.unsafe(`create role ${url.username} login password 'narrow' connection limit 1`),
        () => Effect.orDie(sql.unsafe(`drop role ${url.username}`))
      )
      const pool = yield* PgClient.make({ url: Redacted.make(url.href) }).pipe(Effect.provide(Reactivity.layer))
      yield* pool.reserve
      assert.deepStrictEqual(yield* Effect.flip(PgTransaction.outcome(pool`select 1`)), contention)
    }))
})

layer(PgTest.layer)("a statement", (it) => {
  it.effect("that can never succeed is a defect that says which rule, and quotes nothing", () =>
    Effect.gen(function*() {
      const sql = yield* PgClient.PgClient
      yield* sql`create table canaries (text text constraint one_canary primary key)`
      yield* sql`insert into canaries values ('canary')`
      const exit = yield* Effect.exit(PgTransaction.outcome(sql`insert into canaries values ('canary')`))
      assert.isTrue(Exit.isFailure(exit))
      if (Exit.isSuccess(exit)) return
      const text = Cause.pretty(exit.cause)
      assert.include(text, "The database refused a statement: UniqueViolation 23505 one_canary")
      assert.notInclude(text + JSON.stringify(exit.cause), "canary'")
      assert.notInclude(text, "(canary)")
    }))

  it.effect("that is worth another try is logged by its SQLSTATE alone", () =>
    Effect.gen(function*() {
      const sql = yield* PgClient.PgClient
      const lines: Array<string> = []
      const logger = Logger.layer([Logger.map(Logger.formatJson, (line) => lines.push(line))])
      yield* sql.withTransaction(Effect.andThen(
        sql`set local statement_timeout = '1ms'`,
        Effect.flip(PgTransaction.outcome(sql`select pg_sleep(60), 'canary'`))
      )).pipe(Effect.ignore, Effect.provide(logger), Effect.provideService(References.MinimumLogLevel, "Debug"))
      assert.strictEqual(lines.length, 1)
      assert.include(lines[0], "57014")
      assert.notInclude(lines[0], "canary")
      assert.notInclude(lines[0], "127.0.0.1")
    }))
})

/** A way to the database that drops the connection in the place of the first answer that holds this word. */
const losingAnswers = Effect.fnUntraced(function*(url: Redacted.Redacted, word: string) {
  const target = new URL(Redacted.value(url))
  const server = yield* Effect.acquireRelease(
    Effect.sync(() =>
      Net.createServer((client) => {
        const database = Net.connect(Number(target.port), target.hostname)
        client.pipe(database)
        database.on("data", (chunk) => chunk.includes(word) ? client.destroy() : client.write(chunk))
        client.on("close", () => database.end())
        client.on("error", () => database.end())
        database.on("error", () => client.destroy())
      })),
    (server) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
  )
  yield* Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void)))
  const address = server.address()
  const proxy = new URL(target)
  proxy.port = String(typeof address === "object" ? address?.port : address)
  return Redacted.make(proxy.href)
})
