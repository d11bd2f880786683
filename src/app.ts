/** The whole service of one process: which adapters stand behind which ports, and what a role runs. */
import { NodeHttpServer } from "@effect/platform-node"
import { Effect, Layer, type Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import { FetchHttpClient, HttpServer } from "effect/http"
import { createServer } from "node:http"
import * as Bootstrap from "./adapters/Bootstrap.ts"
import type { Configuration } from "./adapters/Configuration.ts"
import * as EmbeddedPostgres from "./adapters/EmbeddedPostgres.ts"
import * as LocalProvider from "./adapters/LocalProvider.ts"
import * as OpenAiProvider from "./adapters/OpenAiProvider.ts"
import * as PgApiKeys from "./adapters/PgApiKeys.ts"
import * as PgDatabase from "./adapters/PgDatabase.ts"
import * as PgLedger from "./adapters/PgLedger.ts"
import * as PgMigrations from "./adapters/PgMigrations.ts"
import * as PgQueue from "./adapters/PgQueue.ts"
import * as PgReadiness from "./adapters/PgReadiness.ts"
import * as PgStore from "./adapters/PgStore.ts"
import * as PgTransaction from "./adapters/PgTransaction.ts"
import * as PgVectorIndexAuto from "./adapters/PgVectorIndexAuto.ts"
import * as Server from "./http/Server.ts"
import * as Programs from "./services/Programs.ts"
import { Settings } from "./services/Settings.ts"

/** What a process does: answer callers, work on operations, or both. */
export const roles = ["all", "api", "worker"] as const
export type Role = typeof roles[number]

/**
 * A database that is up and migrated: the configured one, or our own until the scope closes. `watch` never succeeds,
 * and fails when our own goes away by itself. `beside` uses the own database of a service that runs, if one does.
 */
export const openDatabase = Effect.fnUntraced(function*(config: Configuration, options?: { readonly beside: boolean }) {
  const own = options?.beside === true ? EmbeddedPostgres.attach : EmbeddedPostgres.make
  const embedded = config.databaseUrl === null ? yield* own({ dataDir: config.dataDir }) : null
  const url = config.databaseUrl ?? embedded!.url
  yield* PgMigrations.run(PgDatabase.session(url, "indelible migrations"))
  return { url, watch: embedded?.watch ?? Effect.never }
})

/** The ports that everything stands on, without the provider. */
export const storage = (config: Configuration, url: Redacted.Redacted) =>
  Layer.mergeAll(PgStore.layer, PgLedger.layer, PgQueue.layer, PgTransaction.layer, PgApiKeys.layer, PgReadiness.layer).pipe(
    Layer.provideMerge(PgDatabase.layer({ url, maxConnections: config.databaseConnections })),
    Layer.provideMerge(SecureRandom.layerWebCrypto),
    Layer.provideMerge(Layer.succeed(Settings, config.settings))
  )

const provider = (config: Configuration) =>
  config.openAi === null
    ? LocalProvider.layer
    : OpenAiProvider.layer(config.openAi).pipe(Layer.provide(FetchHttpClient.layer))

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
    Layer.provideMerge(Server.layer),
    Layer.provide(NodeHttpServer.layer(createServer, { port: config.port, host: config.host })),
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
      Layer.provide(storage(config, url))
    )
