/**
 * Lets a request in with a live key that holds the required scope, and with nothing that its endpoint would ignore. No
 * body is read before that.
 */
import { Context, Effect, Layer, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { ComeBackLater } from "../domain/Refusal.ts"
import { ApiKeys } from "../services/ApiKeys.ts"
import { Authentication, CurrentKey, RequiredScope } from "./Authentication.ts"
import * as Body from "./Body.ts"
import { CurrentRequest } from "./CurrentRequest.ts"
import { unknownParameters } from "./Faults.ts"
import { ForbiddenScope, MalformedRequest, Unauthenticated } from "./Problems.ts"
import { fail, refuse } from "./Refuse.ts"

const unauthenticated = fail((request_id) =>
  new Unauthenticated({
    request_id,
    detail: "Send a live API key as Authorization: Bearer <key>. This one is missing, unknown or revoked."
  })
)

const unknownQuery = (names: ReadonlyArray<string>) =>
  fail((request_id) =>
    new MalformedRequest({
      request_id,
      errors: unknownParameters(names),
      detail: "This endpoint takes no query parameters."
    })
  )

export const layer = Layer.effect(
  Authentication,
  Effect.gen(function*() {
    const keys = yield* ApiKeys
    return Authentication.of({
      bearer: Effect.fnUntraced(function*(app, { credential, endpoint }) {
        if (Redacted.value(credential) === "") return yield* unauthenticated
        const key = yield* keys.authenticate(credential).pipe(
          Effect.mapError(() => new ComeBackLater({ reason: "outcome_unknown" })),
          refuse
        )
        if (key === null) return yield* unauthenticated
        const request = yield* CurrentRequest
        request.key = key
        const required = Context.get(endpoint.annotations as Context.Context<RequiredScope>, RequiredScope)
        if (!key.scopes.includes(required)) {
          return yield* fail((request_id) =>
            new ForbiddenScope({ request_id, required_scope: required, detail: `This needs a key with ${required}.` })
          )
        }
        // An endpoint that takes no query would ignore one, and with it what the caller meant.
        const query = endpoint.query === undefined ? Object.keys(yield* HttpServerRequest.ParsedSearchParams) : []
        if (query.length > 0) return yield* unknownQuery(query)
        if (endpoint.payload.size === 0) yield* Body.none(yield* HttpServerRequest.HttpServerRequest)
        return yield* Effect.provideService(app, CurrentKey, key)
      })
    })
  })
)
