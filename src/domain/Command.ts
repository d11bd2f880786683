/**
 * What a caller asks, in its one normal form, and the hash that names its meaning. Two requests that mean the same have
 * the same normal form, whatever their key order, white space, spelled-out defaults or transport.
 */
import canonicalize from "canonicalize"
import { DateTime, Option, Schema } from "effect"
import { digest } from "./Digest.ts"
import { type MemoryId, type Sha256Hex, Text } from "./Ids.ts"
import { memoryMaxLength, Metadata } from "./Memory.ts"
import type { OperationKind } from "./Operation.ts"
import { pickScope, type Scope, scopeFields, type ScopeFilter, scopeKeys } from "./Scope.ts"

/** The most messages of one command. */
export const messagesMax = 500
/** The longest instructions, in UTF-16 code units. */
export const instructionsMaxLength = 4_096

export const Message = Schema.Struct({
  role: Schema.Literals(["user", "assistant", "system", "tool"]),
  content: Text,
  name: Schema.optionalKey(Text.check(Schema.isMaxLength(128)))
})
export type Message = typeof Message.Type

const instant =
  /^(\d{4}-\d\d-\d\d)(?:T(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d))?$/

/** The instant that a text names, to the millisecond; a date alone is its midnight. `Date` alone would guess. */
const parseInstant = (text: string): Option.Option<DateTime.DateTime> => {
  const day = instant.exec(text)?.[1]
  if (day === undefined) return Option.none()
  const isDay = Option.exists(DateTime.make(day), (midnight) => DateTime.formatIso(midnight).startsWith(day))
  return isDay ? DateTime.make(text) : Option.none()
}

/** Whether the year is one of 0000 to 9999 in UTC, which an offset may take it out of: no other is read back. */
const hasFourDigits = (at: DateTime.DateTime): boolean => /^\d{4}-/.test(DateTime.formatIso(at))

const EventDate = Schema.String.check(
  Schema.makeFilter((text: string) => Option.isSome(parseInstant(text)), {
    message: "must be an ISO 8601 date, or date and time with Z or an offset"
  }),
  Schema.makeFilter((text: string) => Option.match(parseInstant(text), { onNone: () => true, onSome: hasFourDigits }), {
    message: "must be within the years 0000 to 9999 in UTC"
  })
)

const atLeastOneId = Schema.makeFilter(
  (body: ScopeFilter) => scopeKeys.some((key) => body[key] !== undefined),
  { message: "at least one of user_id, agent_id, run_id, app_id is required" }
)

const verbatimLimit = `must be at most ${memoryMaxLength} characters when infer is false`

/** A verbatim text is a memory, and as long as one at most. */
const tooLong = (messages: ReadonlyArray<Message>, content: string): Array<Schema.FilterIssue> => [
  ...messages.flatMap((message, index) =>
    message.content.length > memoryMaxLength ? [{ path: ["messages", index, "content"], issue: verbatimLimit }] : []
  ),
  ...(content.length > memoryMaxLength ? [{ path: ["content"], issue: verbatimLimit }] : [])
]

/** The body of an add, inferred or verbatim. Unknown fields are refused by whoever decodes it. */
export const AddBody = Schema.Struct({
  messages: Schema.optionalKey(
    Schema.Array(Message).check(
      Schema.makeFilter((messages: ReadonlyArray<unknown>) => messages.length > 0, { message: "must not be empty" }),
      Schema.makeFilter((messages: ReadonlyArray<unknown>) => messages.length <= messagesMax, {
        message: `must hold at most ${messagesMax} messages`
      })
    )
  ),
  content: Schema.optionalKey(Text),
  ...scopeFields,
  infer: Schema.optionalKey(Schema.Boolean),
  metadata: Schema.optionalKey(Metadata),
  event_date: Schema.optionalKey(Schema.NullOr(EventDate)),
  instructions: Schema.optionalKey(Schema.NullOr(Text.check(Schema.isMaxLength(instructionsMaxLength))))
}).check(
  atLeastOneId,
  Schema.makeFilter(
    (body: { readonly messages?: unknown; readonly content?: unknown }) =>
      (body.messages === undefined) !== (body.content === undefined),
    { message: "exactly one of messages and content is required" }
  ),
  Schema.makeFilter(
    (body: { readonly messages?: ReadonlyArray<Message>; readonly content?: string }) =>
      (body.messages === undefined && body.content === undefined) ||
      [body.content ?? "", ...(body.messages ?? []).map(({ content }) => content)].some((text) => text.trim() !== ""),
    { message: "there is no text to remember: all of it is blank" }
  ),
  Schema.makeFilter(
    (body: { readonly infer?: boolean; readonly messages?: ReadonlyArray<Message>; readonly content?: string }) =>
      body.infer === false ? tooLong(body.messages ?? [], body.content ?? "") : true
  )
)
export type AddBody = typeof AddBody.Type

