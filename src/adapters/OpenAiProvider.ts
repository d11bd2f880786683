/**
 * The provider over HTTP, for OpenAI and every server that speaks its format. One call is one try, and nothing that the
 * other side says leaves this file except as a class of failure.
 */
import { Clock, type Duration, Effect, Layer, type Redacted, Result, Stream } from "effect"
import { FetchHttpClient, HttpClient, HttpClientError, HttpClientRequest, type HttpClientResponse } from "effect/http"
import { type ExtractionRequest, Provider, ProviderFailure } from "../services/Provider.ts"
import { answerSchema, extractionPrompt } from "./extractionPrompt.ts"
import { endpoint, factsOf, failureOf, type FailureName, keyHeaders, retryAfterMs, vectorsOf } from "./OpenAiWire.ts"

export interface OpenAiConfig {
  /**
   * Up to and including `/v1`. A query is kept, and `{model}` becomes the name of the model that is called, for Azure:
   * `https://NAME.openai.azure.com/openai/deployments/{model}?api-version=2024-10-21`.
   */
  readonly baseUrl: string
  /** Null for servers that want none. */
  readonly apiKey: Redacted.Redacted | null
  readonly model: string
  readonly embeddingModel: string
  readonly dimension: number
  /** Null leaves it to the model: some accept no other than their own. */
  readonly temperature: number | null
  /** For one HTTP call, from the connection to the last byte. */
  readonly timeout: Duration.Duration
}

/** The largest answer that is read, in bytes. */
const answerMaxBytes = 4 * 1_024 * 1_024
/** The most of an error that is read: enough for its code. */
const errorMaxBytes = 64 * 1_024
/** Texts in one call: few enough for their vectors to fit in one answer, whatever the spelling of the numbers. */
const embedBatch = 32

/** Why a call failed. The status is for the operator; it goes no further than the log. */
interface Refused {
  readonly failure: FailureName
  readonly retryAfterMs: number | null
  readonly status: number | null
}

/** A provider that calls `config.baseUrl` with whichever HTTP client it is given. */
export const layer = (config: OpenAiConfig): Layer.Layer<Provider, never, HttpClient.HttpClient> =>
  Layer.effect(Provider, make(config))

const make = Effect.fnUntraced(function*(config: OpenAiConfig) {
  // The scope of a call ends its connection, wherever the call was.
  const client = HttpClient.withScope(yield* HttpClient.HttpClient)
  const headers = keyHeaders(config.baseUrl, config.apiKey)

  const call = <A>(
    path: string,
    body: { readonly model: string; readonly [field: string]: unknown },
    read: (answer: string) => Result.Result<A, FailureName>
  ): Effect.Effect<A, ProviderFailure> =>
    HttpClientRequest.post(endpoint(config.baseUrl, path, body.model), { headers }).pipe(
      HttpClientRequest.acceptJson,
      HttpClientRequest.bodyJsonUnsafe(body),
      client.execute,
      Effect.flatMap((response) => answerOf(response, read)),
      Effect.scoped,
      Effect.timeoutOrElse({ duration: config.timeout, orElse: () => refuse("provider_timeout", null) }),
      Effect.catchIf(HttpClientError.isHttpClientError, ({ reason }) =>
        refuse(isOurs(reason) ? "provider_rejected" : "provider_unavailable", null)),
      // A redirect would carry the conversation and the key to somebody else.
      Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
      // Spans of the client name the host.
      Effect.provideService(HttpClient.TracerDisabledWhen, () => true),
      Effect.tapError(({ failure, status }) =>
        Effect.logWarning("A call to the model provider failed").pipe(Effect.annotateLogs({ failure, status }))
      ),
      Effect.mapError(({ failure, retryAfterMs }) => new ProviderFailure({ failure, retryAfterMs }))
    )

  const extract = Effect.fn("Provider.extract")(function*(request: ExtractionRequest) {
    if (request.messages.every(({ content }) => content.trim() === "")) return []
    return yield* call("chat/completions", {
      model: config.model,
      ...(config.temperature === null ? {} : { temperature: config.temperature }),
      messages: extractionPrompt(request),
      response_format: { type: "json_schema", json_schema: { name: "facts", strict: true, schema: answerSchema } }
    }, factsOf)
  })

  const embed = Effect.fn("Provider.embed")(function*(texts: ReadonlyArray<string>) {
    const vectors: Array<Float32Array> = []
    for (let from = 0; from < texts.length; from += embedBatch) {
      const batch = texts.slice(from, from + embedBatch)
      vectors.push(...yield* call("embeddings", {
        model: config.embeddingModel,
        // A text of no length is refused by some.
        input: batch.map((text) => text === "" ? " " : text),
        encoding_format: "float",
        // Only these can be asked for a size; others refuse to be.
        ...config.embeddingModel.startsWith("text-embedding-3") ? { dimensions: config.dimension } : {}
      }, (answer) =>
        Result.fromNullishOr(vectorsOf(answer, batch.length, config.dimension), () => "invalid_output")))
    }
    return vectors
  })

  return Provider.of({
    model: config.model,
    embeddingModel: config.embeddingModel,
    dimension: config.dimension,
    extract,
    embed
  })
})

const refuse = (failure: FailureName, status: number | null, retryAfterMs: number | null = null) =>
  Effect.fail<Refused>({ failure, retryAfterMs, status })

const isOurs = ({ _tag }: HttpClientError.HttpClientErrorReason): boolean =>
  _tag === "EncodeError" || _tag === "InvalidUrlError"

const answerOf = Effect.fnUntraced(function*<A>(
  response: HttpClientResponse.HttpClientResponse,
  read: (answer: string) => Result.Result<A, FailureName>
) {
  const { headers, status } = response
  if (status < 200 || status > 299) {
    const body = yield* Effect.orElseSucceed(textOf(response, errorMaxBytes), () => null)
    const failure = failureOf(status, body ?? "")
    return yield* refuse(failure, status, retryAfterMs(headers, yield* Clock.currentTimeMillis))
  }
  const text = yield* textOf(response, answerMaxBytes)
  const answer = text === null ? Result.fail<FailureName>("invalid_output") : read(text)
  return Result.isSuccess(answer) ? answer.success : yield* refuse(answer.failure, status)
})

/** The body as text; null, without reading on, once it is longer than allowed. */
const textOf = Effect.fnUntraced(function*(response: HttpClientResponse.HttpClientResponse, maxBytes: number) {
  const chunks: Array<Uint8Array> = []
  let size = 0
  yield* response.stream.pipe(
    Stream.takeWhile((chunk) => {
      size += chunk.length
      return size <= maxBytes
    }),
    Stream.runForEach((chunk) => Effect.sync(() => chunks.push(chunk)))
  )
  return size > maxBytes ? null : Buffer.concat(chunks).toString("utf8")
}, Effect.catchReason("HttpClientError", "EmptyBodyError", () => Effect.succeed("")))
