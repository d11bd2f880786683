/** Faults 7 and 8: one charge or one refund, and nothing left of the input but its explanation. */
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Layer, Logger, Result } from "effect"
import { normaliseAdd } from "../../src/domain/Command.ts"
import { Commands } from "../../src/services/Commands.ts"
import { Events } from "../../src/services/Events.ts"
import { Ledger } from "../../src/services/Ledger.ts"
import { Queue } from "../../src/services/Queue.ts"
import { Retries } from "../../src/services/Retries.ts"
import { assertHealthy } from "../audit.ts"
import { fact, failure, Script } from "../scripted.ts"
import * as World from "../world.ts"

const kinds = Effect.gen(function*() {
  const rows = yield* (yield* Ledger).transfers({ workspaceId: World.workspace, before: null, limit: 100 })
  return rows.map((row) => row.kind).toReversed()
})

describe("fault 7: one charge on success, one refund on terminal failure", () => {
  layer(World.layer(), { excludeTestServices: true })("on a real Postgres", (it) => {
    it.effect("a success is charged once", () =>
      Effect.gen(function*() {
        yield* World.open(10n)
        yield* World.startWorker()
        const { eventId } = yield* World.accept("paid")
        const event = yield* World.finished(eventId)
        assert.deepStrictEqual(event.usage, { reserved: 2n, charged: 2n, refunded: 0n })
        assert.deepStrictEqual(yield* kinds, ["grant", "reserve", "charge"])
        yield* assertHealthy
      }))

    it.effect("a terminal failure is refunded once, and a manual retry is authorized anew before it runs", () =>
      Effect.gen(function*() {
        const script = yield* Script
        const retries = yield* Retries
        script.extract = () => failure("extraction_refused")
        yield* World.startWorker()
        const { eventId } = yield* World.accept("refused")
        const ref = { workspaceId: World.workspace, id: eventId }
        const failed = yield* World.finished(eventId)
        assert.strictEqual(failed.error?.class, "extraction_refused")
        assert.deepStrictEqual(failed.usage, { reserved: 2n, charged: 0n, refunded: 2n })

        script.extract = () => Effect.succeed([fact("User likes tea.")])
        yield* retries.retry(ref, World.key("again"))
        const event = yield* World.untilEvent(eventId, (event) => event.status === "succeeded")
        assert.deepStrictEqual(event.usage, { reserved: 4n, charged: 2n, refunded: 2n })
        assert.deepStrictEqual(yield* kinds, [
          "grant",
          "reserve",
          "charge",
          "reserve",
          "refund",
          "reserve",
          "charge"
        ])
        const repeated = yield* retries.retry(ref, World.key("again"))
        assert.isTrue(repeated.replayed)
        assert.strictEqual((yield* Effect.flip(retries.retry(ref, null)))._tag, "WrongState")
        yield* assertHealthy
      }))

    it.effect("a manual retry without credit changes nothing", () =>
      Effect.gen(function*() {
        const script = yield* Script
        const retries = yield* Retries
        const commands = yield* Commands
        script.extract = () => failure("provider_rejected")
        yield* World.startWorker()
        const { eventId } = yield* World.accept("poor")
        yield* World.finished(eventId)
        const ledger = yield* Ledger
        while ((yield* ledger.balances(World.workspace)).available >= 2n) {
          yield* commands.add(World.workspace, null, normaliseAdd({ content: "costs one", user_id: "ana", infer: false }))
        }
        const before = yield* World.dump
        const refused = yield* Effect.flip(retries.retry({ workspaceId: World.workspace, id: eventId }, null))
        assert.strictEqual(refused._tag, "InsufficientCredit")
        assert.deepStrictEqual((yield* World.dump)["operations"], before["operations"])
        assert.deepStrictEqual((yield* World.dump)["transfers"], before["transfers"])
        yield* assertHealthy
      }))
  })

  // Whoever retries hears nothing until something that a test says has happened.
  let meanwhile: Effect.Effect<void> = Effect.void
  const late = Layer.succeed(Queue, Queue.of({
    send: (wakeUps) => wakeUps.some(({ _tag }) => _tag === "Changed") ? Effect.suspend(() => meanwhile) : Effect.void,
    subscribe: Effect.succeed(Effect.never)
  }))

  layer(World.layer(World.testSettings, late), { excludeTestServices: true })("when a retry ends before it is answered", (it) => {
    it.effect("the receipt tells what the retry has reserved, although nothing of it is held any more", () =>
      Effect.gen(function*() {
        yield* World.open(10n)
        const script = yield* Script
        const retries = yield* Retries
        script.extract = () => failure("extraction_refused")
        yield* World.startWorker()
        const { eventId } = yield* World.accept("quick")
        yield* World.finished(eventId)
        script.extract = () => Effect.succeed([fact("User likes tea.")])
        const ended = World.untilEvent(eventId, ({ status }) => status === "succeeded")
        meanwhile = Effect.asVoid(Effect.orDie(Effect.provideContext(ended, yield* Effect.context<World.World>())))
        const receipt = yield* retries.retry({ workspaceId: World.workspace, id: eventId }, World.key("again"))
        meanwhile = Effect.void
        assert.deepStrictEqual([receipt.status, receipt.replayed, receipt.reserved], ["succeeded", false, 2n])
        yield* assertHealthy
      }))
  })

  layer(World.layer(), { excludeTestServices: true })("when a cancel races with the commit", (it) => {
    it.effect("one of them wins, and the money says which", () =>
      Effect.gen(function*() {
        yield* World.open(1_000n)
        const retries = yield* Retries
        yield* World.startWorker()
        const receipts = yield* Effect.forEach(
          Array.from({ length: 40 }, (_, n) => `race-${n}`),
          (name) => World.accept(name, World.body(name, name)),
          { concurrency: "unbounded" }
        )
        const cancels = yield* Effect.forEach(
          receipts,
          ({ eventId }) => Effect.result(retries.cancel({ workspaceId: World.workspace, id: eventId })),
          { concurrency: "unbounded" }
        )
        const events = yield* Effect.forEach(receipts, ({ eventId }) => World.finished(eventId))
        events.forEach((event, index) => {
          const cancelled = Result.isSuccess(cancels[index]!)
          assert.strictEqual(event.status, cancelled ? "failed" : "succeeded")
          assert.strictEqual(event.usage.charged, cancelled ? 0n : 2n)
          assert.strictEqual(event.results.length, cancelled ? 0 : 1)
        })
        yield* assertHealthy
      }))
  })
})