/** The body of an edit: what is absent stays. `metadata` replaces the whole object. */
export const UpdateBody = Schema.Struct({
  memory: Schema.optionalKey(
    Text.check(
      Schema.makeFilter((text: string) => text.trim() !== "", { message: "must not be blank" }),
      Schema.isMaxLength(memoryMaxLength)
    )
  ),
  metadata: Schema.optionalKey(Metadata)
}).check(
  Schema.makeFilter(
    (body: { readonly memory?: unknown; readonly metadata?: unknown }) =>
      body.memory !== undefined || body.metadata !== undefined,
    { message: "at least one of memory and metadata is required" }
  )
)
export type UpdateBody = typeof UpdateBody.Type

export interface AddCommand {
  readonly kind: "memory.infer" | "memory.add"
  readonly scope: Scope
  readonly messages: ReadonlyArray<Message>
  readonly metadata: Metadata
  readonly eventDate: string | null
  readonly instructions: string | null
}

export interface UpdateCommand {
  readonly kind: "memory.update"
  readonly memoryId: MemoryId
  readonly text: string | null
  readonly metadata: Metadata | null
  /** The version the caller saw, if it said so. */
  readonly expectedVersion: number | null
}

export interface DeleteCommand {
  readonly kind: "memory.delete"
  readonly memoryId: MemoryId
  readonly expectedVersion: number | null
}

/** A manual retry is a keyed write too, on an operation that exists. */
export interface RetryCommand {
  readonly kind: "operation.retry"
  readonly operationId: string
}

export type Command = AddCommand | UpdateCommand | DeleteCommand | RetryCommand

/** The input of an inferred add, as the operation keeps it until it ends. */
export const InferInput = Schema.Struct({
  messages: Schema.Array(Message),
  metadata: Metadata,
  eventDate: Schema.NullOr(Schema.String),
  instructions: Schema.NullOr(Schema.String)
})
export type InferInput = typeof InferInput.Type

/** The normal form of an add: `content` is one user message, absent options have their defaults, instants are UTC. */
export const normaliseAdd = (body: AddBody): AddCommand => ({
  kind: body.infer === false ? "memory.add" : "memory.infer",
  scope: pickScope(body),
  messages: body.messages ?? [{ role: "user", content: body.content ?? "" }],
  metadata: body.metadata ?? {},
  eventDate: normaliseInstant(body.event_date ?? null),
  instructions: body.instructions ?? null
})

const normaliseInstant = (text: string | null): string | null =>
  text === null ? null : Option.match(parseInstant(text), { onNone: () => null, onSome: DateTime.formatIso })

/** The version of the hash in force. A row keeps the version it was hashed with, and replays are compared with that. */
export const commandVersion = 1

const hashers: Record<number, (command: Command) => Sha256Hex> = {
  1: (command) => digest("indelible/command/v1", canonicalize(command) ?? "")
}

/** The hash of a command under `version`; undefined for a version that this release does not know. */
export const commandHash = (command: Command, version: number = commandVersion): Sha256Hex | undefined =>
  hashers[version]?.(command)

/** 1 to 255 visible ASCII characters; the quotes of a structured-field string are not part of the key. */
export const IdempotencyKey = Schema.String.check(
  Schema.isPattern(/^[\x21-\x7e]{1,255}$/, { message: "must be 1 to 255 visible ASCII characters" })
).pipe(Schema.brand("IdempotencyKey"))
export type IdempotencyKey = typeof IdempotencyKey.Type

/** What is stored of a key: the key itself never is. */
export const keyHash = (key: IdempotencyKey): Sha256Hex => digest("indelible/idempotency-key/v1", key)

/** The kind of operation that a command makes. */
export const operationKind = (command: Exclude<Command, RetryCommand>): OperationKind => command.kind
