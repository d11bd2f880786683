/** What reads, lists, searches and refusals told: true at some moment since they were asked for. */
import { contains } from "../../domain/Containment.ts"
import type { Invariant } from "../../domain/Invariant.ts"
import { type MemoryId, refKey, type WorkspaceId } from "../../domain/Ids.ts"
import type { Memory } from "../../domain/Memory.ts"
import { isTerminal, type OperationState } from "../../domain/Operation.ts"
import { type ScopeFilter, scopeKeys } from "../../domain/Scope.ts"
import type { Question, Wanted } from "../Told.ts"
import { eventIn } from "./EventOracles.ts"
import type { Hearing } from "./Hearing.ts"
import { fine } from "./Oracle.ts"
import type { Tracks } from "./Tracks.ts"

const memoryOf = (tracks: Tracks, workspaceId: WorkspaceId, id: MemoryId) => tracks.memories.get(refKey({ workspaceId, id }))

const shownIsCurrent: Invariant<Hearing> = {
  name: "shown-is-current",
  promise: "A memory that is shown was just like that, and not deleted, at some moment since it was asked for.",
  check: ({ told, tracks }) => {
    const { answer, answeredAt, askedAt, workspaceId } = told
    const wasLike = (id: MemoryId, test: (memory: Memory) => boolean) =>
      memoryOf(tracks, workspaceId, id)?.versions.some(askedAt, answeredAt, (row) => !row.deleted && test(row)) ?? false
    if (answer._tag === "Memories") {
      return answer.memories.flatMap(({ id, text, version }) =>
        wasLike(id, (row) => row.version === version && row.text === text) ? fine : [`${id} was shown at ${version}`])
    }
    const event = eventIn(told)
    return event?.results.flatMap(({ id, memory }) =>
      memory === null || id === null || wasLike(id, ({ text }) => text === memory) ? fine : [`a text of ${id} was shown`]) ?? fine
  }
}

const shownIsWanted: Invariant<Hearing> = {
  name: "shown-is-wanted",
  promise: "What is shown was asked for: that memory, or those of a scope and with what was said beside them, each once, and no more than that.",
  check: ({ told: { answer, question } }) => {
    if (answer._tag === "Events" && question._tag === "Events") {
      const { events } = answer
      const others = events.filter(({ scope }) => !isWithin(scope, question.scope)).map(({ id }) => `${id} was not asked for`)
      return [...others, ...wrongIn(events.map(({ id }) => id), question.limit)]
    }
    if (answer._tag !== "Memories") return fine
    const { memories } = answer
    if (question._tag === "Memory") return memories.every(({ id }) => id === question.memoryId) ? fine : ["another one was shown"]
    if (question._tag !== "List" && question._tag !== "Search") return fine
    const others = memories.filter((memory) => !isOf(memory, question)).map(({ id }) => `${id} was not asked for`)
    return [...others, ...wrongIn(memories.map(({ id }) => id), question.limit)]
  }
}

const wrongIn = (ids: ReadonlyArray<string>, limit: number): ReadonlyArray<string> => [
  ...ids.length > limit ? [`${ids.length} were shown, and ${limit} were wanted`] : fine,
  ...new Set(ids).size < ids.length ? ["some were shown twice"] : fine
]

const listsAreComplete: Invariant<Hearing> = {
  name: "lists-are-complete",
  promise: "A list, newest first, leaves out nothing that was there from the question to the answer.",
  check: ({ told, tracks }) => {
    const { answer, answeredAt, askedAt, question, workspaceId } = told
    if (answer._tag === "Memories" && question._tag === "List") {
      const there = [...tracks.memories.values()].filter(({ ref, versions }) =>
        ref.workspaceId === workspaceId && !versions.missing(askedAt) &&
        !versions.some(askedAt, answeredAt, (row) => row.deleted || !isOf(row, question)))
      return missingIn(answer.memories.map(({ id }) => id), there.map(({ ref }) => ref.id), question.limit)
    }
    if (answer._tag !== "Events" || question._tag !== "Events") return fine
    const there = [...tracks.operations.values()].filter(({ operation, ref, versions }) =>
      operation !== null && ref.workspaceId === workspaceId && !versions.missing(askedAt) && isWithin(operation.scope, question.scope))
    return missingIn(answer.events.map(({ id }) => id), there.map(({ ref }) => ref.id), question.limit)
  }
}

/** What is wrong with the order of these, and which of those that were there are missing. */
const missingIn = (ids: ReadonlyArray<string>, there: ReadonlyArray<string>, limit: number): ReadonlyArray<string> => {
  const oldest = ids.length < limit ? "" : ids.at(-1)!
  const problems = there.filter((id) => id > oldest && !ids.includes(id)).map((id) => `${id} is missing`)
  return ids.some((id, place) => place > 0 && ids[place - 1]! <= id) ? ["it is not in order", ...problems] : problems
}

