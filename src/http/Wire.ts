/** The small shapes that every body and query shares: instants, credits, pages and scopes as they are on the wire. */
import { DateTime, Schema } from "effect"
import { scopeFields } from "../domain/Scope.ts"
import { cursorMaxLength, pageMax } from "./Limits.ts"

/** An ISO 8601 instant in UTC with milliseconds. */
export const Instant = Schema.String.annotate({
  description: "An ISO 8601 instant in UTC, with milliseconds.",
  format: "date-time"
})

export const instant = (milliseconds: number): string => DateTime.formatIso(DateTime.makeUnsafe(milliseconds))

export const instantOrNull = (milliseconds: number | null): string | null =>
  milliseconds === null ? null : instant(milliseconds)

/** Whole credits: a JSON integer. */
export const Credits = Schema.Int.annotate({ description: "Whole credits." })

/** An amount as a JSON integer. Beyond 2^53 the number would lie, so that it is a defect. */
export const credits = (amount: bigint): number => {
  const number = Number(amount)
  if (!Number.isSafeInteger(number)) throw new RangeError("an amount is beyond the integers of JSON")
  return number
}

/** One page of a list: `next_cursor` is null on the last one. */
export const pageOf = <S extends Schema.Top>(item: S, identifier: string) =>
  Schema.Struct({ data: Schema.Array(item), next_cursor: Schema.NullOr(Schema.String) }).annotate({ identifier })

/** The query parameters of a list. */
export const pageQuery = {
  limit: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: pageMax }))),
  cursor: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(cursorMaxLength)))
} as const

/** The query parameters that narrow a list to a scope. Absent ids match everything. */
export const scopeQuery = scopeFields
