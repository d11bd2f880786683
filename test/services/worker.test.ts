/** What a worker promises: failures by their class, lanes in order, fairness between workspaces, a clean stop. */
import { assert, describe, layer } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber, Logger, References } from "effect"
import { WorkspaceId } from "../../src/domain/Ids.ts"
import { Events } from "../../src/services/Events.ts"
import { Ledger } from "../../src/services/Ledger.ts"
import { Retries } from "../../src/services/Retries.ts"
import { assertHealthy } from "../audit.ts"
import { Losses } from "../lossy.ts"
import { fact, failure, Script } from "../scripted.ts"
import * as World from "../world.ts"

describe("Worker", () => {
  layer(World.layer(), { excludeTestServices: true })("failures", (it) => {
    it.effect("a failure that may pass is tried again within bounds, and the event says when", () =>
      Effect.gen(function*() {
        yield* World.open()
        const script = yield* Script
        script.extract = (_, call) =>
          call < 3 ? failure(call === 1 ? "provider_timeout" : "provider_unavailable") : Effect.succeed([fact("third time lucky")])
        yield* World.startWorker()
        const { eventId } = yield* World.accept("flaky")
        const event = yield* World.finished(eventId)
        assert.deepInclude(event, { status: "succeeded", attempts: 3, error: null })
        script.extract = () => failure("provider_unavailable")
        const failed = yield* World.finished((yield* World.accept("down")).eventId)
        assert.strictEqual(failed.error?.class, "provider_unavailable")
        assert.strictEqual(failed.attempts, World.testSettings.retry.maxAttempts)
        assert.deepStrictEqual(failed.usage, { reserved: 2n, charged: 0n, refunded: 2n })
        yield* assertHealthy
      }))

    it.effect("a rate limit spends no attempt, and what the provider asked for is waited for", () =>
      Effect.gen(function*() {
        const script = yield* Script
        const events = yield* Events
        const limited = yield* Deferred.make<void>()
        const first = script.calls + 1
        script.extract = (_, call) =>
          call === first
            ? Effect.andThen(Deferred.succeed(limited, undefined), failure("provider_rate_limited", 400))
            : Effect.succeed([fact("after the limit")])
        yield* World.startWorker()
        const { createdAt, eventId } = yield* World.accept("limited")
        yield* Deferred.await(limited)
        const waiting = yield* World.untilEvent(eventId, (event) => event.nextAttemptAt !== null)
        assert.deepInclude(waiting, { status: "pending", attempts: 0 })
        assert.strictEqual(waiting.error?.class, "provider_rate_limited")
        assert.isAtLeast(waiting.nextAttemptAt! - createdAt, 400)
        const event = yield* World.finished(eventId)
        assert.deepInclude(event, { status: "succeeded", attempts: 1 })
        assert.isAtLeast((yield* events.get({ workspaceId: World.workspace, id: eventId })).completedAt! - createdAt, 400)
      }))

    it.effect("unusable output is tried once more and no further; a refusal and a rejection not at all", () =>
      Effect.gen(function*() {
        const script = yield* Script
        yield* World.startWorker()
        const calls: Array<[string, number]> = []
        for (const kind of ["invalid_output", "extraction_refused", "provider_rejected"] as const) {
          const before = script.calls
          script.extract = () => failure(kind)
          const event = yield* World.finished((yield* World.accept(kind)).eventId)
          assert.strictEqual(event.error?.class, kind)
          assert.strictEqual(event.usage.refunded, 2n)
          calls.push([kind, script.calls - before])
        }
        assert.deepStrictEqual(calls, [["invalid_output", 2], ["extraction_refused", 1], ["provider_rejected", 1]])
        yield* assertHealthy
      }))

    it.effect("nothing worth remembering is a success with its own outcome", () =>
      Effect.gen(function*() {
        const script = yield* Script
        script.extract = () => Effect.succeed([])
        yield* World.startWorker()
        const event = yield* World.finished((yield* World.accept("hello")).eventId)
        assert.deepInclude(event, { status: "succeeded", outcome: "no_memory", projection: "none" })
        assert.strictEqual(event.usage.charged, 2n)
      }))

    it.effect("an attempt that outlives its absolute bound is a provider timeout", () =>
      Effect.gen(function*() {
        const script = yield* Script
        const first = script.calls + 1
        script.extract = (_, call) => call === first ? Effect.never : Effect.succeed([fact("quicker")])
        yield* World.startWorker({ attemptBound: Duration.millis(100) })
        const event = yield* World.finished((yield* World.accept("hangs")).eventId)
        assert.deepInclude(event, { status: "succeeded", attempts: 2 })
      }))

    it.effect("a commit whose reply is lost is not made again and not taken for a failure", () =>
      Effect.gen(function*() {
        const script = yield* Script
        const losses = yield* Losses
        const asked = yield* Deferred.make<void>()
        const answer = yield* Deferred.make<void>()
        script.extract = () =>
          Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(answer)).pipe(Effect.as([fact("once")]))
        yield* World.startWorker({ pollInterval: Duration.minutes(1) })
        const { eventId } = yield* World.accept("ack-lost")
        yield* Deferred.await(asked)
        losses.replies = 2
        yield* Deferred.succeed(answer, undefined)
        const event = yield* World.finished(eventId)
        assert.deepInclude(event, { status: "succeeded", attempts: 1 })
        assert.strictEqual(event.results.length, 1)
        yield* assertHealthy
      }))
  })

  layer(World.layer(), { excludeTestServices: true })("order", (it) => {
    it.effect("a lane is worked one at a time in acceptance order, retries of its head included", () =>
      Effect.gen(function*() {
        yield* World.open()
        const script = yield* Script
        const seen: Array<string> = []
        let running = 0
        script.extract = ({ messages }, call) =>
          Effect.suspend(() => {
            assert.strictEqual(++running, 1)
            seen.push(messages[0]!.content)
            return call % 2 === 1 ? failure("provider_unavailable") : Effect.succeed([fact(messages[0]!.content)])
          }).pipe(Effect.ensuring(Effect.sync(() => running--)))
        yield* Effect.forEach(["one", "two", "three", "four"], (name) => World.accept(name), { discard: true })
        yield* World.startWorker()
        yield* World.startWorker()
        yield* World.finished((yield* World.accept("five")).eventId)
        assert.deepStrictEqual(seen.filter((_, index) => index % 2 === 1), ["one", "two", "three", "four", "five"])
        assert.deepStrictEqual(seen.filter((_, index) => index % 2 === 0), ["one", "two", "three", "four", "five"])
        yield* assertHealthy
      }))

    it.effect("a terminal failure lets the next one through, and its retry re-enters behind it", () =>
      Effect.gen(function*() {
        const script = yield* Script
        const retries = yield* Retries
        script.extract = ({ messages }) =>
          messages[0]!.content === "bad" ? failure("extraction_refused") : Effect.succeed([fact(messages[0]!.content)])
        const bad = yield* World.accept("bad")
        const worker = yield* World.startWorker()
        yield* World.finished(bad.eventId)
        yield* worker.stop
        const next = yield* World.accept("next")
        const ref = { workspaceId: World.workspace, id: bad.eventId }
        yield* retries.retry(ref, null)
        const seen: Array<string> = []
        script.extract = ({ messages }) => {
          seen.push(messages[0]!.content)
          return Effect.succeed([fact(messages[0]!.content)])
        }
        yield* World.startWorker()
        yield* World.finished(bad.eventId)
        yield* World.finished(next.eventId)
        assert.deepStrictEqual(seen, ["next", "bad"])
        yield* assertHealthy
      }))

    it.effect("a backlog of one workspace does not delay another's first operation", () =>
      Effect.gen(function*() {
        const script = yield* Script
        yield* World.open()
        const other = yield* World.open(100n, WorkspaceId.make("other"))
        const seen: Array<string> = []
        script.extract = ({ messages }) => {
          seen.push(messages[0]!.content)
          return Effect.succeed([fact(messages[0]!.content)])
        }
        yield* Effect.forEach(Array.from({ length: 30 }, (_, n) => `backlog-${n}`), (name) =>
          World.accept(name, World.body(name, name)), { discard: true })
        yield* World.startWorker({ workerConcurrency: 1, batchSize: 1 })
        const { eventId } = yield* World.accept("first", World.body("first"), other)
        yield* World.finished(eventId, other)
        assert.isAtLeast(seen.indexOf("first"), 0)
        assert.isAtMost(seen.indexOf("first"), 2)
      }))
  })

  layer(World.layer(), { excludeTestServices: true })("shutdown", (it) => {
    it.effect("a worker that is stopped finishes what it can and gives the rest back, attempt included", () =>
      Effect.gen(function*() {
        yield* World.open()
        const script = yield* Script
        const asked = yield* Deferred.make<void>()
        const answer = yield* Deferred.make<void>()
        script.extract = ({ messages }) =>
          messages[0]!.content === "slow"
            ? Effect.andThen(Deferred.succeed(asked, undefined), Effect.never)
            : Deferred.await(answer).pipe(Effect.as([fact("quick")]))
        const told: Array<unknown> = []
        const logger = Logger.make(({ fiber, message }) => {
          told.push([message, fiber.getRef(References.CurrentLogAnnotations)])
        })
        const worker = yield* World.startWorker().pipe(Effect.provide(Logger.layer([logger])))
        const slow = yield* World.accept("slow", World.body("slow", "slow"))
        yield* Deferred.await(asked)
        const quick = yield* World.accept("quick", World.body("quick", "quick"))
        yield* World.untilEvent(quick.eventId, (event) => event.status === "running")
        const stopping = yield* Effect.forkChild(worker.stop)
        yield* Deferred.succeed(answer, undefined)
        yield* Fiber.join(stopping)
        assert.deepStrictEqual(told, [
          [["Draining attempts"], { in_flight: 2 }],
          [["Attempts are drained"], { given_back: 1 }]
        ])
        const events = yield* Events
        assert.strictEqual((yield* events.get({ workspaceId: World.workspace, id: quick.eventId })).status, "succeeded")
        const given = yield* events.get({ workspaceId: World.workspace, id: slow.eventId })
        assert.deepInclude(given, { status: "pending", attempts: 0 })
        script.extract = () => Effect.succeed([fact("slow after all")])
        yield* World.startWorker()
        assert.deepInclude(yield* World.finished(slow.eventId), { status: "succeeded", attempts: 1 })
        assert.strictEqual((yield* (yield* Ledger).balances(World.workspace)).consumed, 4n)
        yield* assertHealthy
      }))

    it.effect("hundreds of slow provider calls are in flight at once, and none of them holds a connection", () =>
      Effect.gen(function*() {
        const script = yield* Script
        const all = yield* Deferred.make<void>()
        let inFlight = 0
        script.extract = () => {
          if (++inFlight === 200) Deferred.doneUnsafe(all, Effect.void)
          return Deferred.await(all).pipe(Effect.as([fact("together")]))
        }
        const receipts = yield* Effect.forEach(Array.from({ length: 200 }, (_, n) => `crowd-${n}`), (name) =>
          World.accept(name, World.body(name, name)), { concurrency: "unbounded" })
        yield* World.startWorker()
        yield* Effect.forEach(receipts, ({ eventId }) => World.finished(eventId), { concurrency: 20 })
        assert.strictEqual(inFlight, 200)
        yield* assertHealthy
      }))
  })
})
