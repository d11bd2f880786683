/** Faults 3 and 5: the worker dies at each of three points, and the lease expires under one that only sleeps. */
import { assert, describe, layer } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import type { OperationId } from "../../src/domain/Ids.ts"
import { Ledger } from "../../src/services/Ledger.ts"
import { Store } from "../../src/services/Store.ts"
import { assertHealthy } from "../audit.ts"
import { fact, failure, Script } from "../scripted.ts"
import * as World from "../world.ts"

const settled = (charged: bigint, issued: bigint) => ({
  available: issued - charged,
  reserved: 0n,
  consumed: charged,
  issued
})

/** After a crash: two workers are there, one of them takes over, and everything is there once. */
const recovers = Effect.fnUntraced(function*(id: OperationId, texts: ReadonlyArray<string>) {
  yield* World.expireLeases
  const others = [yield* World.startWorker(), yield* World.startWorker()]
  const event = yield* World.finished(id)
  yield* Effect.forEach(others, (worker) => worker.stop, { discard: true })
  assert.strictEqual(event.status, "succeeded")
  assert.deepStrictEqual(event.results.map((result) => result.memory), [...texts])
  assert.strictEqual(yield* World.count("memories"), texts.length)
  assert.strictEqual(yield* World.count("memory_history"), texts.length)
  assert.deepStrictEqual(yield* (yield* Ledger).balances(World.workspace), settled(2n, 10n))
  yield* assertHealthy
  return event
})

describe("fault 3: the worker is killed", () => {
  layer(World.layer(), { excludeTestServices: true })("before inference", (it) => {
    it.effect("another one infers, commits and charges, once", () =>
      Effect.gen(function*() {
        yield* World.open(10n)
        const script = yield* Script
        const { eventId } = yield* World.accept("before", World.body("I like tea"))
        const claimed = yield* Deferred.make<void>()
        const doomed = yield* World.startWorker()
        script.extract = () => Effect.andThen(Deferred.succeed(claimed, undefined), Effect.never)
        yield* Deferred.await(claimed)
        yield* doomed.kill
        script.extract = () => Effect.succeed([fact("User likes tea.")])
        const event = yield* recovers(eventId, ["User likes tea."])
        assert.strictEqual(event.attempts, 2)
      }))
  })

  layer(World.layer(), { excludeTestServices: true })("after inference, when the plan is frozen", (it) => {
    it.effect("another one replays the plan and does not ask the model again", () =>
      Effect.gen(function*() {
        yield* World.open(10n)
        const script = yield* Script
        script.extract = (_, call) => Effect.succeed([fact(`User said ${call}.`)])
        const { eventId } = yield* World.accept("after", World.body("I like tea"))
        const { operations } = yield* Store
        const ref = { workspaceId: World.workspace, id: eventId }
        // Nobody can commit while the account is locked: the worker gets as far as its frozen plan.
        const doomed = yield* World.holdingAccount(Effect.gen(function*() {
          const worker = yield* World.startWorker()
          yield* Effect.repeat(operations.work([ref]), { until: ([work]) => work?.plan !== null })
          yield* worker.kill
          return worker
        }))
        assert.strictEqual(script.calls, 1)
        assert.strictEqual(yield* World.count("memories"), 0)
        yield* recovers(eventId, ["User said 1."])
        assert.strictEqual(script.calls, 1)
        yield* doomed.stop
      }))
  })

  layer(World.layer(), { excludeTestServices: true })("after the canonical commit, before it heard of it", (it) => {
    it.effect("nothing is left to do, and nobody does it again", () =>
      Effect.gen(function*() {
        yield* World.open(10n)
        const script = yield* Script
        script.extract = () => Effect.succeed([fact("User likes tea.")])
        const { eventId } = yield* World.accept("committed", World.body("I like tea"))
        const doomed = yield* World.startWorker()
        doomed.life.endAfterCommit = true
        yield* doomed.life.ended
        const event = yield* recovers(eventId, ["User likes tea."])
        assert.strictEqual(event.attempts, 1)
        assert.strictEqual(script.calls, 1)
        yield* doomed.stop
      }))
  })

  layer(World.layer(), { excludeTestServices: true })("again and again", (it) => {
    it.effect("a crash loop ends: the attempts are spent, the operation fails and the hold is refunded", () =>
      Effect.gen(function*() {
        yield* World.open(10n)
        const script = yield* Script
        script.extract = () => Effect.never
        const { eventId } = yield* World.accept("poison", World.body("I crash workers"))
        for (let crash = 1; crash <= World.testSettings.retry.maxAttempts; crash++) {
          const doomed = yield* World.startWorker()
          yield* Effect.repeat(Effect.sync(() => script.calls), { until: (calls) => calls === crash })
          yield* doomed.kill
          yield* World.expireLeases
        }
        yield* World.startWorker()
        const event = yield* World.finished(eventId)
        assert.strictEqual(event.error?.class, "attempts_exhausted")
        assert.strictEqual(event.attempts, World.testSettings.retry.maxAttempts)
        assert.deepStrictEqual(yield* (yield* Ledger).balances(World.workspace), settled(0n, 10n))
        yield* assertHealthy
      }))
  })
})

