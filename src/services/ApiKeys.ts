/** Workspaces and the keys that open them. A key is shown once and stored as a hash. */
import { Context, type Effect, type Redacted, Schema } from "effect"
import type { ApiKeyId, WorkspaceId } from "../domain/Ids.ts"
import { ApiKeyId as ApiKeyIdSchema, Text, Timestamp, WorkspaceId as WorkspaceIdSchema } from "../domain/Ids.ts"
import type { NotFound } from "../domain/Refusal.ts"
import type { OutcomeUnknown } from "./Transaction.ts"

export const KeyScope = Schema.Literals(["memories:read", "memories:write", "events:read", "events:write", "usage:read"])
export type KeyScope = typeof KeyScope.Type

/** The longest label of a key, in UTF-16 code units: it is one part of one line. */
export const labelMaxLength = 255

/** What a key is for, in the words of whoever made it. May be empty. */
export const KeyLabel = Text.check(
  Schema.makeFilter((label: string) => label.length <= labelMaxLength, {
    message: `must be at most ${labelMaxLength} characters`
  }),
  Schema.makeFilter((label: string) => !/\p{Cc}/u.test(label), { message: "must be one line without control characters" })
)

export const ApiKey = Schema.Struct({
  workspaceId: WorkspaceIdSchema,
  id: ApiKeyIdSchema,
  label: Schema.String,
  scopes: Schema.Array(KeyScope),
  createdAt: Timestamp,
  revokedAt: Schema.NullOr(Timestamp)
})
export type ApiKey = typeof ApiKey.Type

export class ApiKeys extends Context.Service<ApiKeys, {
  /** The live key with this secret, or null. Constant work for a malformed one; nothing is logged. */
  readonly authenticate: (secret: Redacted.Redacted) => Effect.Effect<ApiKey | null, OutcomeUnknown>
  /** Makes a workspace with an empty account: false when it exists. */
  readonly makeWorkspace: (workspaceId: WorkspaceId) => Effect.Effect<boolean, OutcomeUnknown>
  /** Makes a key. Its secret is returned here and never again. */
  readonly make: (
    workspaceId: WorkspaceId,
    label: string,
    scopes: ReadonlyArray<KeyScope>
  ) => Effect.Effect<{ readonly key: ApiKey; readonly secret: Redacted.Redacted }, NotFound | OutcomeUnknown>
  /** Makes sure that a key with exactly this secret exists: the bootstrap key. One that was revoked stays revoked. */
  readonly ensure: (
    workspaceId: WorkspaceId,
    label: string,
    secret: Redacted.Redacted
  ) => Effect.Effect<ApiKey, NotFound | OutcomeUnknown>
  readonly list: (workspaceId: WorkspaceId) => Effect.Effect<ReadonlyArray<ApiKey>, NotFound | OutcomeUnknown>
  readonly revoke: (workspaceId: WorkspaceId, id: ApiKeyId) => Effect.Effect<ApiKey, NotFound | OutcomeUnknown>
}>()("indelible/services/ApiKeys") {}
