/** Whose memory something is: at least one of four ids. A scope also names a lane, the order its writes keep. */
import { Schema } from "effect"
import { digest } from "./Digest.ts"
import { Lane, Text } from "./Ids.ts"

/** The longest scope id, in UTF-16 code units. */
export const scopeIdMaxLength = 512

const ScopeId = Text.check(
  Schema.makeFilter((id: string) => id.length > 0, { message: "must not be empty" }),
  Schema.makeFilter((id: string) => id.length <= scopeIdMaxLength, {
    message: `must be at most ${scopeIdMaxLength} characters`
  })
)

export const scopeFields = {
  user_id: Schema.optionalKey(ScopeId),
  agent_id: Schema.optionalKey(ScopeId),
  run_id: Schema.optionalKey(ScopeId),
  app_id: Schema.optionalKey(ScopeId)
} as const

export const scopeKeys = ["user_id", "agent_id", "run_id", "app_id"] as const

/** A filter: the ids that must match. Empty matches everything in the workspace. */
export const ScopeFilter = Schema.Struct(scopeFields)
export type ScopeFilter = typeof ScopeFilter.Type

/** A scope names at least one id. */
export const Scope = ScopeFilter.check(
  Schema.makeFilter((scope: ScopeFilter) => scopeKeys.some((key) => scope[key] !== undefined), {
    message: "at least one of user_id, agent_id, run_id, app_id is required"
  })
)
export type Scope = typeof Scope.Type

/** Picks the scope out of a wider record, leaving absent ids absent. */
export const pickScope = (from: ScopeFilter): ScopeFilter => {
  const scope: Record<string, string> = {}
  for (const key of scopeKeys) {
    const id = from[key]
    if (id !== undefined) scope[key] = id
  }
  return scope
}

/** The lane of a scope. Two scopes share a lane exactly when all four ids are equal. */
export const laneOf = (scope: ScopeFilter): Lane =>
  Lane.make(digest("indelible/lane/v1", JSON.stringify(scopeKeys.map((key) => scope[key] ?? null))).slice(0, 32))
