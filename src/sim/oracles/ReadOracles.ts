/** What reads, lists, searches and refusals told: true at some moment since they were asked for. */
import type { Invariant } from "../../domain/Invariant.ts"
import { type MemoryId, refKey, type WorkspaceId } from "../../domain/Ids.ts"
import type { Memory } from "../../domain/Memory.ts"
import { type ScopeFilter, scopeKeys } from "../../domain/Scope.ts"
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
    const event = answer._tag === "Completed" ? answer.completed.event : answer._tag === "Event" ? answer.event : null
    return event?.results.flatMap(({ id, memory }) =>
      memory === null || id === null || wasLike(id, ({ text }) => text === memory) ? fine : [`a text of ${id} was shown`]) ?? fine
  }
}

const listsAreComplete: Invariant<Hearing> = {
  name: "lists-are-complete",
  promise: "A list, newest first, leaves out no memory that was there from the question to the answer.",
  check: ({ told, tracks }) => {
    const { answer, answeredAt, askedAt, question, workspaceId } = told
    if (answer._tag !== "Memories" || question._tag !== "List") return fine
    const ids = answer.memories.map(({ id }) => id)
    const problems: Array<string> = []
    if (ids.some((id, place) => place > 0 && ids[place - 1]! <= id)) problems.push("it is not in order")
    const oldest = ids.length < question.limit ? "" : ids.at(-1)!
    for (const { memory, ref, versions } of tracks.memories.values()) {
      if (memory === null || ref.workspaceId !== workspaceId || ref.id < oldest || ids.includes(ref.id)) continue
      const there = !versions.missing(askedAt) && !versions.some(askedAt, answeredAt, ({ deleted }) => deleted)
      if (there && isWithin(memory.scope, question.scope)) problems.push(`${ref.id} is missing`)
    }
    return problems
  }
}

const isWithin = (scope: ScopeFilter, filter: ScopeFilter): boolean =>
  scopeKeys.every((key) => filter[key] === undefined || filter[key] === scope[key])

const refusedForAReason: Invariant<Hearing> = {
  name: "refused-for-a-reason",
  promise: "Whoever is refused for what something is was told what it was at some moment since.",
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
        const was = track?.versions.some(askedAt, answeredAt, ({ state }) => state === refusal.state) ?? false
        return was ? fine : [`refused as ${refusal.state}, which it was not`]
      }
      case "InputGone":
        return track?.inputGoneAt != null && track.inputGoneAt <= answeredAt ? fine : ["its input was there all the time"]
      default:
        return fine
    }
  }
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
  listsAreComplete,
  refusedForAReason,
  balancesWere
]
