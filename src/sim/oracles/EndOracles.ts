/** What clients were told, seen from the end of a run: nothing that was acknowledged is missing. */
import type { Invariant, Violation } from "../../domain/Invariant.ts"
import { refKey } from "../../domain/Ids.ts"
import { isTerminal } from "../../domain/Operation.ts"
import type { Book, KeyNotes } from "./Book.ts"
import { fine, hold } from "./Oracle.ts"
import type { OperationTrack } from "./OperationTrack.ts"
import type { Tracks } from "./Tracks.ts"

const acknowledgedIsDone: Invariant<OperationTrack | undefined> = {
  name: "acknowledged-is-done",
  promise: "Whatever somebody was told of is there at the end, and done.",
  check: (track) => {
    const state = track?.operation?.state
    return state !== undefined && isTerminal(state) ? fine : [`it is ${state ?? "missing"}`]
  }
}

const somebodyWasFirst: Invariant<KeyNotes> = {
  name: "somebody-was-first",
  promise: "If a request is told that it repeats another, there is another.",
  check: ({ firsts, repeats, unknown }) =>
    repeats === 0 || firsts + unknown > 0 ? fine : [`${repeats} were told that they repeat something, and nobody began it`]
}

export const endOracles: ReadonlyArray<Invariant<never>> = [acknowledgedIsDone, somebodyWasFirst]

export const missing = (tracks: Tracks, book: Book): ReadonlyArray<Violation> => {
  const found: Array<Violation> = []
  for (const notes of book.operations.values()) {
    hold([acknowledgedIsDone], tracks.operations.get(refKey(notes)), notes, found)
  }
  for (const notes of book.keys.values()) {
    hold([somebodyWasFirst], notes, { workspaceId: notes.workspaceId, id: notes.keyHash }, found)
  }
  return found
}
