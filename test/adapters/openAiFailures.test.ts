/** Each way in which a server can misbehave has its class, over every HTTP client, and what it said goes nowhere. */
import { NodeHttpClient } from "@effect/platform-node"
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { FetchHttpClient } from "effect/http"
import { TestClock } from "effect/testing"
import * as Fake from "../fakeOpenAi.ts"
import { begin, canary, configOf, failureOf, offer, providerOf, refusal, request, vector } from "./openAiHarness.ts"

const cut = "{\"facts\":[{\"change\":\"add\",\"text\":\"User lives in Paris.\",\"target\":null},{\"chan"

/** Name, behaviour, class, and the status that the operator sees. */
const extractions: ReadonlyArray<readonly [string, Fake.Behaviour, string, number | null]> = [
  ["a 500", refusal(500), "provider_unavailable", 500],
  ["a 502 of a proxy", Fake.answer(502, `<html>${canary}</html>`), "provider_unavailable", 502],
  ["a 503 without a body", Fake.answer(503, ""), "provider_unavailable", 503],
  ["a 408", refusal(408), "provider_unavailable", 408],
  ["a 429", refusal(429), "provider_rate_limited", 429],
  ["a 429 without a body", Fake.answer(429, ""), "provider_rate_limited", 429],
  ["a 429 because the money is gone", refusal(429, "insufficient_quota"), "provider_rejected", 429],
  ["a 400", refusal(400), "provider_rejected", 400],
  ["a 401", refusal(401, "invalid_api_key"), "provider_rejected", 401],
  ["a 403", refusal(403), "provider_rejected", 403],
  ["a 404", refusal(404, "model_not_found"), "provider_rejected", 404],
  ["a 422", refusal(422), "provider_rejected", 422],
  ["a 400 of a content filter", refusal(400, "content_filter"), "extraction_refused", 400],
  ["a connection reset", Fake.reset, "provider_unavailable", null],
  ["a connection reset in the middle of the body", Fake.resetMidBody(), "provider_unavailable", null],
  ["a 429 that breaks off", Fake.resetMidBody(429), "provider_rate_limited", 429],
  ["a refusal", Fake.choice({ content: null, refusal: `I refused it: ${canary}` }), "extraction_refused", 200],
  ["a stop by the content filter", Fake.choice({ content: "" }, "content_filter"), "extraction_refused", 200],
  ["a stop by length", Fake.choice({ content: JSON.stringify(offer) }, "length"), "invalid_output", 200],
  ["cut JSON", Fake.says(cut), "invalid_output", 200],
  ["cut JSON around a whole offer", Fake.says(`{"answer": ${JSON.stringify(offer)}`), "invalid_output", 200],
  ["an offer and then a cut one", Fake.says(`${JSON.stringify(offer)}\n${cut}`), "invalid_output", 200],
  ["no JSON", Fake.says(`Nothing to see here, ${canary}.`), "invalid_output", 200],
  ["no text", Fake.choice({ content: null }), "invalid_output", 200],
  ["text in parts", Fake.choice({ content: [{ type: "text", text: JSON.stringify(offer) }] }), "invalid_output", 200],
  ["another name for the facts", Fake.says({ memories: offer.facts }), "invalid_output", 200],
  ["facts that are no list", Fake.says({ facts: "User lives in Paris." }), "invalid_output", 200],
  ["facts that are strings", Fake.says({ facts: ["User lives in Paris."] }), "invalid_output", 200],
  ["other names in the facts", Fake.says({ facts: [{ action: "add", memory: "x" }] }), "invalid_output", 200],
  ["facts of another type", Fake.says({ facts: [{ change: "add", text: 7, target: null }] }), "invalid_output", 200],
  ["an unknown change", Fake.says({ facts: [{ change: "merge", text: "x", target: 1 }] }), "invalid_output", 200],
  ["no choices", Fake.answer(200, { choices: [] }), "invalid_output", 200],
  ["a body that is not JSON", Fake.answer(200, `<html>${canary}</html>`), "invalid_output", 200],
  ["a 204", Fake.answer(204, ""), "invalid_output", 204],
  ["an empty body", Fake.answer(200, ""), "invalid_output", 200],
  ["a body without end", Fake.flood, "invalid_output", 200]
]

