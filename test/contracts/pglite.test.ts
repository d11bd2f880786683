/** The adapters of production keep their promises on PGlite, where everybody shares one session. */
import { PgClient } from "@effect/sql-pg"
import { type Context, Effect, Exit, Layer, Scope } from "effect"
import { SecureRandom } from "effect/crypto"
import { afterAll } from "vitest"
import * as PgQueue from "../../src/adapters/PgQueue.ts"
import * as PgVectorIndex from "../../src/adapters/PgVectorIndex.ts"
import * as PgVectorIndexHnsw from "../../src/adapters/PgVectorIndexHnsw.ts"
import { open, pglite } from "../adapters/pgPorts.ts"
import { PGliteTest, wires } from "../postgres.ts"
import * as Models from "../services/models.ts"
import { dimension } from "../services/vectorIndexSuite.ts"
import { defaultSettings, Settings } from "../../src/services/Settings.ts"
import { keepPorts, keepQueue } from "./matrix.ts"

const model = Models.layer("contracts", dimension)
/** Nobody waits where nothing else is open. */
const blocked = Effect.die(new Error("a transaction waits for another in the only session"))

// One database for all of them: it takes seconds to make.
const scope = Scope.makeUnsafe()
const ports = PgVectorIndex.layer.pipe(Layer.provideMerge(pglite), Layer.provide(model))
let built: Promise<Context.Context<Layer.Success<typeof ports>>> | undefined
const shared = Layer.effectContext(
  Effect.promise(() => built ??= Effect.runPromise(Layer.buildWithScope(ports, scope)))
)
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

/** pgvector is there to be used: on a real installation an operator, or this service, makes it so. */
const extension = Layer.effectDiscard(Effect.flatMap(PgClient.PgClient, (sql) => sql`create extension vector`))
const withVector = extension.pipe(Layer.provideMerge(pglite))
/** Even the smallest scope is searched by walking the graph, which the planner would leave alone for so few rows. */
const alwaysWalk = Layer.merge(
  Layer.succeed(Settings, { ...defaultSettings, exactSearchMax: 0 }),
  Layer.effectDiscard(Effect.flatMap(PgClient.PgClient, (sql) => sql`set enable_sort = off`)).pipe(Layer.provideMerge(withVector))
)
const hnsw = PgVectorIndexHnsw.layer

/** Whoever listens and whoever notifies are two connections to the one session, in which a statement has one name. */
const connections = Layer.unwrap(Effect.map(PGliteTest, (server) =>
  PgClient.layer({ stream: wires(server), username: "postgres", database: "postgres", maxConnections: 2, prepare: false })))

keepPorts("PGlite", { ports: shared, open, blocked })
keepPorts("pgvector", { ports: hnsw.pipe(Layer.provideMerge(withVector), Layer.provide(model)), open, blocked })
keepPorts("pgvector by its graph", { ports: hnsw.pipe(Layer.provideMerge(alwaysWalk), Layer.provide(model)), open, blocked })
keepQueue("PGlite", PgQueue.layer.pipe(
  Layer.provide([connections, SecureRandom.layerWebCrypto]),
  Layer.provide(PGliteTest.layer)
))
