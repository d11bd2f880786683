/** The headers that change what a write means, parsed: `Idempotency-Key`, `If-Match` and `Prefer`. */
import { Effect, Option, Schema } from "effect"
import { IdempotencyKey } from "../domain/Command.ts"
import { IdempotencyKeyInvalid, IdempotencyKeyRequired, MalformedRequest } from "./Problems.ts"
import { fail } from "./Refuse.ts"

const decodeKey = Schema.decodeUnknownOption(IdempotencyKey)
const quoted = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/

/** The key without the quotes of a structured-field string; a bare key as it is. Two headers arrive joined by ", ". */
const parseKey = (header: string): Option.Option<IdempotencyKey> => {
  if (!header.startsWith("\"")) return decodeKey(header)
  const content = quoted.exec(header)?.[1]
  return content === undefined ? Option.none() : decodeKey(content.replace(/\\(.)/g, "$1"))
}

/** The idempotency key of the request, or null when it has none. */
export const idempotencyKey = (
  header: string | undefined
): Effect.Effect<IdempotencyKey | null, IdempotencyKeyInvalid> =>
  header === undefined ? Effect.succeed(null) : Option.match(parseKey(header), {
    onSome: Effect.succeed,
    onNone: () =>
      fail((request_id) =>
        new IdempotencyKeyInvalid({
          request_id,
          detail: "Idempotency-Key must be one header with 1 to 255 visible ASCII characters, bare or in double quotes."
        })
      )
  })

/** For a write that must be told from its repeats. */
export const required = (key: IdempotencyKey | null): Effect.Effect<IdempotencyKey, IdempotencyKeyRequired> =>
  key !== null ? Effect.succeed(key) : fail((request_id) =>
    new IdempotencyKeyRequired({
      request_id,
      detail: "Send an Idempotency-Key that names this intent, made once and repeated with every retry."
    })
  )

const strongTag = /^"([1-9]\d{0,8})"$/

/** The version that `If-Match` names; null when it names none, or any. */
export const ifMatch = (header: string | undefined): Effect.Effect<number | null, MalformedRequest> => {
  if (header === undefined || header === "*") return Effect.succeed(null)
  const version = strongTag.exec(header)?.[1]
  return version !== undefined ? Effect.succeed(Number(version)) : fail((request_id) =>
    new MalformedRequest({
      request_id,
      detail: "If-Match must be one version as ETag gave it, or *.",
      errors: [{ path: "If-Match", message: "must be one quoted version, such as \"3\", or *" }]
    })
  )
}

const wait = /(?:^|,)[\t ]*wait[\t ]*=[\t ]*"?(\d+)"?[\t ]*(?=[,;]|$)/i

/** The seconds of `Prefer: wait=N`, at most `max`; null without one. A preference that is not understood is ignored. */
export const preferredWait = (header: string | undefined, max: number): number | null => {
  const seconds = wait.exec(header ?? "")?.[1]
  return seconds === undefined ? null : Math.min(Number(seconds), max)
}
