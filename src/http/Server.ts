/**
 * Serves the contract on the HttpServer that it is given. When its scope closes, long waits end first, then no
 * connection is taken any more, and requests in flight are answered.
 */
import { Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { HttpRouter, HttpServer, UrlParams } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { scopeKeys } from "../domain/Scope.ts"
import { Api } from "./Api.ts"
import * as Authenticate from "./Authenticate.ts"
import * as Docs from "./Docs.ts"
import { Drain } from "./Drain.ts"
import { surround } from "./Edge.ts"
import * as EventsHandlers from "./EventsHandlers.ts"
import * as HealthHandlers from "./HealthHandlers.ts"
import * as MemoriesHandlers from "./MemoriesHandlers.ts"
import { openApiPath } from "./RouteTable.ts"
import * as UsageHandlers from "./UsageHandlers.ts"

const contract = HttpApiBuilder.layer(Api, { openapiPath: openApiPath }).pipe(
  Layer.provide([MemoriesHandlers.layer, EventsHandlers.layer, UsageHandlers.layer, HealthHandlers.layer]),
  Layer.provide(Authenticate.layer)
)

/** Each resource has one path, so that logs, limits and proxies all see the same one. */
const routerConfig = { ignoreTrailingSlash: false, ignoreDuplicateSlashes: false, caseSensitive: true }

/** Whatever identifies people stays out of the URLs that traces record. */
const redactedNames = [...scopeKeys, "metadata", "cursor"]

/** The routes on the given HttpServer. `Drain` is there for whoever decides when this process ends. */
export const layer = Layer.effectDiscard(Effect.gen(function*() {
  const drain = yield* Drain
  const app = yield* HttpRouter.toHttpEffect(Layer.merge(contract, Docs.layer))
  yield* HttpServer.serveEffect(surround(app, { drain, random: yield* SecureRandom.SecureRandom }))
  // Added last, so that it runs first: a wait that went on would hold the server open.
  yield* Effect.addFinalizer(() => drain.begin)
})).pipe(
  Layer.provide(Layer.succeed(HttpRouter.RouterConfig, routerConfig)),
  Layer.provide(Layer.succeed(UrlParams.CurrentRedactedNames, redactedNames)),
  Layer.provideMerge(Drain.layer)
)
