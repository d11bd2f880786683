/**
 * What surrounds every request: its id, its one log line, the headers of every answer, and a problem document for
 * whatever goes wrong. Bodies, headers and URLs never reach the log.
 */
import { type Cause, Clock, Context, Effect, type Fiber, Tracer } from "effect"
import type { SecureRandom } from "effect/crypto"
import { HttpRouter, HttpServerRequest, HttpServerRespondable, HttpServerResponse } from "effect/http"
import { CurrentRequest, type RequestInfo } from "./CurrentRequest.ts"
import type { Drain } from "./Drain.ts"
import { comeBackSeconds } from "./Limits.ts"
import { answerCause } from "./Mishap.ts"
import { MalformedRequest } from "./Problems.ts"
import { type HeadFault, headFault } from "./RequestHead.ts"

type App<R> = Effect.Effect<HttpServerResponse.HttpServerResponse, unknown, R>

const validId = /^[A-Za-z0-9_-]{1,64}$/

interface Services {
  readonly random: SecureRandom.SecureRandom["Service"]
  readonly drain: Drain["Service"]
}

/** Surrounds `app`: the result never fails. */
export const surround = <R>(app: App<R>, { drain, random }: Services) => {
  const finish = Effect.fnUntraced(
    function*(response: HttpServerResponse.HttpServerResponse, info: RequestInfo, startedAt: bigint) {
      const { method } = yield* HttpServerRequest.HttpServerRequest
      const duration = (yield* Clock.monotonicTimeNanos) - startedAt
      yield* Effect.logInfo("request").pipe(Effect.annotateLogs({
        method,
        route: info.route ?? "unmatched",
        status: response.status,
        duration_ms: Number(duration / 1_000n) / 1_000,
        ...(info.key === null ? {} : { workspace_id: info.key.workspaceId, api_key_id: info.key.id })
      }))
      return HttpServerResponse.setHeaders(response, headersOf(response, info.id, drain.isDraining()))
    }
  )

  return Effect.gen(function*() {
    const request = yield* HttpServerRequest.HttpServerRequest
    const startedAt = yield* Clock.monotonicTimeNanos
    const given = request.headers["x-request-id"]
    const id = given !== undefined && validId.test(given) ? given : yield* random.uuidV7()
    const info: RequestInfo = { id, route: null, key: null }
    const fault = headFault(request)
    const answered = Effect.matchCauseEffect(fault === null ? app : unreadable(fault), {
      onSuccess: (response) => noting(info, () => finish(response, info, startedAt)),
      onFailure: (cause: Cause.Cause<unknown>) =>
        noting(info, () => Effect.flatMap(answerCause(cause), (response) => finish(response, info, startedAt)))
    })
    return yield* answered.pipe(Effect.provideService(CurrentRequest, info), Effect.annotateLogs("request_id", id))
  })
}

const unreadable = ({ detail, errors }: HeadFault) =>
  Effect.flatMap(CurrentRequest, ({ id }) =>
    HttpServerRespondable.toResponseOrElse(
      new MalformedRequest({ request_id: id, detail, errors }),
      HttpServerResponse.empty({ status: 500 })
    ))

/** Notes which route the router chose, which it leaves in the fiber, and goes on. */
const noting = <A, E, R>(info: RequestInfo, next: () => Effect.Effect<A, E, R>) =>
  Effect.withFiber<A, E, R>((fiber: Fiber.Fiber<unknown, unknown>) => {
    const context = fiber.context as Context.Context<HttpRouter.RouteContext | Tracer.ParentSpan>
    info.route = Context.getOrUndefined(context, HttpRouter.RouteContext)?.route.path ?? null
    const span = Context.getOrUndefined(context, Tracer.ParentSpan)
    if (span?._tag === "Span") span.attribute("request_id", info.id)
    return next()
  })

const headersOf = (response: HttpServerResponse.HttpServerResponse, id: string, draining: boolean) => ({
  "x-request-id": id,
  "cache-control": "no-store",
  ...(response.status === 401 ? { "www-authenticate": "Bearer" } : {}),
  ...(response.status === 503 ? { "retry-after": String(comeBackSeconds) } : {}),
  ...(draining ? { connection: "close" } : {})
})