describe("fault 8: the raw input is removed after success, and the event stays explainable", () => {
  const lines: Array<string> = []
  const capture = Logger.layer([Logger.make((entry) => void lines.push(Logger.formatJson.log(entry)))])

  layer(World.layer(), { excludeTestServices: true })("on a real Postgres", (it) => {
    it.effect("a canary in the input and the key is nowhere but in the memory that holds it", () =>
      Effect.gen(function*() {
        yield* World.open(10n)
        const script = yield* Script
        const events = yield* Events
        script.extract = () => Effect.succeed([fact("User keeps a stored-canary bird.")])
        yield* World.startWorker()
        const { eventId } = yield* World.accept("key-canary-1", {
          messages: [{ role: "user", content: "I keep a raw-canary bird", name: "name-canary" }],
          user_id: "ana",
          instructions: "instructions-canary"
        })
        const event = yield* World.projected(eventId)
        assert.strictEqual(event.inputRetained, false)
        assert.deepInclude(event.evidence, { messages: 1, inputBytes: 24, model: "scripted", offered: 1, stored: 1 })
        assert.match(event.evidence.commandHash, /^[0-9a-f]{64}$/)
        assert.match(event.evidence.planDigest ?? "", /^[0-9a-f]{64}$/)

        const dump = yield* World.dump
        const found = Object.entries(dump).filter(([, rows]) => rows.some((row) => row.includes("canary")))
        assert.deepStrictEqual(found.map(([table]) => table), ["memories", "memory_history"])
        assert.notMatch(JSON.stringify(dump), /raw-canary|key-canary|name-canary|instructions-canary/)
        assert.notMatch(lines.join("\n"), /canary/)
        const read = yield* events.get({ workspaceId: World.workspace, id: eventId })
        assert.deepStrictEqual(read.results.map((result) => result.memory), ["User keeps a stored-canary bird."])
        yield* assertHealthy
      }).pipe(Effect.provide(capture)))

    it.effect("deleting the memory removes its text from the event, the history and every table", () =>
      Effect.gen(function*() {
        const events = yield* Events
        const commands = yield* Commands
        const [event] = yield* events.list({
          workspaceId: World.workspace,
          status: "succeeded",
          type: "memory.infer",
          scope: {},
          before: null,
          limit: 1
        })
        const memoryId = event!.results[0]!.id!
        yield* commands.delete(World.workspace, null, { kind: "memory.delete", memoryId, expectedVersion: 1 })
        assert.isNull((yield* events.get({ workspaceId: World.workspace, id: event!.id })).results[0]!.memory)
        assert.notMatch(JSON.stringify(yield* World.dump), /canary/)
        yield* assertHealthy
      }))
  })
})