const searchesFindWords: Invariant<Hearing> = {
  name: "searches-find-words",
  promise: "A search that shows less than it may leaves out no memory that has a word of the question, projected or not.",
  check: ({ told, tracks }) => {
    const { answer, answeredAt, askedAt, question, workspaceId } = told
    if (answer._tag !== "Memories" || question._tag !== "Search" || answer.memories.length >= question.limit) return fine
    const hasWord = new RegExp(`(^|[^\\p{L}\\p{N}])${question.word}($|[^\\p{L}\\p{N}])`, "u")
    const found = new Set(answer.memories.map(({ id }) => id))
    return [...tracks.memories.values()].flatMap(({ ref, versions }) => {
      if (ref.workspaceId !== workspaceId || found.has(ref.id) || versions.missing(askedAt)) return fine
      const left = versions.some(askedAt, answeredAt, (row) => row.text === null || !hasWord.test(row.text) || !isOf(row, question))
      return left ? fine : [`${ref.id} is missing`]
    })
  }
}

const isOf = ({ metadata, scope }: Memory, wanted: Wanted): boolean =>
  isWithin(scope, wanted.scope) && contains(metadata, wanted.metadata)

const isWithin = (scope: ScopeFilter, filter: ScopeFilter): boolean =>
  scopeKeys.every((key) => filter[key] === undefined || filter[key] === scope[key])

const refusedForAReason: Invariant<Hearing> = {
  name: "refused-for-a-reason",
  promise: "Whoever is refused for what something is was told what it was at some moment since, and when that stood against it.",
  check: ({ told, track, tracks }) => {
    const { answer, answeredAt, askedAt, question, workspaceId } = told
    if (answer._tag !== "Refused") return fine
    const { refusal } = answer
    const memory = "memoryId" in question ? memoryOf(tracks, workspaceId, question.memoryId) : undefined
    switch (refusal._tag) {
      case "NotFound": {
        if (refusal.what !== "memory" || memory === undefined || memory.versions.missing(askedAt)) return fine
        const gone = memory.versions.some(askedAt, answeredAt, ({ deleted }) => deleted)
        return gone ? fine : ["it was not found, and was there all the time"]
      }
      case "VersionConflict": {
        const expected = "expectedVersion" in question ? question.expectedVersion : null
        if (refusal.current === expected) return [`refused at version ${expected}, which was asked for`]
        const was = memory?.versions.some(askedAt, answeredAt, ({ version }) => version === refusal.current) ?? false
        return was ? fine : [`refused at version ${refusal.current}, at which it never was`]
      }
      case "WrongState": {
        const was = (what: (state: OperationState) => boolean): boolean =>
          track?.versions.some(askedAt, answeredAt, ({ state }) => what(state)) ?? false
        if (!was((state) => state === refusal.state)) return [`refused as ${refusal.state}, which it was not`]
        const stands = standsAgainst[question._tag]
        return stands === undefined || was(stands) ? fine : [`refused as ${refusal.state}, which is no reason`]
      }
      case "InputGone":
        return track?.inputGoneAt != null && track.inputGoneAt <= answeredAt ? fine : ["its input was there all the time"]
      default:
        return fine
    }
  }
}

/** The states in which each of these is refused. */
const standsAgainst: Readonly<Partial<Record<Question["_tag"], (state: OperationState) => boolean>>> = {
  Cancel: isTerminal,
  Purge: (state) => !isTerminal(state),
  Retry: (state) => state !== "failed"
}

const balancesWere: Invariant<Hearing> = {
  name: "balances-were-those",
  promise: "Balances that are told were the balances at some moment since they were asked for.",
  check: ({ told, tracks }) => {
    const { answer, answeredAt, askedAt, workspaceId } = told
    if (answer._tag !== "Balances") return fine
    const { available, consumed, issued, reserved } = answer.balances
    const was = tracks.workspaces.get(workspaceId)?.versions.some(askedAt, answeredAt, ({ balances }) =>
      balances.available === available && balances.consumed === consumed && balances.issued === issued &&
      balances.reserved === reserved)
    return was === true ? fine : [`told ${available}, ${reserved}, ${consumed} of ${issued}`]
  }
}

export const readOracles: ReadonlyArray<Invariant<Hearing>> = [
  shownIsCurrent,
  shownIsWanted,
  listsAreComplete,
  searchesFindWords,
  refusedForAReason,
  balancesWere
]
