/**
 * The database of a simulated world, made of a real Postgres and the adapters of production. It is one session: what one
 * transaction does to another while both are open is seen on the simulated database, and on a server.
 */
import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Schedule } from "effect"
import * as PgApiKeys from "../../adapters/PgApiKeys.ts"
import { LeasePool } from "../../adapters/PgDatabase.ts"
import * as PgLedger from "../../adapters/PgLedger.ts"
import * as PgStore from "../../adapters/PgStore.ts"
import * as PgTransaction from "../../adapters/PgTransaction.ts"
import * as PgVectorIndex from "../../adapters/PgVectorIndex.ts"
import type { Database, DatabaseOptions, OpenDatabase } from "../Database.ts"
import { Connections } from "../database/Connections.ts"
import { indexFaults, statementFaults } from "../database/Fate.ts"
import { Mirror, prepare } from "./Mirror.ts"
import type { Pglite } from "./Pglite.ts"
import * as SqlClients from "./SqlClients.ts"
import { SqlEngine } from "./SqlEngine.ts"

/** Of each process: for its work, and for renewing leases. As in production. */
const poolSizes = { connections: 10, leaseConnections: 2 }

/** On a fresh server, which serves one run after another. */
export const openOn = (server: Pglite): OpenDatabase => {
  prepare(server)
  const tables = server.must("select tablename from pg_tables where schemaname = 'public' and tablename <> 'schema_migrations'")
    .map(({ tablename }) => String(tablename))
  return (options) => {
    server.reset(tables)
    return open(server, options)
  }
}

const open = (server: Pglite, { clock, kernel, strikes }: DatabaseOptions): Database => {
  const now = () => clock.wallMicros / 1_000
  const mirror = new Mirror(server)
  const engine = new SqlEngine({ kernel, server, mirror, clock: now })
  const connections = new Connections({ kernel, strikes, engine, now, pools: poolSizes })
  const client = (pool: SqlClients.SqlClientsOptions["pool"], faults: SqlClients.SqlClientsOptions["faults"]) =>
    SqlClients.make({ connections, engine, pool, faults })
  const main = client(({ main }) => main, statementFaults)
  const pools = Layer.succeedContext(
    Context.make(PgClient.PgClient, main).pipe(
      Context.add(LeasePool, client(({ leases }) => leases, statementFaults))
    )
  )
  const index = Layer.succeed(PgClient.PgClient, client(({ main }) => main, indexFaults))
  const accounts = Layer.mergeAll(PgLedger.layer, PgApiKeys.layer, PgTransaction.layer).pipe(Layer.provide(pools))
  const records = Layer.provide(PgStore.layer, pools)
  const ports = Layer.mergeAll(accounts, records, Layer.provide(vectors, index))
  return {
    committed: mirror.committed,
    get now() {
      return now()
    },
    // Whoever commits has the only session: nobody else has anything locked then.
    isLocked: () => false,
    onCommit: (listener) => engine.onCommit(listener),
    down: (ms) => {
      kernel.mark(kernel.world, "note", "database", `down for ${ms} ms`)
      connections.down(ms)
    },
    ports: (others) => Layer.provideMerge(ports, Layer.succeedContext(others)),
    provide: (errand) => Effect.scoped(Effect.flatMap(Layer.build(accounts), (built) => Effect.provideContext(errand, built)))
  }
}

/** A process whose index cannot be opened yet is started again by whoever watches over it: here it tries again. */
const vectors = Layer.effectContext(
  Layer.build(PgVectorIndex.layer).pipe(
    // A transaction whose rollback finds no connection ends with a defect, as the driver has it.
    Effect.sandbox,
    Effect.retry(Schedule.spaced("100 millis")),
    Effect.orDie
  )
)
