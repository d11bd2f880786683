/** The models of production keep the promises of all: the one on board, and one behind a server that may misbehave. */
import { NodeHttpClient } from "@effect/platform-node"
import { Context, Effect, Layer } from "effect"
import * as LocalProvider from "../../src/adapters/LocalProvider.ts"
import * as OpenAiProvider from "../../src/adapters/OpenAiProvider.ts"
import { configOf, refusal } from "../adapters/openAiHarness.ts"
import * as Fake from "../fakeOpenAi.ts"
import type { Trouble } from "../services/providerTroubleSuite.ts"
import { keepProvider } from "./matrix.ts"

class FakeServer extends Context.Service<FakeServer, Fake.FakeOpenAi>()("indelible/test/FakeServer") {}

const behaviours: { readonly [Name in Trouble]: Fake.Behaviour } = {
  "too many at once": refusal(429),
  "too many at once, and when to come back": refusal(429, null, { "retry-after": "7" }),
  "nobody there": Fake.reset,
  "a refusal": Fake.choice({ content: null, refusal: "I would rather not" }),
  "no sense": Fake.says("Nothing to see here.")
}

const overHttp = Layer.unwrap(Effect.map(FakeServer, ({ baseUrl }) => OpenAiProvider.layer(configOf(baseUrl)))).pipe(
  Layer.provide(NodeHttpClient.layerUndici),
  Layer.provideMerge(Layer.effect(FakeServer, Fake.serve))
)

// It has no server that could misbehave; what becomes of it when its thread dies is in `adapters/localProvider`.
keepProvider("local", LocalProvider.layer, () => Effect.die(new Error("nothing is between it and us")))
keepProvider("OpenAI-compatible", overHttp, (trouble) =>
  Effect.map(FakeServer, (fake) => {
    const met = fake.received.length + 1
    fake.script = (_received, count) => count === met ? behaviours[trouble] : Fake.honest()
  }))
