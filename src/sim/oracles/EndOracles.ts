/** What clients were told, seen from the end of a run: nothing that was acknowledged is missing. */
import type { Invariant, Violation } from "../../domain/Invariant.ts"
import { refKey } from "../../domain/Ids.ts"
import { isTerminal } from "../../domain/Operation.ts"
import type { Book, KeyNotes } from "./Book.ts"
import { fine, hold, named, type Named } from "./Oracle.ts"
import type { OperationTrack } from "./OperationTrack.ts"
import type { KnownKey, Tracks } from "./Tracks.ts"

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

const refusedClaimsNothing: Invariant<{ readonly notes: KeyNotes; readonly key: KnownKey | undefined }> = {
  name: "refused-claims-nothing",
  promise: "A command that is refused for want of credit claims no key and makes nothing.",
  check: ({ key, notes: { firsts, refused, repeats, unknown } }) =>
    key === undefined || !refused.has(key.row.commandHash) || firsts + repeats + unknown > 0
      ? fine
      : ["everybody was refused, and somebody claimed the key"]
}

/** What was made without a key, and how often that was asked for. */
interface Keyless {
  readonly made: number
  readonly asked: number
}

const keylessIsMadeOnce: Invariant<Keyless> = {
  name: "keyless-is-made-once",
  promise: "A request without a key makes one operation at most.",
  check: ({ asked, made }) => made <= asked ? fine : [`${made} were made, and ${asked} asked for`]
}

/** What asks for each kind of operation that may come without a key. */
const kinds = { "memory.add": "Add", "memory.update": "Update", "memory.delete": "Delete" } as const

export const endOracles: ReadonlyArray<Named> = named([
  acknowledgedIsDone,
  somebodyWasFirst,
  refusedClaimsNothing,
  keylessIsMadeOnce
])

export const missing = (tracks: Tracks, book: Book): ReadonlyArray<Violation> => {
  const found: Array<Violation> = []
  for (const notes of book.operations.values()) {
    hold([acknowledgedIsDone], tracks.operations.get(refKey(notes)), notes, found)
  }
  for (const notes of book.keys.values()) {
    const ref = { workspaceId: notes.workspaceId, id: notes.keyHash }
    hold([somebodyWasFirst], notes, ref, found)
    hold([refusedClaimsNothing], { notes, key: tracks.keys.get(refKey(ref)) }, ref, found)
  }
  for (const { workspaceId } of tracks.workspaces.values()) {
    for (const [kind, question] of Object.entries(kinds)) {
      const asked = book.keyless.get(`${workspaceId} ${question}`) ?? 0
      let made = 0
      for (const { keys, operation } of tracks.operations.values()) {
        if (operation?.workspaceId === workspaceId && operation.kind === kind && keys.length === 0) made++
      }
      hold([keylessIsMadeOnce], { made, asked }, { workspaceId, id: kind }, found)
    }
  }
  return found
}
