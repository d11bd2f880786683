/** What the sweep and the caller may do to the input of operations that failed. */
import { assert, describe, layer } from "@effect/vitest"
import { Duration, Effect, Layer } from "effect"
import { Repair } from "../../src/services/Repair.ts"
import { Retries } from "../../src/services/Retries.ts"
import { Settings } from "../../src/services/Settings.ts"
import { assertHealthy } from "../audit.ts"
import { failure, Script } from "../scripted.ts"
import * as World from "../world.ts"

const settings = { ...World.testSettings, failedInputRetention: Duration.zero }
const expiring = Repair.layer.pipe(Layer.provide(Layer.succeed(Settings, settings)))

const failed = Effect.fnUntraced(function*(name: string) {
  const script = yield* Script
  script.extract = () => failure("extraction_refused")
  const { eventId } = yield* World.accept(name)
  yield* World.startWorker()
  yield* World.finished(eventId)
  return { workspaceId: World.workspace, id: eventId }
})

describe("Repair", () => {
  layer(World.layer(), { excludeTestServices: true })("on a real Postgres", (it) => {
    it.effect("the input of a failed operation is kept for a retry, and removed when its time is over", () =>
      Effect.gen(function*() {
        yield* World.open()
        const retries = yield* Retries
        const ref = yield* failed("kept")
        const early = yield* Effect.flatMap(Repair, (repair) => repair.sweep).pipe(Effect.provide(Repair.layer))
        assert.strictEqual(early.inputsRemoved, 0)
        assert.strictEqual(yield* World.count("operation_inputs"), 1)
        const late = yield* Effect.flatMap(Repair, (repair) => repair.sweep).pipe(Effect.provide(expiring))
        assert.strictEqual(late.inputsRemoved, 1)
        assert.strictEqual(yield* World.count("operation_inputs"), 0)
        assert.strictEqual((yield* Effect.flip(retries.retry(ref, null)))._tag, "InputGone")
        yield* assertHealthy
      }))

    it.effect("a purge removes the input at once, and a live operation is not purged", () =>
      Effect.gen(function*() {
        const retries = yield* Retries
        const ref = yield* failed("purged")
        assert.isFalse((yield* retries.purgeInput(ref)).inputRetained)
        assert.isFalse((yield* retries.purgeInput(ref)).inputRetained)
        assert.strictEqual((yield* Effect.flip(retries.retry(ref, null)))._tag, "InputGone")
        const script = yield* Script
        script.extract = () => Effect.never
        const live = yield* World.accept("live")
        const refused = yield* Effect.flip(retries.purgeInput({ workspaceId: World.workspace, id: live.eventId }))
        assert.strictEqual(refused._tag, "WrongState")
        yield* assertHealthy
      }))

    it.effect("cancelling twice is cancelling once, and what has ended otherwise cannot be cancelled", () =>
      Effect.gen(function*() {
        const retries = yield* Retries
        const { eventId } = yield* World.accept("cancelled", World.body("cancelled", "zoe"))
        const ref = { workspaceId: World.workspace, id: eventId }
        const first = yield* retries.cancel(ref)
        const second = yield* retries.cancel(ref)
        assert.strictEqual(first.error?.class, "cancelled")
        assert.deepStrictEqual(second, first)
        const ended = yield* failed("ended")
        assert.strictEqual((yield* Effect.flip(retries.cancel(ended)))._tag, "WrongState")
        yield* assertHealthy
      }))
  })
})
