/** A canonical record, and the append-only history of its versions. */
import { Schema } from "effect"
import { MemoryId, OperationId, Text, Timestamp, WorkspaceId } from "./Ids.ts"
import { ScopeFilter } from "./Scope.ts"

/** The longest text of one memory, in UTF-16 code units. */
export const memoryMaxLength = 8_192

const isText = Schema.is(Text)

type Test = (text: string) => boolean

const everyString = (value: Schema.Json, isName: Test, isValue: Test): boolean => {
  if (typeof value === "string") return isValue(value)
  if (typeof value !== "object" || value === null) return true
  if (Array.isArray(value)) return value.every((member) => everyString(member, isName, isValue))
  return Object.entries(value).every(([name, member]) => isName(name) && everyString(member, isName, isValue))
}

/** Names that JSON writes as they are: the engine that reads them back may mistake an escaped one for another. */
const isPlain = (name: string): boolean => JSON.stringify(name) === `"${name}"`

/** What the caller keeps beside a memory. Its names and texts are such that the database and the hash carry them. */
export const Metadata = Schema.Record(Schema.String, Schema.Json).check(
  Schema.makeFilter((metadata) => everyString(metadata, isText, isText), {
    message: "must not contain NUL or a lone surrogate"
  }),
  Schema.makeFilter((metadata) => everyString(metadata, isPlain, () => true), {
    message: "must have names without quotation marks, backslashes and control characters"
  })
)
export type Metadata = typeof Metadata.Type

export const Memory = Schema.Struct({
  workspaceId: WorkspaceId,
  id: MemoryId,
  /** The current version, from 1. A deletion is a version too. */
  version: Schema.Int,
  /** Null once deleted: the text is erased, the tombstone stays. */
  text: Schema.NullOr(Text),
  scope: ScopeFilter,
  metadata: Metadata,
  /** When what it tells happened, as an ISO 8601 UTC instant, if the caller said so. */
  eventDate: Schema.NullOr(Schema.String),
  /** The operation that made the current version. */
  operationId: OperationId,
  createdAt: Timestamp,
  updatedAt: Timestamp,
  deleted: Schema.Boolean
})
export type Memory = typeof Memory.Type

export const Change = Schema.Literals(["add", "update", "delete", "none"])
export type Change = typeof Change.Type

/** One version of one memory. `text` is null for a deletion, and for every version once the memory is deleted. */
export const HistoryEntry = Schema.Struct({
  memoryId: MemoryId,
  version: Schema.Int,
  change: Schema.Literals(["add", "update", "delete"]),
  text: Schema.NullOr(Text),
  operationId: OperationId,
  at: Timestamp
})
export type HistoryEntry = typeof HistoryEntry.Type
