/** The local provider keeps its thread to itself, and the rest of the process free. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Logger } from "effect"
import { execFile } from "node:child_process"
import { once } from "node:events"
import { performance } from "node:perf_hooks"
import { promisify } from "node:util"
import type { Worker } from "node:worker_threads"
import * as LocalProvider from "../../src/adapters/LocalProvider.ts"
import { dot } from "../../src/domain/Vector.ts"
import { Provider } from "../../src/services/Provider.ts"

layer(LocalProvider.layer, { excludeTestServices: true })("LocalProvider", (it) => {
  it.effect("texts that mean the same are near each other", () =>
    Effect.gen(function*() {
      const { embed } = yield* Provider
      const memories = ["User lives in Paris.", "User is allergic to peanuts.", "User's sister is a doctor."]
      const questions = ["Which city is the user's home?", "What food must the user avoid?", "Who works in medicine?"]
      const known = yield* embed(memories)
      for (const [place, asked] of (yield* embed(questions)).entries()) {
        const likeness = known.map((vector) => dot(vector, asked))
        assert.strictEqual(likeness.indexOf(Math.max(...likeness)), place, questions[place])
      }
    }))

  it.effect("embedding leaves the thread of the server free", () =>
    Effect.gen(function*() {
      const { embed } = yield* Provider
      yield* embed(["The model is loaded."])
      const before = performance.eventLoopUtilization()
      yield* embed(Array.from({ length: 48 }, (_, n) => `Memory ${n} is one of quite a few.`))
      assert.isBelow(performance.eventLoopUtilization(before).utilization, 0.5)
    }))

  it.effect("extraction lets others have a turn between two sentences", () =>
    Effect.gen(function*() {
      const { extract } = yield* Provider
      let turns = 0
      const others = yield* Effect.forkChild(Effect.forever(Effect.sync(() => turns++)))
      const content = Array.from({ length: 50 }, (_, n) => `I own ${n} books.`).join(" ")
      yield* extract({ messages: [{ role: "user", content }], related: [], instructions: null, eventDate: null })
      yield* Fiber.interrupt(others)
      assert.isAtLeast(turns, 40)
    }))

  it.effect("a thread that dies is started anew, and who waited for it is told to come back", () =>
    Effect.gen(function*() {
      const started = once(process, "worker") as Promise<[Worker]>
      const { embed } = Context.get(yield* Layer.build(Layer.fresh(LocalProvider.layer)), Provider)
      const [thread] = yield* Effect.promise(() => started)
      const lines: Array<string> = []
      const log = Logger.layer([Logger.map(Logger.formatJson, (line) => lines.push(line))])
      const waiting = yield* Effect.forkChild(Effect.provide(Effect.flip(embed(["A secret."])), log))
      yield* Effect.promise(() => thread.terminate())
      assert.strictEqual((yield* Fiber.join(waiting)).failure, "provider_unavailable")
      assert.lengthOf(lines, 1)
      assert.notInclude(lines[0]!, "secret")
      assert.strictEqual((yield* embed(["This is answered."])).length, 1)
    }))

  it.effect("it prints nothing, touches no handler of the process, and lets it end", () =>
    Effect.gen(function*() {
      const script = `
        import { Effect } from "effect"
        import * as LocalProvider from ${JSON.stringify(import.meta.resolve("../../src/adapters/LocalProvider.ts"))}
        import { Provider } from ${JSON.stringify(import.meta.resolve("../../src/services/Provider.ts"))}
        const handlers = () => process.eventNames().map((name) => [name, process.listenerCount(name)]).join()
        const before = handlers()
        const embedded = Effect.flatMap(Provider, ({ embed }) => embed(["text"]))
        await Effect.runPromise(Effect.provide(embedded, LocalProvider.layer))
        if (handlers() !== before) throw new Error(handlers())
      `
      const run = promisify(execFile)
      const output = yield* Effect.promise(() => run(process.execPath, ["--input-type=module", "--eval", script]))
      assert.deepStrictEqual(output, { stdout: "", stderr: "" })
    }))
})
