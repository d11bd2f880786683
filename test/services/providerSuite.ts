/** What every `Provider` promises, whatever answers behind it. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, type Layer, Schema } from "effect"
import type { Message } from "../../src/domain/Command.ts"
import { OperationId } from "../../src/domain/Ids.ts"
import { buildPlan, Fact } from "../../src/domain/Plan.ts"
import { dot } from "../../src/domain/Vector.ts"
import { type ExtractionRequest, Provider } from "../../src/services/Provider.ts"

const user = (content: string): Message => ({ role: "user", content })
const asked = (...messages: ReadonlyArray<Message>): ExtractionRequest => ({
  messages,
  related: [],
  instructions: null,
  eventDate: null
})
const conversation = asked(
  user("I live in Paris."),
  { role: "assistant", content: "Paris is a lovely city." },
  user("My sister Ana is a doctor.")
)
const isFact = Schema.is(Fact)

export const suite = <E>(name: string, provider: Layer.Layer<Provider, E>) =>
  layer(provider, { excludeTestServices: true, timeout: "60 seconds" })(`Provider: ${name}`, (it) => {
    it.effect("names its models, and fixes the dimension of its vectors", () =>
      Effect.gen(function*() {
        const { dimension, embeddingModel, model } = yield* Provider
        assert.isAbove(model.length, 0)
        assert.isAbove(embeddingModel.length, 0)
        assert.isTrue(Number.isSafeInteger(dimension) && dimension > 0)
      }))

    it.effect("where nothing is said, there is nothing to remember", () =>
      Effect.gen(function*() {
        const { extract } = yield* Provider
        assert.deepStrictEqual(yield* extract(asked()), [])
        assert.deepStrictEqual(yield* extract(asked(user(""), user(" \n\t"))), [])
      }))

    it.effect("what it offers is a fact for each thing the user told, and can be planned", () =>
      Effect.gen(function*() {
        const { extract, model } = yield* Provider
        const facts = yield* extract(conversation)
        assert.isTrue(facts.every(isFact))
        const plan = buildPlan({
          operationId: OperationId.make("00000000-0000-7000-8000-000000000001"),
          facts,
          related: [],
          scope: { user_id: "ana" },
          metadata: {},
          eventDate: null,
          model
        })
        assert.deepStrictEqual(plan.steps.map(({ change }) => change), ["add", "add"])
      }))

    it.effect("the same conversation gives the same facts", () =>
      Effect.gen(function*() {
        const { extract } = yield* Provider
        assert.deepStrictEqual(yield* extract(conversation), yield* extract(conversation))
      }))

    it.effect("no texts have no vectors", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* (yield* Provider).embed([]), [])
      }))

    it.effect("each of many texts has its own vector, in order: finite, of unit length, of the dimension", () =>
      Effect.gen(function*() {
        const { dimension, embed } = yield* Provider
        const texts = Array.from({ length: 70 }, (_, n) => `Memory ${n}: ${"abcdefghij"[n % 10]!.repeat(1 + n)}`)
        const vectors = yield* embed(texts)
        assert.strictEqual(vectors.length, texts.length)
        for (const vector of vectors) {
          assert.instanceOf(vector, Float32Array)
          assert.strictEqual(vector.length, dimension)
          assert.isTrue(vector.every(Number.isFinite))
          assert.approximately(dot(vector, vector), 1, 1e-5)
        }
        for (const place of [0, 1, 31, 32, 69]) {
          const [alone] = yield* embed([texts[place]!])
          const likeness = vectors.map((vector) => dot(alone!, vector))
          assert.approximately(likeness[place]!, 1, 1e-5)
          assert.strictEqual(likeness.indexOf(Math.max(...likeness)), place)
        }
      }))

    it.effect("any text has a vector, however odd", () =>
      Effect.gen(function*() {
        const { dimension, embed } = yield* Provider
        const texts = ["", " ", "\n", "🦜", "日本語", "\"}]\\", "x".repeat(8_192), "a ".repeat(4_096)]
        const vectors = yield* embed(texts)
        assert.deepStrictEqual(vectors.map(({ length }) => length), texts.map(() => dimension))
        assert.isTrue(vectors.every((vector) => vector.every(Number.isFinite)))
      }))

    it.effect("callers at the same time get their own vectors", () =>
      Effect.gen(function*() {
        const { embed } = yield* Provider
        const texts = Array.from({ length: 12 }, (_, n) => "abcdefghijkl"[n]!.repeat(20))
        const together = yield* Effect.forEach(texts, (text) => embed([text, "other"]), { concurrency: "unbounded" })
        const expected = yield* embed(texts)
        for (const [place, [vector]] of together.entries()) {
          assert.approximately(dot(vector!, expected[place]!), 1, 1e-5)
        }
      }))

    it.effect("a caller that goes away takes nothing from the others", () =>
      Effect.gen(function*() {
        const { embed } = yield* Provider
        const leaving = yield* Effect.forkChild(embed(Array.from({ length: 40 }, (_, n) => `Leaving ${n}`)))
        const staying = yield* Effect.forkChild(embed(["Staying"]))
        yield* Effect.yieldNow
        yield* Fiber.interrupt(leaving)
        const [vector] = yield* Fiber.join(staying)
        const [again] = yield* embed(["Staying"])
        assert.approximately(dot(vector!, again!), 1, 1e-5)
      }))
  })
