/** The ports of operations, money and keys on a real Postgres and on PGlite, for the suites of their promises. */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import * as PgApiKeys from "../../src/adapters/PgApiKeys.ts"
import { LeasePool } from "../../src/adapters/PgDatabase.ts"
import * as PgLedger from "../../src/adapters/PgLedger.ts"
import * as PgStore from "../../src/adapters/PgStore.ts"
import * as PgTransaction from "../../src/adapters/PgTransaction.ts"
import type { WorkspaceId } from "../../src/domain/Ids.ts"
import { ApiKeys } from "../../src/services/ApiKeys.ts"
import { PGliteTest, PgTest } from "../postgres.ts"

const ports = Layer.mergeAll(
  PgStore.layer,
  PgLedger.layer,
  PgTransaction.layer,
  PgApiKeys.layer.pipe(Layer.provide(SecureRandom.layerWebCrypto))
)

/** A database of its own for each suite. */
export const postgres = ports.pipe(Layer.provideMerge(PgTest.layer))

/** One session, whoever asks. */
export const pglite = ports.pipe(
  Layer.provide(Layer.effect(LeasePool, PgClient.PgClient)),
  Layer.provideMerge(PGliteTest.layer)
)

/** Makes a workspace and its account. */
export const open = (workspaceId: WorkspaceId) => Effect.flatMap(ApiKeys, (keys) => keys.makeWorkspace(workspaceId))

/** Returns once a transaction of this database waits for another. */
export const blocked = Effect.flatMap(PgClient.PgClient, (sql) =>
  Effect.repeat(
    sql`select from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0`,
    { until: (rows) => rows.length > 0 }
  ))
