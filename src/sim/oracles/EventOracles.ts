/** What an event tells beside the state of its operation: what is kept of it, and how far its memories are projected. */
import type { Invariant } from "../../domain/Invariant.ts"
import type { Event } from "../../services/Events.ts"
import type { Told } from "../Told.ts"
import type { Hearing } from "./Hearing.ts"
import { fine } from "./Oracle.ts"

/** The event that an answer is about. */
export const eventIn = ({ answer }: Told): Event | null =>
  answer._tag === "Completed" ? answer.completed.event : answer._tag === "Event" ? answer.event : null

const toldWhatIsKept: Invariant<Hearing> = {
  name: "told-what-is-kept",
  promise: "An input is said to be kept, or gone, when it was, at some moment since.",
  check: ({ told, track }) => {
    const event = eventIn(told)
    if (track === null || event === null) return fine
    const { answeredAt, askedAt } = told
    const was = track.inputs.some(askedAt, answeredAt, (kept) => kept === event.inputRetained) ||
      (!event.inputRetained && track.inputs.missing(askedAt))
    return was ? fine : [event.inputRetained ? "told that its input is kept" : "told that its input is gone"]
  }
}

const toldTheProjection: Invariant<Hearing> = {
  name: "told-the-projection",
  promise: "Memories are said to be projected, or not yet, when they were, at some moment since.",
  check: ({ told, track }) => {
    const event = eventIn(told)
    if (track === null || event === null) return fine
    const { projection, results } = event
    const isStored = results.some(({ change }) => change !== "none")
    if (!isStored || projection === "none") return isStored === (projection !== "none") ? fine : [`told ${projection} of ${results.length}`]
    // Before it had ended, nothing of it could wait.
    const since = Math.max(told.askedAt, track.versions.changedAt ?? 0)
    const was = track.waitings.some(since, told.answeredAt, (waiting) => (waiting === 0) === (projection === "ready"))
    return was ? fine : [`told ${projection}, which it was not`]
  }
}

export const eventOracles: ReadonlyArray<Invariant<Hearing>> = [toldWhatIsKept, toldTheProjection]
