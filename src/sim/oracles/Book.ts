/** All that clients were told so far, as far as later answers have to agree with it. */
import { type OperationId, refKey, type Sha256Hex, type WorkspaceId } from "../../domain/Ids.ts"
import type { Answer, Told } from "../Told.ts"

/** What was said about one key. */
export interface KeyNotes {
  readonly keyHash: Sha256Hex
  readonly workspaceId: WorkspaceId
  /** Questions that were told that they were the first, and those that may have been and were told nothing. */
  firsts: number
  unknown: number
  /** Questions that were told that somebody else was. */
  repeats: number
  /** The commands that were refused for want of credit. */
  readonly refused: Set<Sha256Hex>
  /** What was meant by those that got its operation, and by those to whom it was a conflict: as far as clients say. */
  readonly meant: Set<string>
  readonly conflicts: Set<string>
}

/** What was said about one operation. */
export interface OperationNotes {
  readonly id: OperationId
  readonly workspaceId: WorkspaceId
  /** How many were told that they had made it, and how many that they had let it in again. */
  firsts: number
  retries: number
}

export class Book {
  readonly keys = new Map<string, KeyNotes>()
  readonly operations = new Map<string, OperationNotes>()
  /** How many were asked for without a key, by workspace and kind. */
  readonly keyless = new Map<string, number>()

  key(workspaceId: WorkspaceId, keyHash: Sha256Hex): KeyNotes {
    const name = `${workspaceId}/${keyHash}`
    let notes = this.keys.get(name)
    if (notes === undefined) {
      const none = { firsts: 0, unknown: 0, repeats: 0, refused: new Set<Sha256Hex>() }
      this.keys.set(name, notes = { keyHash, workspaceId, ...none, meant: new Set(), conflicts: new Set() })
    }
    return notes
  }

  operation(workspaceId: WorkspaceId, id: OperationId): OperationNotes {
    const name = refKey({ workspaceId, id })
    let notes = this.operations.get(name)
    if (notes === undefined) this.operations.set(name, notes = { id, workspaceId, firsts: 0, retries: 0 })
    return notes
  }

  write(told: Told): void {
    const { answer, question, workspaceId } = told
    const operationId = namedIn(answer)
    const replayed = replayedOf(told)
    if (operationId !== null) {
      const notes = this.operation(workspaceId, operationId)
      if (replayed === false && question._tag === "Retry") notes.retries++
      else if (replayed === false) notes.firsts++
    }
    const keyHash = keyOf(told)
    if (keyHash === null) {
      const name = `${workspaceId} ${question._tag}`
      this.keyless.set(name, (this.keyless.get(name) ?? 0) + 1)
    }
    const meaning = meaningOf(told)
    if (keyHash !== null && meaning !== null) {
      if (replayed !== null) this.key(workspaceId, keyHash).meant.add(meaning)
      else if (isConflict(told)) this.key(workspaceId, keyHash).conflicts.add(meaning)
    }
    // Deleting what is deleted repeats a deletion that had another key.
    if (keyHash === null || question._tag === "Retry" || question._tag === "Delete") return
    const notes = this.key(workspaceId, keyHash)
    if (replayed === false) notes.firsts++
    else if (replayed === true) notes.repeats++
    else if (answer._tag === "Unknown") notes.unknown++
    else if (answer._tag === "Refused" && answer.refusal._tag === "InsufficientCredit" && "commandHash" in question) {
      notes.refused.add(question.commandHash)
    }
  }
}

/** The key that a question carried. */
export const keyOf = ({ question }: Told): Sha256Hex | null => "keyHash" in question ? question.keyHash : null

/** What a question means, by a name that its client gave it; null when it gives none. */
export const meaningOf = ({ question }: Told): string | null =>
  "meaning" in question && typeof question.meaning === "string" ? question.meaning : null

export const isConflict = ({ answer }: Told): boolean =>
  answer._tag === "Refused" && answer.refusal._tag === "IdempotencyConflict"

/** The operation that an answer says something about, or a question is about. */
export const operationOf = ({ answer, question }: Told): OperationId | null =>
  namedIn(answer) ?? ("operationId" in question ? question.operationId : null)

const namedIn = (answer: Answer): OperationId | null => {
  if (answer._tag === "Receipt") return answer.receipt.eventId
  if (answer._tag === "Completed") return answer.completed.event.id
  return answer._tag === "Event" ? answer.event.id : null
}

/**
 * Whether an answer says that somebody else had been first, with this key or with what it asks for; null when it says
 * nothing of the kind.
 */
export const replayedOf = ({ answer }: Told): boolean | null => {
  if (answer._tag !== "Receipt" && answer._tag !== "Completed") return null
  const { already, replayed } = answer._tag === "Receipt" ? answer.receipt : answer.completed
  return replayed || already === true
}
