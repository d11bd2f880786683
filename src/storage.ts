/** What everything stands on: a database that is up and migrated, and the ports on it. Quick to start, for tools too. */
import { Effect, Layer, type Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import type { Configuration } from "./adapters/Configuration.ts"
import * as EmbeddedPostgres from "./adapters/EmbeddedPostgres.ts"
import * as PgApiKeys from "./adapters/PgApiKeys.ts"
import * as PgDatabase from "./adapters/PgDatabase.ts"
import * as PgLedger from "./adapters/PgLedger.ts"
import * as PgMigrations from "./adapters/PgMigrations.ts"
import * as PgQueue from "./adapters/PgQueue.ts"
import * as PgReadiness from "./adapters/PgReadiness.ts"
import * as PgStore from "./adapters/PgStore.ts"
import * as PgTransaction from "./adapters/PgTransaction.ts"
import { Settings } from "./services/Settings.ts"

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
