/** Who is asking: a bearer API key, bound to one workspace, with the scope that the endpoint requires. */
import { Context } from "effect"
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import type { ApiKey, KeyScope } from "../services/ApiKeys.ts"
import { always } from "./Problems.ts"

/** The key of the request in hand. Its workspace is the only one that the request can see. */
export class CurrentKey extends Context.Service<CurrentKey, ApiKey>()("indelible/http/CurrentKey") {}

/** The scope that an endpoint requires: an annotation, so that the contract, the check and the documentation agree. */
export class RequiredScope extends Context.Service<RequiredScope, KeyScope>()("indelible/http/RequiredScope") {}

/** Annotates an endpoint: the scope it requires, what it is called, and what it promises. */
export const operation = (scope: KeyScope, summary: string, description: string): Context.Context<never> =>
  Context.merge(
    Context.make(RequiredScope, scope) as Context.Context<never>,
    OpenApi.annotations({ summary, description: `${description.trim()} Needs a key with \`${scope}\`.` })
  )

const bearer = HttpApiSecurity.bearer.pipe(
  HttpApiSecurity.annotate(OpenApi.Description, "An API key of a workspace, in `Authorization: Bearer …`.")
)

export class Authentication extends HttpApiMiddleware.Service<Authentication, { provides: CurrentKey }>()(
  "indelible/http/Authentication",
  { security: { bearer }, error: always }
) {}
