/** JSON containment, exactly as Postgres's `@>` on jsonb has it: the filter of lists and searches. */
import type { Schema } from "effect"

/**
 * Whether `inner` is in `outer`. Objects: every pair of `inner` is in `outer`. Arrays: every element is in some element,
 * whatever the order or number. Scalars: equal.
 */
export const contains = (outer: Schema.Json, inner: Schema.Json): boolean => {
  if (Array.isArray(inner)) {
    return Array.isArray(outer) && inner.every((element) => outer.some((candidate) => contains(candidate, element)))
  }
  if (isObject(inner)) {
    return isObject(outer) && Object.entries(inner).every(([key, value]) =>
      Object.hasOwn(outer, key) && contains(outer[key]!, value)
    )
  }
  return outer === inner
}

const isObject = (json: Schema.Json): json is Schema.JsonObject =>
  typeof json === "object" && json !== null && !Array.isArray(json)
