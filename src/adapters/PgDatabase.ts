/** How this service talks to Postgres: one pool for the work, and a small one that slow work can never starve. */
import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, type Redacted } from "effect"
import type { SqlClient } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"

export interface PgSettings {
  readonly url: Redacted.Redacted
  /** Connections for everything but leases. Default 10. */
  readonly maxConnections?: number | undefined
  /** Connections for renewing leases and settling attempts. Default 2. */
  readonly leaseConnections?: number | undefined
}

/**
 * The pool for lease renewal and settlement. It is a client of its own: its statements never join a transaction that
 * was opened on the main pool.
 */
export class LeasePool extends Context.Service<LeasePool, PgClient.PgClient>()("indelible/adapters/LeasePool") {}

/**
 * Both pools. Connections open on first use, and sessions are READ COMMITTED and UTC with every wait bounded.
 * Pipelining stays off: a statement would queue behind the slowest of its neighbours, and could not be cancelled alone.
 */
export const layer = (
  settings: PgSettings
): Layer.Layer<PgClient.PgClient | SqlClient.SqlClient | LeasePool, SqlError> =>
  Layer.mergeAll(
    PgClient.layer({ ...session(settings.url, "indelible"), maxConnections: settings.maxConnections ?? 10 }),
    Layer.effectContext(Effect.map(
      Layer.build(PgClient.layer({
        ...session(settings.url, "indelible leases"),
        maxConnections: settings.leaseConnections ?? 2
      })),
      (context) => Context.make(LeasePool, Context.get(context, PgClient.PgClient))
    ))
  )

/** What every session is opened with. */
export const session = (url: Redacted.Redacted, applicationName: string) => ({
  url,
  applicationName,
  keepAlive: "30 seconds",
  startupParameters: {
    default_transaction_isolation: "read committed",
    statement_timeout: "30s",
    lock_timeout: "10s",
    idle_in_transaction_session_timeout: "60s",
    timezone: "UTC",
    // Compiling pays for reports. Ours are short, and would be compiled when their cost is misjudged.
    jit: "off"
  }
}) satisfies PgClient.PgClientConfig
