/** The vector index follows the records: every version, never back, and out for good once the memory is deleted. */
import type { Invariant } from "../../domain/Invariant.ts"
import { dot, unit } from "../../domain/Vector.ts"
import { fine } from "./Oracle.ts"
import type { MemoryTrack } from "./MemoryTrack.ts"

type MemoryOracle = Invariant<MemoryTrack>

const projectedFromTheStart: MemoryOracle = {
  name: "projected-from-the-start",
  promise: "A version is committed together with its pending projection, and a projection with its version.",
  check: ({ before, begun, memory }) => {
    const changed = memory !== null && memory.version !== before?.version
    if (changed) return begun.includes(memory.version) ? fine : [`version ${memory.version} has no projection`]
    return begun.length === 0 ? fine : [`a projection of version ${begun.join(", ")} came without it`]
  }
}

const vectorNeverReturns: MemoryOracle = {
  name: "vector-never-returns",
  promise: "The vector of a memory never goes back to an older version, and never returns once it was taken out.",
  check: ({ forgotten, indexed, vectorAfter }) => {
    if (vectorAfter === null || vectorAfter.deleted) return fine
    const problems: Array<string> = []
    if (vectorAfter.version < indexed) problems.push(`version ${vectorAfter.version} was indexed after ${indexed}`)
    if (forgotten) problems.push(`version ${vectorAfter.version} was indexed after the memory was taken out`)
    return problems
  }
}

const finishedWhenThere: MemoryOracle = {
  name: "finished-when-there",
  promise: "A projection ends when its version is in the index, out of it with the memory, or replaced by a newer one.",
  check: ({ finished, memory, vectors }) => {
    for (const version of finished) {
      const replaced = memory === null || memory.version > version
      if (!replaced && (memory.deleted ? vectors.length > 0 : !vectors.includes(version))) {
        return [`the projection of version ${version} ended, and indexed are: ${vectors.join(", ") || "none"}`]
      }
    }
    return fine
  }
}

/** What the model makes of a text; null when the world does not say. */
export type VectorOf = ((text: string) => Float32Array) | null

const vectorIsOfItsText = (vectorOf: VectorOf): MemoryOracle => ({
  name: "vector-is-of-its-text",
  promise: "What the index has of a memory is the vector of that version's text.",
  check: ({ memory, vectorAfter }) => {
    if (vectorOf === null || vectorAfter === null || vectorAfter.deleted) return fine
    if (memory === null || memory.text === null || memory.version !== vectorAfter.version) return fine
    const { vector } = vectorAfter
    const due = unit(vectorOf(memory.text), vector.length)
    return due !== null && dot(due, vector) > 0.999 ? fine : [`the vector of version ${memory.version} is of something else`]
  }
})

export const projectionOracles = (vectorOf: VectorOf): ReadonlyArray<MemoryOracle> => [
  projectedFromTheStart,
  vectorNeverReturns,
  finishedWhenThere,
  vectorIsOfItsText(vectorOf)
]
