/** What a worker promises when something is wrong: with a row, with the database, with its settings, or with its end. */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, layer } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber, Schedule } from "effect"
import { type OperationId, WorkspaceId } from "../../src/domain/Ids.ts"
import { Events } from "../../src/services/Events.ts"
import { Ledger } from "../../src/services/Ledger.ts"
import { assertHealthy } from "../audit.ts"
import { fact, failure, Script } from "../scripted.ts"
import * as World from "../world.ts"

const get = (id: OperationId) =>
  Effect.flatMap(Events, (events) => events.get({ workspaceId: World.workspace, id }))

/** Runs something while a transaction of its own holds what `lock` locks. */
const holding = <A, E, R>(lock: string, effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const sql = yield* PgClient.PgClient
    const [held, over] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
    const steps = Effect.all([sql.unsafe(lock), Deferred.succeed(held, undefined), Deferred.await(over)])
    const holder = yield* Effect.forkChild(sql.withTransaction(steps))
    yield* Deferred.await(held)
    return yield* Effect.ensuring(effect, Effect.andThen(Deferred.succeed(over, undefined), Fiber.await(holder)))
  })

/** Waits until some session waits for a lock that another one has. */
const somebodyWaits = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  yield* sql<{ n: number }>`select count(*)::int as n from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`.pipe(
    Effect.repeat({ until: ([row]) => row!.n > 0, schedule: Schedule.spaced("5 millis") })
  )
})

/** Every change of an operation fails until the inner effect is over, in a way that does not ask to be repeated. */
const whileBroken = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const sql = yield* PgClient.PgClient
    yield* sql`create sequence refused`
    yield* sql`create function refuse_all() returns trigger language plpgsql as
      $$ begin perform nextval('refused'); raise exception 'out of order'; end $$`
    yield* sql`create trigger out_of_order before update on operations for each row execute function refuse_all()`
    yield* effect
    yield* sql<{ n: bigint }>`select last_value as n from refused`.pipe(
      Effect.repeat({ until: ([row]) => row!.n > 5n, schedule: Schedule.spaced("5 millis") })
    )
    yield* sql`drop trigger out_of_order on operations`
    yield* sql`drop function refuse_all`
    yield* sql`drop sequence refused`
  })

