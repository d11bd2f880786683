/** The answer to whatever ended a request before its handler had one: always a problem document, never a cause. */
import { type Cause, Effect } from "effect"
import { HttpServerError, HttpServerRequest, HttpServerRespondable, HttpServerResponse } from "effect/http"
import { HttpApiError } from "effect/http-api"
import { ComeBackLater } from "../domain/Refusal.ts"
import { CurrentRequest } from "./CurrentRequest.ts"
import { describe } from "./Defect.ts"
import { faultsOf, repeatedIn } from "./Faults.ts"
import { InternalProblem, MalformedRequest, MethodNotAllowed, NotFoundProblem } from "./Problems.ts"
import { refuse } from "./Refuse.ts"
import { allowedMethods } from "./RouteTable.ts"

/** The response to a cause. A defect is logged here, once, and one that comes up here is a defect like any other. */
export const answerCause = (cause: Cause.Cause<unknown>) => Effect.catchCause(answerMishap(cause), answerDefect)

const answerMishap = Effect.fnUntraced(function*(cause: Cause.Cause<unknown>) {
  const { id } = yield* CurrentRequest
  const reason = cause.reasons.find((reason) => reason._tag !== "Interrupt")
  if (reason === undefined) return yield* interrupted(cause)
  const error = reason._tag === "Die" ? reason.defect : reason.error
  if (HttpApiError.HttpApiSchemaError.is(error)) {
    if (error.kind === "Params") return yield* render(nothingThere(id))
    if (error.kind === "Query" || error.kind === "Headers") {
      const { url } = yield* HttpServerRequest.HttpServerRequest
      return yield* render(badParameters(id, error, error.kind === "Query" ? repeatedIn(url) : new Set()))
    }
  }
  if (HttpServerError.isHttpServerError(error) && error.reason._tag === "RouteNotFound") {
    return yield* noRoute(id, error.reason)
  }
  return yield* answerDefect(cause)
})

const answerDefect = Effect.fnUntraced(function*(cause: Cause.Cause<unknown>) {
  const { id } = yield* CurrentRequest
  yield* Effect.logError("defect").pipe(Effect.annotateLogs("defect", describe(cause)))
  return yield* render(
    new InternalProblem({
      request_id: id,
      detail: "Something went wrong on our side. Repeat the same request, with the same Idempotency-Key if it writes; "
        + "if it goes on, tell the operator the request_id."
    })
  )
})

const render = (problem: HttpServerRespondable.Respondable) =>
  HttpServerRespondable.toResponseOrElse(problem, HttpServerResponse.empty({ status: 500 }))

/** The caller went away, and hears nothing; or the process does, and says so. */
const interrupted = (cause: Cause.Cause<unknown>) =>
  cause.reasons.some((reason) => reason.annotations.has(HttpServerError.ClientAbort.key))
    ? Effect.succeed(HttpServerResponse.empty({ status: 499 }))
    : Effect.catch(refuse(Effect.fail(new ComeBackLater({ reason: "shutting_down" }))), render)

const nothingThere = (request_id: string) =>
  new NotFoundProblem({ request_id, detail: "There is nothing with this id: ids are lower-case UUIDs." })

const badParameters = (request_id: string, error: HttpApiError.HttpApiSchemaError, repeated: ReadonlySet<string>) =>
  new MalformedRequest({
    request_id,
    errors: faultsOf(error.cause.issue, repeated),
    detail: "A query parameter or a header is not acceptable: see errors."
  })

const noRoute = Effect.fnUntraced(function*(request_id: string, { request }: HttpServerError.RouteNotFound) {
  const allowed = allowedMethods(request.url)
  if (allowed.length === 0 || allowed.includes(request.method)) {
    const detail = "There is nothing at this path: see /openapi.json."
    return yield* render(new NotFoundProblem({ request_id, detail }))
  }
  const response = yield* render(
    new MethodNotAllowed({ request_id, detail: "This path exists, but not with this method: see Allow." })
  )
  return HttpServerResponse.setHeader(response, "allow", allowed.join(", "))
})