describe("fault 5: the lease expires under a worker that is only slow", () => {
  layer(World.layer(), { excludeTestServices: true })("on a real Postgres", (it) => {
    it.effect("exactly one of two others takes over, and the sleeper that wakes writes nothing", () =>
      Effect.gen(function*() {
        yield* World.open(10n)
        const script = yield* Script
        const asleep = yield* Deferred.make<void>()
        const wake = yield* Deferred.make<void>()
        script.extract = (_, call) =>
          call === 1
            ? Effect.andThen(Deferred.succeed(asleep, undefined), Deferred.await(wake)).pipe(
              Effect.as([fact("the sleeper was here")])
            )
            : Effect.succeed([fact("User likes tea.")])
        const { eventId } = yield* World.accept("sleeper", World.body("I like tea"))
        // Its heartbeat and its fence are as slow as it is: it believes that it holds the lease.
        const sleeper = yield* World.startWorker({ lease: World.days(1) })
        yield* Deferred.await(asleep)
        yield* World.expireLeases
        yield* World.startWorker()
        yield* World.startWorker()
        const event = yield* World.projected(eventId)
        assert.strictEqual(event.attempts, 2)
        const before = yield* World.dump
        yield* Deferred.succeed(wake, undefined)
        yield* sleeper.stop
        assert.deepStrictEqual(yield* World.dump, before)
        assert.strictEqual(script.calls, 2)
        assert.deepStrictEqual(event.results.map((result) => result.memory), ["User likes tea."])
        assert.deepStrictEqual(yield* (yield* Ledger).balances(World.workspace), settled(2n, 10n))
        yield* assertHealthy
      }))

    it.effect("a sleeper that wakes to a failure, of a rate limit or for good, writes nothing either", () =>
      Effect.gen(function*() {
        const script = yield* Script
        for (const kind of ["provider_rejected", "provider_rate_limited", "provider_unavailable"] as const) {
          const asleep = yield* Deferred.make<void>()
          const wake = yield* Deferred.make<void>()
          const first = script.calls + 1
          script.extract = (_, call) =>
            call === first
              ? Effect.andThen(Deferred.succeed(asleep, undefined), Deferred.await(wake)).pipe(Effect.andThen(failure(kind)))
              : Effect.succeed([fact(`Stored after ${kind}.`)])
          const { eventId } = yield* World.accept(kind, World.body(kind))
          const sleeper = yield* World.startWorker({ lease: World.days(1) })
          yield* Deferred.await(asleep)
          yield* World.expireLeases
          const other = yield* World.startWorker()
          const event = yield* World.projected(eventId)
          const before = yield* World.dump
          yield* Deferred.succeed(wake, undefined)
          yield* sleeper.stop
          yield* other.stop
          assert.deepStrictEqual(yield* World.dump, before)
          assert.strictEqual(event.status, "succeeded")
        }
        yield* assertHealthy
      }))
  })
})
