/**
 * Reads a JSON body: bounded in bytes as they arrive, refused unless it is plain UTF-8 JSON of one meaning, decoded
 * with nothing unknown in it. Never buffers more than a body may have.
 */
import { ByteSize, Effect, Result, type Schema } from "effect"
import { HttpIncomingMessage, type HttpServerError, type HttpServerRequest } from "effect/http"
import { decodeBody } from "../domain/Decode.ts"
import * as StrictJson from "../domain/StrictJson.ts"
import { bodyMaxBytes } from "./Limits.ts"
import { type Fault, MalformedRequest, PayloadTooLarge, UnacceptableBody, UnsupportedMediaType } from "./Problems.ts"
import { fail } from "./Refuse.ts"

type BodyProblem = MalformedRequest | PayloadTooLarge | UnacceptableBody | UnsupportedMediaType

/** A reader of bodies of this schema. */
export const reader = <S extends Schema.ConstraintDecoder<unknown>>(schema: S) => {
  const decode = decodeBody(schema)
  return Effect.fnUntraced(
    function*(request: HttpServerRequest.HttpServerRequest): Effect.fn.Return<S["Type"], BodyProblem> {
      const text = yield* readText(request)
      const value = StrictJson.parse(text)
      if (Result.isFailure(value)) return yield* malformed(value.failure)
      const body = decode(value.success)
      if (Result.isFailure(body)) return yield* unacceptable(body.failure.errors)
      return body.success
    }
  )
}

/**
 * For an endpoint that takes no body. An empty object is as good as none, since many clients send one with every POST:
 * whatever else there is would be ignored, and with it what the caller meant.
 */
export const none = Effect.fnUntraced(
  function*(request: HttpServerRequest.HttpServerRequest): Effect.fn.Return<void, MalformedRequest> {
    if (hasNoBody(request)) return
    const bytes = yield* request.arrayBuffer.pipe(
      Effect.provideService(HttpIncomingMessage.MaxBodySize, nothingMaxSize),
      Effect.catch(() => notTaken)
    )
    if (!nothing.test(latin1.decode(bytes))) return yield* notTaken
  }
)

const nothingMaxSize = ByteSize.bytes(64)
const nothing = /^[\t\n\r ]*(?:\{[\t\n\r ]*\}[\t\n\r ]*)?$/
const latin1 = new TextDecoder("latin1")

const notTaken = fail((request_id) =>
  new MalformedRequest({
    request_id,
    errors: [{ path: "", message: "is not taken here: send no body, or {}" }],
    detail: "This endpoint takes no body, and this request has one. Nothing was done."
  })
)

const hasNoBody = ({ headers }: HttpServerRequest.HttpServerRequest): boolean => {
  const length = headers["content-length"]
  return headers["transfer-encoding"] === undefined && (length === undefined || length === "0")
}

const malformed = (errors: ReadonlyArray<Fault>) =>
  fail((request_id) =>
    new MalformedRequest({
      request_id,
      errors,
      detail: "The body could not be read as JSON of one meaning: see errors. Nothing was accepted."
    })
  )

const unacceptable = (errors: ReadonlyArray<Fault>) =>
  fail((request_id) =>
    new UnacceptableBody({
      request_id,
      errors,
      detail: "The body is not acceptable: see errors. Nothing was accepted."
    })
  )

const unsupported = (detail: string) => fail((request_id) => new UnsupportedMediaType({ request_id, detail }))

const tooLarge = fail((request_id) =>
  new PayloadTooLarge({
    request_id,
    max_bytes: bodyMaxBytes,
    detail: "The body is larger than max_bytes. Split it into several requests, each with its own Idempotency-Key."
  })
)

const decoder = new TextDecoder("utf-8", { fatal: true })
const maxBodySize = ByteSize.bytes(bodyMaxBytes)
const jsonType = /^application\/json[\t ]*(?:;[\t ]*charset[\t ]*=[\t ]*"?utf-?8"?[\t ]*)?$/i

const readText = Effect.fnUntraced(
  function*(request: HttpServerRequest.HttpServerRequest): Effect.fn.Return<string, BodyProblem> {
    const headers = request.headers
    if (hasNoBody(request)) return yield* empty
    if ((headers["content-encoding"] ?? "identity").toLowerCase() !== "identity") {
      return yield* unsupported("Compressed bodies are not taken. Send the JSON as it is.")
    }
    if (!jsonType.test(headers["content-type"] ?? "")) {
      return yield* unsupported("The body must be JSON in UTF-8: send it with Content-Type: application/json.")
    }
    if (Number(headers["content-length"]) > bodyMaxBytes) return yield* tooLarge
    const bytes = yield* request.arrayBuffer.pipe(
      Effect.provideService(HttpIncomingMessage.MaxBodySize, maxBodySize),
      Effect.catch(unreadable)
    )
    if (bytes.byteLength === 0) return yield* empty
    return yield* Effect.try({ try: () => decoder.decode(bytes), catch: () => "not UTF-8" as const }).pipe(
      Effect.catch(() => malformed([{ path: "", message: "must be valid UTF-8" }]))
    )
  }
)

const empty = malformed([{ path: "", message: "is required" }])

const unreadable = (
  { reason }: HttpServerError.HttpServerError
): Effect.Effect<never, MalformedRequest | PayloadTooLarge> =>
  reason._tag === "RequestParseError" && reason.reason === "BodyTooLarge"
    ? tooLarge
    : malformed([{ path: "", message: "ended early" }])
