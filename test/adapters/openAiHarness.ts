/** An OpenAI provider and the fake server that it calls, and a look at what its failures show to others. */
import { assert } from "@effect/vitest"
import { Context, Duration, Effect, Layer, Logger, Redacted } from "effect"
import * as OpenAiProvider from "../../src/adapters/OpenAiProvider.ts"
import type { Fact } from "../../src/domain/Plan.ts"
import { type ExtractionRequest, Provider } from "../../src/services/Provider.ts"
import * as Fake from "../fakeOpenAi.ts"

export const dimension = 8
export const secret = "sk-secret-0123456789"
export const canary = "canary-4711"

export const configOf = (baseUrl: string): OpenAiProvider.OpenAiConfig => ({
  baseUrl,
  apiKey: Redacted.make(secret),
  model: "gpt-test",
  embeddingModel: "embed-test",
  dimension,
  temperature: 0,
  timeout: Duration.minutes(2)
})

export const request: ExtractionRequest = {
  messages: [{ role: "user", content: `I live in Paris. ${canary}` }],
  related: [{ text: "User lives in Berlin." }, { text: "User likes tea." }],
  instructions: null,
  eventDate: null
}

/** A server that meets its requests with these behaviours, and a provider that calls it. */
export const begin = Effect.fnUntraced(function*(...behaviours: ReadonlyArray<Fake.Behaviour>) {
  const fake = yield* Fake.serve
  fake.script = Fake.inTurn(...behaviours)
  return { fake, provider: yield* providerOf(configOf(fake.baseUrl)) }
})

export const providerOf = (config: OpenAiProvider.OpenAiConfig) =>
  Effect.map(Layer.build(OpenAiProvider.layer(config)), Context.get(Provider))

/** The failure of a call, after a look at what it left in the log: one line with the class and the status. */
export const failureOf = Effect.fnUntraced(function*(call: Effect.Effect<unknown, unknown>, status: number | null) {
  const lines: Array<string> = []
  const log = Logger.layer([Logger.map(Logger.formatJson, (line) => lines.push(line))])
  const failure: any = yield* Effect.flip(call).pipe(Effect.provide(log))
  const annotations = lines.map((line) => JSON.parse(line).annotations)
  assert.deepStrictEqual(annotations, [{ failure: failure.failure, status }])
  for (const shown of [...lines, JSON.stringify(failure), String(failure), failure.stack]) {
    assert.notMatch(shown, new RegExp(`${canary}|${secret}|127\\.0\\.0\\.1|localhost|refused it|upstream`))
  }
  assert.isUndefined(failure.cause)
  return failure as { readonly failure: string; readonly retryAfterMs: number | null }
})

export const refusal = (status: number, code: string | null = null, headers: Record<string, string> = {}) =>
  Fake.answer(status, { error: { message: `upstream: ${canary}`, type: "error", code } }, headers)

/** One fact, as a model offers it. */
export const offer: { readonly facts: ReadonlyArray<Fact> } = {
  facts: [{ change: "add", text: "User lives in Paris.", target: null }]
}

export const vector = (index: number, embedding: ReadonlyArray<number> = [1, 2, 3, 4, 5, 6, 7, 8]) => ({
  index,
  embedding
})
