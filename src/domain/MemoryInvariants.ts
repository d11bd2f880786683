/** What is always true of a memory, its history, and the projections that follow it. */
import { type Invariant, same, unless } from "./Invariant.ts"
import type { HistoryEntry } from "./Memory.ts"
import type { MemorySlice } from "./Snapshot.ts"

const inOrder = (history: ReadonlyArray<HistoryEntry>) => history.toSorted((a, b) => a.version - b.version)

export const memoryInvariants: ReadonlyArray<Invariant<MemorySlice>> = [
  {
    name: "nothing-without-its-memory",
    promise: "Every version, projection and vector belongs to a memory that exists.",
    check: ({ memory }) => unless(memory !== null, "there are rows of a memory that does not exist")
  },
  {
    name: "versions-are-contiguous",
    promise: "A memory is added once, as version 1, and each change makes the next version, up to its deletion.",
    check: ({ history }) =>
      inOrder(history).flatMap(({ change, version }, index) => [
        ...unless(version === index + 1, `version ${version} is in place ${index + 1}`),
        ...unless((change === "add") === (index === 0), `version ${version} is of a change ${change}`),
        ...unless(change !== "delete" || index === history.length - 1, `version ${version} follows a deletion`)
      ])
  },
  {
    name: "record-equals-history",
    promise: "A memory is what its latest version says.",
    check: ({ history, memory }) => {
      if (memory === null) return []
      const latest = inOrder(history).at(-1)
      return [
        ...unless(latest?.version === memory.version, `at ${memory.version}, and its history at ${latest?.version}`),
        ...unless(latest?.text === memory.text, "the record and its history have different texts"),
        ...unless(latest?.operationId === memory.operationId, "the record and its history name different operations"),
        ...unless((latest?.change === "delete") === memory.deleted, "the record and its history disagree on deletion")
      ]
    }
  },
  {
    name: "deleted-is-forgotten",
    promise: "Of a deleted memory no text is left in any version; of a live one no text is missing.",
    check: ({ history, memory }) =>
      memory === null ? [] : [
        ...unless(memory.deleted === (memory.text === null), memory.deleted ? "its text is kept" : "its text is gone"),
        ...history.flatMap(({ text, version }) =>
          unless(memory.deleted === (text === null), `version ${version} ${memory.deleted ? "keeps" : "lost"} its text`)
        )
      ]
  },
  {
    name: "projection-never-ahead",
    promise: "Neither a projection nor a vector is of a version that the record has not reached.",
    check: ({ memory, projections, vectors }) => {
      const reached = memory?.version ?? 0
      return [
        ...unless(Math.max(0, ...projections) <= reached, `at ${reached}, and these wait: ${projections.join(", ")}`),
        ...unless(Math.max(0, ...(vectors ?? [])) <= reached, `at ${reached}, and indexed: ${vectors?.join(", ")}`)
      ]
    }
  },
  {
    name: "projected-or-waiting",
    promise: "The index has exactly the latest version of a live memory, or a projection that will see to it waits.",
    check: ({ memory, projections, vectors }) => {
      if (memory === null || vectors === null || projections.length > 0) return []
      const due = memory.deleted ? [] : [`${memory.version}`]
      return unless(same(vectors.map(String), due), `nothing waits, and indexed are: ${vectors.join(", ") || "none"}`)
    }
  }
]
