/** Everything that a run starts: a database, a proxy for each process, the processes, and the model's side. */
import { Effect, type Scope } from "effect"
import * as Net from "node:net"
import { WorkspaceId } from "../src/domain/Ids.ts"
import { ApiKeys, KeyScope } from "../src/services/ApiKeys.ts"
import { Ledger } from "../src/services/Ledger.ts"
import * as Configuration from "../src/adapters/Configuration.ts"
import * as PgDatabase from "../src/adapters/PgDatabase.ts"
import * as PgMigrations from "../src/adapters/PgMigrations.ts"
import { storage } from "../src/storage.ts"
import { Redacted } from "effect"
import * as Database from "./database.ts"
import * as Journal from "./journal.ts"
import * as Link from "./link.ts"
import * as Member from "./member.ts"
import type { Place } from "./place.ts"
import * as Provider from "./provider.ts"

export const apis = ["api-1", "api-2"] as const
export const workers = ["worker-1", "worker-2", "worker-3"] as const

/** A worker that is silent for longer than this loses what it was doing. The shortest that the service takes. */
export const leaseMs = 3_000

export interface Tenant {
  readonly workspace: WorkspaceId
  readonly secret: string
}

export interface World {
  readonly database: Database.Database
  readonly links: ReadonlyMap<string, Link.Link>
  readonly members: ReadonlyMap<string, Member.Member>
  readonly provider: Provider.Provider
  /** The first has credit enough, the second runs out of it. */
  readonly tenants: readonly [Tenant, Tenant]
  readonly topUp: (credits: number, reference: string) => Effect.Effect<boolean>
}

/** Patient enough for a chaos, and no longer: what fails is to fail within the run. */
const settings = {
  PROVIDER: "openai",
  OPENAI_MODEL: "chaos",
  OPENAI_EMBEDDING_MODEL: "chaos",
  OPENAI_EMBEDDING_DIMENSIONS: "8",
  OPENAI_TIMEOUT_SECONDS: "6",
  WORKER_CONCURRENCY: "32",
  LEASE_SECONDS: String(leaseMs / 1_000),
  ATTEMPT_BOUND_SECONDS: "15",
  DRAIN_SECONDS: "1",
  SHUTDOWN_GRACE_SECONDS: "0",
  MAX_ATTEMPTS: "6",
  BACKOFF_BASE_MS: "50",
  BACKOFF_CAP_MS: "1000",
  RATE_LIMIT_MAX_AGE_SECONDS: "20",
  DATABASE_CONNECTIONS: "6",
  LOG_FORMAT: "json",
  LOG_LEVEL: "info"
}

const freePort = Effect.callback<number>((resume) => {
  const server = Net.createServer()
  server.listen(0, "127.0.0.1", () => {
    const { port } = server.address() as Net.AddressInfo
    server.close(() => resume(Effect.succeed(port)))
  })
})

export const make = Effect.fnUntraced(function*(seed: string, place: Place): Effect.fn.Return<World, never, Scope.Scope> {
  const database = yield* Database.make(place.path)
  const provider = yield* Provider.serve({ seed, leaseMs })
  yield* Effect.orDie(PgMigrations.run(PgDatabase.session(database.url(), "chaos")))
  yield* Journal.install(database, [...apis, ...workers])
  const config = yield* Effect.orDie(Configuration.load({}))
  const onDatabase = <A, E>(effect: Effect.Effect<A, E, ApiKeys | Ledger>) =>
    Effect.scoped(Effect.suspend(() => effect.pipe(Effect.provide(storage(config, database.url())))))

  const tenant = (name: string, credits: bigint) =>
    Effect.gen(function*() {
      const keys = yield* ApiKeys
      const workspace = WorkspaceId.make(name)
      yield* keys.makeWorkspace(workspace)
      yield* (yield* Ledger).grant(workspace, credits, "initial")
      const { secret } = yield* keys.make(workspace, "chaos", KeyScope.literals)
      return { workspace, secret: Redacted.value(secret) }
    })
  const tenants = yield* Effect.orDie(onDatabase(Effect.all([tenant("rich", 1_000_000n), tenant("poor", 60n)])))

  const links = new Map<string, Link.Link>()
  const members = new Map<string, Member.Member>()
  for (const name of [...apis, ...workers]) {
    const link = yield* Link.open(database.port)
    links.set(name, link)
    const env = {
      ...settings,
      DATABASE_URL: Redacted.value(database.urlAt(link.port, name)),
      OPENAI_BASE_URL: provider.baseUrl,
      OPENAI_API_KEY: name,
      INDELIBLE_API_KEY: `chaos-${"0".repeat(20)}`
    }
    const role = name.startsWith("api") ? "api" : "worker"
    members.set(name, yield* Member.make(place, { name, role, port: yield* freePort, env }))
  }
  return {
    database,
    links,
    members,
    provider,
    tenants,
    topUp: (credits, reference) =>
      onDatabase(Effect.flatMap(Ledger, (ledger) => ledger.grant(tenants[1].workspace, BigInt(credits), reference))).pipe(
        Effect.catchCause(() => Effect.succeed(false))
      )
  }
})
