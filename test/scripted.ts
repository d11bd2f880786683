/** A provider and a vector index that do what a test tells them, and count what they were asked. */
import { Context, Effect, Layer } from "effect"
import type { Fact } from "../src/domain/Plan.ts"
import { type ExtractionRequest, Provider, ProviderFailure } from "../src/services/Provider.ts"
import { VectorIndex, VectorIndexFailure } from "../src/services/VectorIndex.ts"

export const fact = (text: string): Fact => ({ change: "add", text, target: null })

export const failure = (
  kind: ProviderFailure["failure"],
  retryAfterMs: number | null = null
): Effect.Effect<never, ProviderFailure> => Effect.fail(new ProviderFailure({ failure: kind, retryAfterMs }))

const dimension = 8

/** A unit vector that depends on the letters of a text, and on nothing else. */
const embed = (text: string): Float32Array => {
  const vector = new Float32Array(dimension).fill(0.01)
  for (const letter of text.toLowerCase()) vector[(letter.codePointAt(0) ?? 0) % dimension]! += 1
  const length = Math.hypot(...vector)
  return vector.map((value) => value / length)
}

/** The provider's script: `extract` is replaced at will, and may hang on a latch, fail or answer differently each time. */
export class Script extends Context.Service<Script, {
  extract: (request: ExtractionRequest, call: number) => Effect.Effect<ReadonlyArray<Fact>, ProviderFailure>
  calls: number
  /** While true, every write to the vector index fails. */
  indexDown: boolean
}>()("indelible/test/Script") {
  /** Each user message becomes one fact, until told otherwise. */
  static readonly layer = Layer.sync(Script, () => ({
    extract: (request) =>
      Effect.succeed(request.messages.filter(({ role }) => role === "user").map(({ content }) => fact(content))),
    calls: 0,
    indexDown: false
  }))
}

export const provider = Layer.effect(
  Provider,
  Effect.map(Script, (script) =>
    Provider.of({
      model: "scripted",
      embeddingModel: "scripted",
      dimension,
      extract: (request) => Effect.suspend(() => script.extract(request, ++script.calls)),
      embed: (texts) => Effect.succeed(texts.map(embed))
    }))
)

/** Wraps whatever index is underneath: it goes down and comes back with the script. */
export const fallibleIndex = Layer.effect(
  VectorIndex,
  Effect.gen(function*() {
    const index = yield* VectorIndex
    const script = yield* Script
    const unlessDown = <A>(effect: Effect.Effect<A, VectorIndexFailure>) =>
      Effect.suspend(() => script.indexDown ? Effect.fail(new VectorIndexFailure({ reason: "unavailable" })) : effect)
    return VectorIndex.of({
      put: (rows) => unlessDown(index.put(rows)),
      remove: (refs) => unlessDown(index.remove(refs)),
      search: (query) => unlessDown(index.search(query))
    })
  })
)
