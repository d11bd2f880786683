/**
 * What clients asked and what they were told, as plain data: the only history that anybody outside can hold against the
 * service. Every question ends in exactly one of these, also one that nobody answered.
 */
import type { AddCommand, DeleteCommand, UpdateCommand } from "../domain/Command.ts"
import type { MemoryId, OperationId, Sha256Hex, WorkspaceId } from "../domain/Ids.ts"
import type { Balances } from "../domain/Ledger.ts"
import type { Memory } from "../domain/Memory.ts"
import type { IdempotencyConflict, InputGone, InsufficientCredit, NotFound, VersionConflict, WrongState } from "../domain/Refusal.ts"
import type { ScopeFilter } from "../domain/Scope.ts"
import type { Completed, Receipt } from "../services/Commands.ts"
import type { Event } from "../services/Events.ts"

export interface Told {
  readonly client: string
  readonly workspaceId: WorkspaceId
  /** When the question left the client and when the answer reached it, or when it gave up: virtual milliseconds. */
  readonly askedAt: number
  readonly answeredAt: number
  readonly question: Question
  readonly answer: Answer
}

/**
 * Hashes are those of the domain, to be held against rows of keys. `meaning` is what the client itself calls what it
 * wants, `command` what it wants to come of it.
 */
export type Question =
  | {
    readonly _tag: "Infer" | "Add"
    readonly keyHash: Sha256Hex | null
    readonly commandHash: Sha256Hex
    readonly meaning?: string
    readonly command?: AddCommand
  }
  | {
    readonly _tag: "Update" | "Delete"
    readonly keyHash: Sha256Hex | null
    readonly commandHash: Sha256Hex
    readonly meaning?: string
    readonly command?: UpdateCommand | DeleteCommand
    readonly memoryId: MemoryId
    readonly expectedVersion: number | null
  }
  | {
    readonly _tag: "Retry"
    readonly keyHash: Sha256Hex | null
    readonly commandHash: Sha256Hex
    readonly operationId: OperationId
  }
  | { readonly _tag: "Cancel" | "Purge"; readonly operationId: OperationId }
  /** A look, or a long-poll of so many seconds. */
  | { readonly _tag: "Event"; readonly operationId: OperationId; readonly seconds: number }
  | { readonly _tag: "Memory"; readonly memoryId: MemoryId }
  /** The first page. */
  | ({ readonly _tag: "List" } & Wanted)
  /** `word` is in every memory that is to be found. */
  | ({ readonly _tag: "Search"; readonly word: string } & Wanted)
  /** The first page of what has happened. */
  | { readonly _tag: "Events"; readonly scope: ScopeFilter; readonly limit: number }
  | { readonly _tag: "Usage" }

/** Which memories, and how many at most. */
export interface Wanted {
  readonly scope: ScopeFilter
  readonly metadata: Memory["metadata"]
  readonly limit: number
}

export type Refused = IdempotencyConflict | InsufficientCredit | NotFound | VersionConflict | WrongState | InputGone

export type Answer =
  /** Of an inferred add and of a manual retry. */
  | { readonly _tag: "Receipt"; readonly receipt: Receipt }
  /** Of a write that is finished when it is accepted. */
  | { readonly _tag: "Completed"; readonly completed: Completed }
  | { readonly _tag: "Event"; readonly event: Event }
  | { readonly _tag: "Events"; readonly events: ReadonlyArray<Event> }
  | { readonly _tag: "Memories"; readonly memories: ReadonlyArray<Memory> }
  | { readonly _tag: "Balances"; readonly balances: Balances }
  | { readonly _tag: "Refused"; readonly refusal: Refused }
  /** "Come back later" for any reason, no answer in time, a server that died: what happened is anybody's guess. */
  | { readonly _tag: "Unknown" }