describe("Worker in trouble", () => {
  layer(World.layer(), { excludeTestServices: true })("with its settings", (it) => {
    it.effect("attempts that are spent by a new, lower number are ended and refunded, of what waits and of what ran", () =>
      Effect.gen(function*() {
        yield* World.open(10n)
        const script = yield* Script
        const later = { ...World.testSettings.retry, backoffBaseMs: 1, backoffCapMs: 1 }
        let hung = 0
        script.extract = ({ messages }) =>
          messages[0]!.content === "hangs" && ++hung > 2 ? Effect.never : failure("provider_unavailable")
        const waits = yield* World.accept("waits", World.body("waits", "bo"))
        const hangs = yield* World.accept("hangs", World.body("hangs", "cy"))
        const before = yield* World.startWorker({ retry: { ...later, maxAttempts: 100 } })
        yield* World.untilEvent(hangs.eventId, (event) => event.status === "running" && event.attempts >= 3)
        yield* World.untilEvent(waits.eventId, (event) => event.status === "pending" && event.attempts >= 2)
        yield* before.kill
        yield* World.expireLeases
        yield* World.startWorker({ retry: { ...later, maxAttempts: 2 } })
        for (const { eventId } of [waits, hangs]) {
          assert.strictEqual((yield* World.finished(eventId)).error?.class, "attempts_exhausted")
        }
        assert.deepInclude(yield* (yield* Ledger).balances(World.workspace), { available: 10n, reserved: 0n })
        yield* assertHealthy
      }))

    it.effect("no more attempts are under way than it may have, claimed and taken over together", () =>
      Effect.gen(function*() {
        const script = yield* Script
        yield* (yield* Ledger).grant(World.workspace, 1_000n, "more")
        const all = yield* Deferred.make<void>()
        script.extract = () => Effect.andThen(Deferred.succeed(all, undefined), Effect.never)
        const accept = (name: string) => World.accept(name, World.body(name, name))
        const names = Array.from({ length: 24 }, (_, n) => `many-${n}`)
        const receipts = yield* Effect.forEach(names, accept, { concurrency: "unbounded" })
        const doomed = yield* World.startWorker({ workerConcurrency: 12 })
        yield* Effect.repeat(Effect.forEach(receipts, ({ eventId }) => get(eventId)), {
          until: (events) => events.filter(({ status }) => status === "running").length === 12
        })
        yield* doomed.kill
        yield* World.expireLeases
        let [running, most] = [0, 0]
        script.extract = () =>
          Effect.suspend(() => {
            most = Math.max(most, ++running)
            return Effect.delay(Effect.succeed([]), "5 millis")
          }).pipe(Effect.ensuring(Effect.sync(() => running--)))
        yield* World.startWorker({ workerConcurrency: 2 })
        yield* Effect.forEach(receipts, ({ eventId }) => World.finished(eventId), { concurrency: 8 })
        assert.strictEqual(most, 2)
        yield* assertHealthy
      }))
  })

  layer(World.layer(), { excludeTestServices: true })("with a row", (it) => {
    it.effect("what another release wrote keeps no other from being worked on, and costs its attempts", () =>
      Effect.gen(function*() {
        yield* World.open(10n)
        const sql = yield* PgClient.PgClient
        const odd = yield* World.accept("odd", World.body("odd", "bo"))
        yield* sql`insert into operation_plans (workspace_id, operation_id, plan)
          values (${World.workspace}, ${odd.eventId}::uuid, '{"version": 2}')`
        const strange = yield* World.accept("strange", World.body("strange", "cy"))
        yield* sql`update operations set failure = 'of_another_time' where id = ${strange.eventId}::uuid`
        const good = yield* World.accept("good", World.body("good", "ana"))
        yield* World.startWorker({ lease: Duration.millis(60), fenceMargin: Duration.millis(20) })
        assert.strictEqual((yield* World.finished(good.eventId)).status, "succeeded")
        const ended = yield* World.finished(odd.eventId)
        assert.strictEqual(ended.error?.class, "attempts_exhausted")
        assert.deepStrictEqual(ended.usage, { reserved: 2n, charged: 0n, refunded: 2n })
        yield* sql`update operations set failure = null where id = ${strange.eventId}::uuid`
        assert.strictEqual((yield* World.finished(strange.eventId)).status, "succeeded")
        yield* assertHealthy
      }))
  })

  layer(World.layer(), { excludeTestServices: true })("with the database", (it) => {
    it.effect("a claim, a takeover or a renewal that breaks off is not the last one", () =>
      Effect.gen(function*() {
        yield* World.open()
        const script = yield* Script
        const [asked, answer] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        script.extract = ({ messages }) =>
          messages[0]!.content === "slow"
            ? Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(answer)).pipe(Effect.as([fact("slow")]))
            : Effect.succeed([fact("quick")])
        const slow = yield* World.accept("slow", World.body("slow", "slow"))
        const lost = yield* World.accept("lost", World.body("lost", "lost"))
        const sql = yield* PgClient.PgClient
        yield* sql`update operations set state = 'running', epoch = 1, attempts = 1, lease_owner = 'gone',
          lease_expires_at = created_at, started_at = created_at where id = ${lost.eventId}::uuid`
        yield* World.startWorker()
        yield* Deferred.await(asked)
        yield* whileBroken(World.accept("quick", World.body("quick", "quick")))
        const quick = yield* World.accept("quick", World.body("quick", "quick"))
        assert.strictEqual((yield* World.finished(quick.eventId)).status, "succeeded")
        assert.strictEqual((yield* World.finished(lost.eventId)).status, "succeeded")
        yield* Deferred.succeed(answer, undefined)
        assert.deepInclude(yield* World.finished(slow.eventId), { status: "succeeded" })
        yield* assertHealthy
      }))

    it.effect("whoever is busy with one operation costs no other its lease", () =>
      Effect.gen(function*() {
        const script = yield* Script
        const others = yield* World.open(100n, WorkspaceId.make("others"))
        const [asked, answer] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        let calls = 0
        script.extract = ({ messages }) =>
          messages[0]!.content === "slow"
            ? Effect.suspend(() => {
              calls++
              return Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(answer))
            }).pipe(Effect.as([fact("slow")]))
            : Effect.succeed([fact("stuck")])
        const slow = yield* World.accept("slow-too", World.body("slow"), others)
        yield* World.startWorker()
        yield* Deferred.await(asked)
        const stuck = yield* World.accept("stuck", World.body("stuck", "stuck"))
        const account = `select from accounts where workspace_id = '${World.workspace}' for update`
        // The end of one operation has its row locked, and waits for the account all the while.
        yield* holding(account, Effect.andThen(somebodyWaits, Effect.sleep(Duration.times(World.testSettings.lease, 2))))
        yield* Deferred.succeed(answer, undefined)
        assert.deepInclude(yield* World.finished(slow.eventId, others), { status: "succeeded", attempts: 1 })
        assert.strictEqual((yield* World.finished(stuck.eventId)).status, "succeeded")
        assert.strictEqual(calls, 1)
        yield* assertHealthy
      }))
  })

  layer(World.layer(), { excludeTestServices: true })("with its end", (it) => {
    it.effect("a stop in the middle of a claim leaves nothing claimed, not even where there is no time to drain", () =>
      Effect.gen(function*() {
        yield* World.open()
        const script = yield* Script
        script.extract = () => Effect.never
        const receipts = [yield* World.accept("one", World.body("one", "one")), yield* World.accept("two", World.body("two", "two"))]
        const worker = yield* World.startWorker({ drainTimeout: Duration.seconds(2) })
        const stop = yield* holding("select from fair_clock for update", Effect.gen(function*() {
          yield* somebodyWaits
          const stop = yield* Effect.forkChild(worker.stop)
          yield* Effect.yieldNow
          return stop
        }))
        yield* Fiber.join(stop)
        for (const { eventId } of receipts) {
          assert.deepInclude(yield* get(eventId), { status: "pending", attempts: 0 })
        }
        const hasty = yield* World.startWorker({ drainTimeout: Duration.zero })
        for (const { eventId } of receipts) yield* World.untilEvent(eventId, ({ status }) => status === "running")
        yield* hasty.stop
        for (const { eventId } of receipts) {
          assert.deepInclude(yield* get(eventId), { status: "pending", attempts: 0 })
        }
        yield* assertHealthy
      }))
  })
})
