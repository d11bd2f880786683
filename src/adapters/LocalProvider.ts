/** The provider without key or network: rules that read plain English, and an encoder that comes with the packages. */
import { Effect, Layer } from "effect"
import { type ExtractionRequest, Provider } from "../services/Provider.ts"
import * as LocalEmbeddings from "./LocalEmbeddings.ts"

export const layer: Layer.Layer<Provider> = Layer.effect(Provider, Effect.gen(function*() {
  const { embed } = yield* LocalEmbeddings.make
  // Loads a dictionary, which nobody else should wait for.
  const { extraction } = yield* Effect.promise(() => import("./LocalExtractor.ts"))

  const extract = Effect.fn("Provider.extract")(function*(request: ExtractionRequest) {
    const steps = extraction(request)
    for (;;) {
      const step = steps.next()
      if (step.done) return step.value
      yield* Effect.yieldNow
    }
  })

  return Provider.of({
    model: "local-rules",
    embeddingModel: LocalEmbeddings.embeddingModel,
    dimension: LocalEmbeddings.dimension,
    extract,
    embed: Effect.fn("Provider.embed")(embed)
  })
}))
