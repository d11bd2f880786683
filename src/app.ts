/** The whole service of one process: which adapters stand behind which ports, and what a role runs. */
import { NodeHttpClient } from "@effect/platform-node"
import { Effect, Layer, type Redacted } from "effect"
import { HttpServer } from "effect/http"
import * as Bootstrap from "./adapters/Bootstrap.ts"
import type { Configuration } from "./adapters/Configuration.ts"
import * as LocalProvider from "./adapters/LocalProvider.ts"
import * as OpenAiProvider from "./adapters/OpenAiProvider.ts"
import * as PgStatistics from "./adapters/PgStatistics.ts"
import * as PgVectorIndexAuto from "./adapters/PgVectorIndexAuto.ts"
import * as NodeServer from "./http/NodeServer.ts"
import * as Server from "./http/Server.ts"
import * as Programs from "./services/Programs.ts"
import { storage } from "./storage.ts"

/** What a process does: answer callers, work on operations, or both. */
export const roles = ["all", "api", "worker"] as const
export type Role = typeof roles[number]

const provider = (config: Configuration) =>
  config.openAi === null
    ? LocalProvider.layer
    // The provider has a timeout of its own, which may be longer than the client's defaults.
    : OpenAiProvider.layer(config.openAi).pipe(
      Layer.provide(NodeHttpClient.layerUndiciOptions({ headersTimeout: 0, bodyTimeout: 0 }))
    )

/** Announces where callers are served, once they are. */
const announced = Layer.effectDiscard(Effect.gen(function*() {
  const { address } = yield* HttpServer.HttpServer
  yield* Effect.logInfo("Serving").pipe(Effect.annotateLogs({
    address: HttpServer.formatAddress(address),
    pid: process.pid
  }))
}))

const api = (config: Configuration) =>
  announced.pipe(
    Layer.provideMerge(Server.layer(config)),
    Layer.provide(NodeServer.layer({ port: config.port, host: config.host })),
    Layer.provide(Programs.api),
    Layer.provide(Layer.effectDiscard(Bootstrap.run(config)))
  )

const worker = Layer.provideMerge(
  Layer.effectDiscard(Effect.logInfo("Working").pipe(Effect.annotateLogs({ pid: process.pid }))),
  Programs.worker
)

/** Everything that one process runs. */
export const layer = (config: Configuration, role: Role, url: Redacted.Redacted) =>
  (role === "all"
    ? Layer.mergeAll(api(config), Programs.worker)
    : role === "api"
    ? api(config)
    : worker).pipe(
      Layer.provide(PgVectorIndexAuto.layer),
      Layer.provide(provider(config)),
      Layer.merge(PgStatistics.layer),
      Layer.provide(storage(config, url))
    )
