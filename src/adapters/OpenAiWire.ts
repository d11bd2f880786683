/** The wire format of OpenAI and of those who speak it: how a request is addressed, and which answers are believed. */
import { Option, Redacted, Result, Schema } from "effect"
import type { Fact } from "../domain/Plan.ts"
import { unit } from "../domain/Vector.ts"
import type { ProviderFailure } from "../services/Provider.ts"

export type FailureName = ProviderFailure["failure"]

/** Where a path of the API is. The query of the base URL stays, and `{model}` in it becomes the name of the model. */
export const endpoint = (baseUrl: string, path: string, model: string): string => {
  const url = new URL(baseUrl.replaceAll("{model}", encodeURIComponent(model)))
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/${path}`
  return url.href
}

/** Azure wants its key in a header of its own, everybody else a bearer token. */
export const keyHeaders = (baseUrl: string, apiKey: Redacted.Redacted | null): Record<string, string> => {
  if (apiKey === null) return {}
  const url = new URL(baseUrl)
  return url.searchParams.has("api-version") || url.hostname.endsWith(".azure.com")
    ? { "api-key": Redacted.value(apiKey) }
    : { authorization: `Bearer ${Redacted.value(apiKey)}` }
}

/** Longer than anybody waits, short enough for any column. */
const retryAfterMaxMs = 86_400_000

/** What the headers ask for, in milliseconds from `now`: seconds, a date, or the milliseconds that OpenAI sends too. */
export const retryAfterMs = (headers: Readonly<Record<string, string | undefined>>, now: number): number | null => {
  const millis = headers["retry-after-ms"]
  const after = headers["retry-after"]?.trim()
  const asked = isNumber(millis) ? Number(millis) : after === undefined ? NaN : fromNow(after, now)
  return Number.isFinite(asked) ? Math.min(Math.max(Math.ceil(asked), 0), retryAfterMaxMs) : null
}

const isNumber = (text: string | undefined): text is string =>
  text !== undefined && /^\d{1,15}(\.\d{1,9})?$/.test(text.trim())

const fromNow = (after: string, now: number): number =>
  isNumber(after) ? Number(after) * 1_000 : /^[A-Z][a-z]+, .* GMT$/.test(after) ? Date.parse(after) - now : NaN

const ErrorAnswer = Schema.fromJsonString(Schema.Struct({ error: Schema.Struct({
  code: Schema.optionalKey(Schema.Unknown),
  type: Schema.optionalKey(Schema.Unknown)
}) }))
const decodeError = Schema.decodeUnknownOption(ErrorAnswer)

/** What a status other than success means. The body decides only where one status has two meanings. */
export const failureOf = (status: number, body: string): FailureName => {
  if (status === 408 || status >= 500) return "provider_unavailable"
  if (status !== 429 && status !== 400) return "provider_rejected"
  const { code, type } = Option.match(decodeError(body), { onNone: () => ({}), onSome: ({ error }) => error }) as {
    readonly code?: unknown
    readonly type?: unknown
  }
  // Azure refuses an input that its filter does not like with a 400 of this code: not a mistake of the operator's.
  if (status === 400) return code === "content_filter" ? "extraction_refused" : "provider_rejected"
  return code === "insufficient_quota" || type === "insufficient_quota" ? "provider_rejected" : "provider_rate_limited"
}

const ChatAnswer = Schema.fromJsonString(Schema.Struct({
  choices: Schema.NonEmptyArray(Schema.Struct({
    finish_reason: Schema.optionalKey(Schema.NullOr(Schema.String)),
    message: Schema.Struct({
      content: Schema.optionalKey(Schema.NullOr(Schema.String)),
      refusal: Schema.optionalKey(Schema.NullOr(Schema.String))
    })
  }))
}))
const decodeChat = Schema.decodeUnknownOption(ChatAnswer)

/** The facts in an answer to a chat completion. */
export const factsOf = (body: string): Result.Result<ReadonlyArray<Fact>, FailureName> => {
  const answer = decodeChat(body)
  if (Option.isNone(answer)) return Result.fail("invalid_output")
  const { finish_reason: reason, message } = answer.value.choices[0]
  if (reason === "content_filter" || message.refusal) return Result.fail("extraction_refused")
  const facts = reason === "length" ? null : factsIn(message.content ?? "")
  return facts === null ? Result.fail("invalid_output") : Result.succeed(facts)
}

const isOffer = Schema.is(Schema.Struct({ facts: Schema.Array(Schema.Unknown) }))

/** The last whole object in the text that is an offer of facts: models talk around it, and may draft it first. */
const factsIn = (text: string): ReadonlyArray<Fact> | null => {
  let offer: ReadonlyArray<unknown> | null = null
  for (let start = text.indexOf("{"); start >= 0;) {
    const end = objectEnd(text, start)
    if (end < 0) return null
    const value = parsed(text.slice(start, end))
    if (isOffer(value)) offer = value.facts
    start = text.indexOf("{", end)
  }
  return offer === null ? null : usable(offer)
}

const parsed = (json: string): unknown => Option.getOrNull(Option.liftThrowable((): unknown => JSON.parse(json))())

/** Where the object that starts here ends; -1 if the text ends first. */
const objectEnd = (text: string, start: number): number => {
  let depth = 0
  let inString = false
  for (let at = start; at < text.length; at++) {
    const character = text[at]
    if (inString) {
      if (character === "\\") at++
      else if (character === "\"") inString = false
    } else if (character === "\"") inString = true
    else if (character === "{") depth++
    else if (character === "}" && --depth === 0) return at + 1
  }
  return -1
}

const decodeItem = Schema.decodeUnknownOption(Schema.Struct({
  change: Schema.Literals(["add", "update", "delete", "none"]),
  text: Schema.optionalKey(Schema.Unknown),
  target: Schema.optionalKey(Schema.Unknown)
}))

/** The unusable becomes a fact that the plan skips with a reason. If that is all there is, nothing was offered. */
const usable = (items: ReadonlyArray<unknown>): ReadonlyArray<Fact> | null => {
  const facts = items.map(factOf)
  return facts.length > 0 && facts.every((fact) => fact === null)
    ? null
    : facts.map((fact) => fact ?? { change: "add", text: null, target: null })
}

const factOf = (item: unknown): Fact | null => {
  const decoded = decodeItem(item)
  if (Option.isNone(decoded)) return null
  const { change, target, text } = decoded.value
  if ((change === "add" || change === "update") && typeof text !== "string") return null
  return { change, text: typeof text === "string" ? text : null, target: change === "add" ? null : placeOf(target) }
}

/** Numbers count from one, places from zero. Anything but a number is no place at all. */
const placeOf = (target: unknown): number | null => {
  if (target === undefined || target === null) return null
  return typeof target === "number" && Number.isSafeInteger(target) ? target - 1 : -1
}

// One check for all numbers of a vector: a schema for each costs ten times what parsing them does.
const Numbers = Schema.declare((value): value is ReadonlyArray<number> =>
  Array.isArray(value) && value.every(Number.isFinite)
)
const EmbeddingsAnswer = Schema.fromJsonString(Schema.Struct({
  data: Schema.Array(Schema.Struct({ index: Schema.Int, embedding: Numbers }))
}))
const decodeEmbeddings = Schema.decodeUnknownOption(EmbeddingsAnswer)

/** One unit vector for each of `count` texts, by the index that the answer gives; null if any is missing or no good. */
export const vectorsOf = (body: string, count: number, dimension: number): ReadonlyArray<Float32Array> | null => {
  const answer = decodeEmbeddings(body)
  if (Option.isNone(answer) || answer.value.data.length !== count) return null
  const vectors = new Map<number, Float32Array>()
  for (const { embedding, index } of answer.value.data) {
    const vector = unit(Float32Array.from(embedding), dimension)
    if (vector !== null) vectors.set(index, vector)
  }
  const ordered = Array.from({ length: count }, (_, index) => vectors.get(index))
  return ordered.every((vector) => vector !== undefined) ? ordered : null
}