const embeddings: ReadonlyArray<readonly [string, Fake.Behaviour, string, number | null]> = [
  ["fewer vectors than texts", Fake.vectors([vector(0)]), "invalid_output", 200],
  ["more vectors than texts", Fake.vectors([vector(0), vector(1), vector(2)]), "invalid_output", 200],
  ["the same index twice", Fake.vectors([vector(1), vector(1)]), "invalid_output", 200],
  ["an index out of range", Fake.vectors([vector(0), vector(2)]), "invalid_output", 200],
  ["another dimension", Fake.vectors([vector(0), vector(1, [1, 2, 3])]), "invalid_output", 200],
  ["a vector of zeros", Fake.vectors([vector(0), vector(1, Array(8).fill(0))]), "invalid_output", 200],
  ["strings for numbers", Fake.vectors([vector(0), vector(1, Array(8).fill("1"))]), "invalid_output", 200],
  ["a null among the numbers", Fake.vectors([vector(0), vector(1, [1, 2, 3, 4, 5, 6, 7, NaN])]), "invalid_output", 200],
  [
    "a NaN",
    Fake.answer(200, JSON.stringify({ data: [vector(0), vector(1)] }).replace("8]", "NaN]")),
    "invalid_output",
    200
  ],
  [
    "a number beyond all bounds",
    Fake.answer(200, JSON.stringify({ data: [vector(0), vector(1)] }).replace("8]", "1e999]")),
    "invalid_output",
    200
  ],
  [
    "a number too large for a vector",
    Fake.answer(200, JSON.stringify({ data: [vector(0), vector(1)] }).replace("8]", "1e39]")),
    "invalid_output",
    200
  ],
  ["no data", Fake.answer(200, { vectors: [] }), "invalid_output", 200],
  ["a 404", refusal(404), "provider_rejected", 404],
  ["a 500", refusal(500), "provider_unavailable", 500],
  ["a connection reset in the middle of the body", Fake.resetMidBody(), "provider_unavailable", null]
]

const clients = {
  undici: NodeHttpClient.layerUndici,
  fetch: FetchHttpClient.layer,
  "node:http": NodeHttpClient.layerNodeHttp
}

for (const [client, http] of Object.entries(clients)) {
  layer(http)(`OpenAiProvider over ${client}`, (it) => {
    for (const [name, behaviour, failure, status] of extractions) {
      it.effect(`${name} is ${failure}`, () =>
        Effect.gen(function*() {
          const { fake, provider } = yield* begin(behaviour)
          const failed = yield* failureOf(provider.extract(request), status)
          assert.deepStrictEqual([failed.failure, failed.retryAfterMs], [failure, null])
          assert.strictEqual(fake.received.length, 1)
        }))
    }

    for (const [name, behaviour, failure, status] of embeddings) {
      it.effect(`for embeddings, ${name} is ${failure}`, () =>
        Effect.gen(function*() {
          const { fake, provider } = yield* begin(behaviour)
          const failed = yield* failureOf(provider.embed([canary, "two"]), status)
          assert.deepStrictEqual([failed.failure, failed.retryAfterMs], [failure, null])
          assert.strictEqual(fake.received.length, 1)
        }))
    }

    for (const [name, behaviour] of [["no answer", Fake.hang], ["an answer that stalls", Fake.stall]] as const) {
      it.effect(`${name} is provider_timeout, and the connection is closed`, () =>
        Effect.gen(function*() {
          const { fake, provider } = yield* begin(behaviour)
          const failing = yield* Effect.forkChild(failureOf(provider.extract(request), null))
          const { over } = yield* Effect.promise(() => fake.arrival(1))
          yield* TestClock.adjust("119 seconds")
          assert.isUndefined(failing.pollUnsafe())
          yield* TestClock.adjust("1 second")
          assert.strictEqual((yield* Fiber.join(failing)).failure, "provider_timeout")
          assert.strictEqual(yield* Effect.promise(() => over), "broken")
        }))

      it.effect(`an interruption during ${name} closes the connection`, () =>
        Effect.gen(function*() {
          const { fake, provider } = yield* begin(behaviour)
          const fiber = yield* Effect.forkChild(provider.extract(request))
          const { over } = yield* Effect.promise(() => fake.arrival(1))
          yield* Fiber.interrupt(fiber)
          assert.strictEqual(yield* Effect.promise(() => over), "broken")
        }))
    }

    it.effect("a body without end is left after a few megabytes, and the connection is closed", () =>
      Effect.gen(function*() {
        const { fake, provider } = yield* begin(Fake.flood)
        yield* Effect.flip(provider.extract(request))
        assert.strictEqual(yield* Effect.promise(() => fake.received[0]!.over), "broken")
      }))

    it.effect("a redirect is not followed: the conversation and the key go nowhere else", () =>
      Effect.gen(function*() {
        const elsewhere = yield* Fake.serve
        for (const status of [301, 302, 307, 308]) {
          const { fake, provider } = yield* begin(
            Fake.answer(status, "", { location: `${elsewhere.baseUrl}/chat/completions` })
          )
          assert.strictEqual((yield* failureOf(provider.extract(request), status)).failure, "provider_rejected")
          assert.strictEqual(fake.received.length, 1)
        }
        assert.strictEqual(elsewhere.received.length, 0)
      }))

    it.effect("a refused connection and a host without an address are provider_unavailable", () =>
      Effect.gen(function*() {
        const gone = yield* Effect.scoped(Effect.map(Fake.serve, ({ baseUrl }) => baseUrl))
        for (const baseUrl of [gone, "http://nowhere.invalid/v1"]) {
          const { extract } = yield* providerOf(configOf(baseUrl))
          assert.strictEqual((yield* failureOf(extract(request), null)).failure, "provider_unavailable")
        }
      }))

    it.effect("a call after failed ones is answered", () =>
      Effect.gen(function*() {
        const { provider } = yield* begin(Fake.reset, refusal(500), Fake.facts(...offer.facts))
        yield* Effect.flip(provider.extract(request))
        yield* Effect.flip(provider.extract(request))
        assert.deepStrictEqual(yield* provider.extract(request), offer.facts)
      }))
  })
}
