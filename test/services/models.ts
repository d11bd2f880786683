/** Embedding models small enough to read: texts with the same words, or with words of one meaning, are near each other. */
import { Effect, Layer } from "effect"
import { Provider } from "../../src/services/Provider.ts"

const meanings = [
  ["tea", "beverage", "drinks", "drink", "coffee"],
  ["paris", "berlin", "city", "lives", "home", "moved"],
  ["dog", "cat", "pet", "animal"],
  ["blue", "red", "colour"]
]

/** One direction to a meaning; a word of no known meaning points to one that its letters choose. */
export const embed = (text: string, dimension: number): Float32Array => {
  const vector = new Float32Array(dimension).fill(0.01)
  for (const word of text.toLowerCase().match(/[a-z]+/g) ?? []) {
    const meaning = meanings.findIndex((words) => words.includes(word))
    const letters = [...word].reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7)
    vector[meaning >= 0 ? meaning : meanings.length + letters % (dimension - meanings.length)]! += meaning >= 0 ? 1 : 0.2
  }
  return vector
}

export const provider = (embeddingModel: string, dimension: number) =>
  Provider.of({
    model: "none",
    embeddingModel,
    dimension,
    extract: () => Effect.succeed([]),
    embed: (texts) => Effect.succeed(texts.map((text) => embed(text, dimension)))
  })

export const layer = (embeddingModel: string, dimension: number) => Layer.succeed(Provider, provider(embeddingModel, dimension))
