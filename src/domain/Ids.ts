/** The branded identifiers of the system, and the only text we accept: text that Postgres, JSON and SHA-256 agree on. */
import { Schema } from "effect"

/** Text without NUL (Postgres refuses it) and without lone surrogates (UTF-8 cannot carry them). */
export const Text = Schema.String.check(
  Schema.makeFilter((text: string) => !text.includes("\u0000"), { message: "must not contain NUL" }),
  Schema.makeFilter((text: string) => text.isWellFormed(), { message: "must not contain a lone surrogate" })
)

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
const Uuid = Schema.String.check(Schema.isPattern(uuid, { message: "must be a lower-case UUID" }))

/** The tenant. Bound from the API key, never from a body. */
export const WorkspaceId = Schema.String.check(
  Schema.isPattern(/^[a-z0-9][a-z0-9_-]{0,62}$/, { message: "must be 1 to 63 of a-z, 0-9, _ and -" })
).pipe(Schema.brand("WorkspaceId"))
export type WorkspaceId = typeof WorkspaceId.Type

/** The durable task that carries one command to one terminal state. A UUIDv7; also the event id. */
export const OperationId = Uuid.pipe(Schema.brand("OperationId"))
export type OperationId = typeof OperationId.Type

/** A canonical record. Derived from its operation and its place in the plan, so that a replay names the same record. */
export const MemoryId = Uuid.pipe(Schema.brand("MemoryId"))
export type MemoryId = typeof MemoryId.Type

/** The public half of an API key: safe to show in lists and logs. */
export const ApiKeyId = Schema.String.check(
  Schema.isPattern(/^[0-9a-z]{12}$/, { message: "must be 12 of 0-9 and a-z" })
).pipe(Schema.brand("ApiKeyId"))
export type ApiKeyId = typeof ApiKeyId.Type

/** SHA-256 in lower-case hexadecimal. */
export const Sha256Hex = Schema.String.check(
  Schema.isPattern(/^[0-9a-f]{64}$/, { message: "must be 64 of 0-9 and a-f" })
).pipe(Schema.brand("Sha256Hex"))
export type Sha256Hex = typeof Sha256Hex.Type

/** The order of one scope, named by a digest of the scope: operations of one lane run one at a time. */
export const Lane = Schema.String.check(
  Schema.isPattern(/^[0-9a-f]{32}$/, { message: "must be 32 of 0-9 and a-f" })
).pipe(Schema.brand("Lane"))
export type Lane = typeof Lane.Type

/** Milliseconds since the Unix epoch, by the database clock unless a name says otherwise. */
export const Timestamp = Schema.Finite.pipe(Schema.brand("Timestamp"))
export type Timestamp = typeof Timestamp.Type

/** An operation as everything addresses it: every key is led by its workspace. */
export interface OperationRef {
  readonly workspaceId: WorkspaceId
  readonly id: OperationId
}

/** A memory as everything addresses it. */
export interface MemoryRef {
  readonly workspaceId: WorkspaceId
  readonly id: MemoryId
}

/** One lane of one workspace. */
export interface LaneRef {
  readonly workspaceId: WorkspaceId
  readonly lane: Lane
}

/** A map key for a reference. */
export const refKey = (ref: { readonly workspaceId: WorkspaceId; readonly id: string }): string =>
  `${ref.workspaceId}/${ref.id}`

/** Sorts references into the one global lock order: workspace, then id. */
export const inLockOrder = <A extends { readonly workspaceId: WorkspaceId; readonly id: string }>(
  refs: ReadonlyArray<A>
): ReadonlyArray<A> =>
  refs.toSorted((a, b) =>
    a.workspaceId < b.workspaceId ? -1 : a.workspaceId > b.workspaceId ? 1 : a.id < b.id ? -1 : a.id > b.id ? 1 : 0
  )
