/**
 * Serves the contract on the HttpServer that it is given. When its scope closes, readiness says no and long waits end;
 * after a grace no connection is taken any more, and requests in flight are answered.
 */
import { Duration, Effect, Layer } from "effect"
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

export interface Options {
  /** How long a process that is about to end is not ready and still answers, so that nobody is sent to a closed door. */
  readonly shutdownGrace: Duration.Duration
}

/** The routes on the given HttpServer. `Drain` is there for whoever decides when this process ends. */
export const layer = ({ shutdownGrace }: Options) =>
  Layer.effectDiscard(Effect.gen(function*() {
    const drain = yield* Drain
    const app = yield* HttpRouter.toHttpEffect(Layer.merge(contract, Docs.layer))
    const requests = counted(surround(app, { drain, random: yield* SecureRandom.SecureRandom }))
    // Finalizers run last to first: what is told first is added last.
    yield* Effect.addFinalizer(() => tell("Requests are drained", { requests_unanswered: requests.inFlight() }))
    yield* HttpServer.serveEffect(requests.app)
    yield* Effect.addFinalizer(() => tell("Taking no more connections", { requests_in_flight: requests.inFlight() }))
    yield* Effect.addFinalizer(() =>
      Effect.gen(function*() {
        const grace_ms = Duration.toMillis(shutdownGrace)
        yield* tell("Shutting down: not ready any more, still answering", { grace_ms })
        // A wait that went on would hold the server open.
        yield* drain.begin
        yield* Effect.sleep(shutdownGrace)
      })
    )
  })).pipe(
    Layer.provide(Layer.succeed(HttpRouter.RouterConfig, routerConfig)),
    Layer.provide(Layer.succeed(UrlParams.CurrentRedactedNames, redactedNames)),
    Layer.provideMerge(Drain.layer)
  )

const tell = (message: string, annotations: Record<string, unknown>) =>
  Effect.logInfo(message).pipe(Effect.annotateLogs(annotations))

/** The same app, and how many of its requests have no answer yet. */
const counted = <A, E, R>(app: Effect.Effect<A, E, R>) => {
  let inFlight = 0
  return {
    app: Effect.suspend(() => {
      inFlight++
      return Effect.ensuring(app, Effect.sync(() => inFlight--))
    }),
    inFlight: () => inFlight
  }
}
