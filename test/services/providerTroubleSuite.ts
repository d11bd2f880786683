/** What every `Provider` promises of a call that goes wrong behind it: a class that says what to do, and nothing else. */
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer, Result } from "effect"
import { type ExtractionRequest, Provider, ProviderFailure } from "../../src/services/Provider.ts"

/** What one call may meet, and the class of the failure that it becomes. */
const classes = {
  "too many at once": "provider_rate_limited",
  "too many at once, and when to come back": "provider_rate_limited",
  "nobody there": "provider_unavailable",
  "a refusal": "extraction_refused",
  "no sense": "invalid_output"
} as const satisfies Record<string, ProviderFailure["failure"]>

export type Trouble = keyof typeof classes

const troubles = Object.entries(classes) as ReadonlyArray<[Trouble, ProviderFailure["failure"]]>
/** What vectors can meet as well. */
const ofVectors = troubles.filter(([trouble]) => trouble !== "a refusal" && trouble !== "no sense")

const canary = "canary-4711"
const asked = (content: string): ExtractionRequest => ({
  messages: [{ role: "user", content }],
  related: [],
  instructions: null,
  eventDate: null
})

/** `next` lets the next call meet this trouble. */
export const suite = <R, E>(
  name: string,
  provider: Layer.Layer<Provider | R, E>,
  next: (trouble: Trouble) => Effect.Effect<void, never, R>
) =>
  layer(provider, { excludeTestServices: true, timeout: "60 seconds" })(`Provider in trouble: ${name}`, (it) => {
    it.effect.each(troubles)("%s is %s, and the next call is answered", ([trouble, failure]) =>
      Effect.gen(function*() {
        const { extract } = yield* Provider
        yield* next(trouble)
        assert.strictEqual((yield* Effect.flip(extract(asked("I live in Paris.")))).failure, failure)
        assert.strictEqual((yield* extract(asked("I live in Paris."))).length, 1)
      }))

    it.effect.each(ofVectors)("for vectors too, %s is %s, and the next call is answered", ([trouble, failure]) =>
      Effect.gen(function*() {
        const { dimension, embed } = yield* Provider
        yield* next(trouble)
        assert.strictEqual((yield* Effect.flip(embed(["one", "two"]))).failure, failure)
        assert.deepStrictEqual((yield* embed(["one", "two"])).map(({ length }) => length), [dimension, dimension])
      }))

    it.effect("it says how long to wait where it was told, and only there", () =>
      Effect.gen(function*() {
        const { extract } = yield* Provider
        const waits = yield* Effect.forEach(["too many at once", "too many at once, and when to come back"] as const, (trouble) =>
          Effect.andThen(next(trouble), Effect.flip(extract(asked("I live in Paris.")))))
        assert.isNull(waits[0]!.retryAfterMs)
        assert.isAbove(waits[1]!.retryAfterMs!, 0)
      }))

    it.effect("of many callers only the one who met it fails", () =>
      Effect.gen(function*() {
        const { extract } = yield* Provider
        yield* next("nobody there")
        const calls = Array.from({ length: 6 }, (_, n) => Effect.result(extract(asked(`My number is ${n}.`))))
        const ends = yield* Effect.all(calls, { concurrency: "unbounded" })
        const offered = ends.flatMap((end, n) => Result.isFailure(end) ? [] : [[n, end.success.map(({ text }) => text)]])
        assert.strictEqual(offered.length, 5)
        for (const [n, texts] of offered) assert.deepStrictEqual(texts, [`My number is ${n}.`])
      }))

    it.effect.each(troubles)("after %s nothing of what was asked is in the failure", ([trouble]) =>
      Effect.gen(function*() {
        const { extract } = yield* Provider
        yield* next(trouble)
        const failure = yield* Effect.flip(extract(asked(`I live in ${canary}.`)))
        assert.instanceOf(failure, ProviderFailure)
        for (const shown of [JSON.stringify(failure), String(failure), failure.stack]) assert.notInclude(shown, canary)
        assert.isUndefined(failure.cause)
      }))
  })
