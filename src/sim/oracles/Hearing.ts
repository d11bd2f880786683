/** An answer that a client got, beside everything that it can be held against. */
import { refKey } from "../../domain/Ids.ts"
import type { Told } from "../Told.ts"
import { type Book, operationOf } from "./Book.ts"
import type { OperationTrack } from "./OperationTrack.ts"
import type { Tracks } from "./Tracks.ts"

export interface Hearing {
  readonly told: Told
  readonly tracks: Tracks
  /** What was told before. */
  readonly book: Book
  /** The operation that it is about, if there is one. */
  readonly track: OperationTrack | null
}

export const hearing = (told: Told, tracks: Tracks, book: Book): Hearing => {
  const id = operationOf(told)
  const track = id === null ? null : tracks.operations.get(refKey({ workspaceId: told.workspaceId, id })) ?? null
  return { told, tracks, book, track }
}
