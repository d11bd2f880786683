/** The whole service on a fresh database of a real Postgres, with a scripted provider; workers come and go as a test says. */
import { PgClient } from "@effect/sql-pg"
import { Context, Duration, Effect, Exit, Layer, Scope } from "effect"
import { SecureRandom } from "effect/crypto"
import * as PgApiKeys from "../src/adapters/PgApiKeys.ts"
import * as PgLedger from "../src/adapters/PgLedger.ts"
import * as PgQueue from "../src/adapters/PgQueue.ts"
import * as PgStore from "../src/adapters/PgStore.ts"
import * as PgTransaction from "../src/adapters/PgTransaction.ts"
import * as PgVectorIndex from "../src/adapters/PgVectorIndex.ts"
import { type AddBody, IdempotencyKey, normaliseAdd } from "../src/domain/Command.ts"
import { OperationId, WorkspaceId } from "../src/domain/Ids.ts"
import { ApiKeys } from "../src/services/ApiKeys.ts"
import { Commands } from "../src/services/Commands.ts"
import { type Event, Events } from "../src/services/Events.ts"
import { Ledger } from "../src/services/Ledger.ts"
import type { Queue } from "../src/services/Queue.ts"
import * as Programs from "../src/services/Programs.ts"
import { defaultSettings, Settings, type SettingsShape } from "../src/services/Settings.ts"
import { PgTest } from "./postgres.ts"
import * as Lossy from "./lossy.ts"
import * as Mortal from "./mortal.ts"
import * as Scripted from "./scripted.ts"

/** Short enough for tests that wait for a lease to expire, long enough that nothing expires by accident. */
export const testSettings: SettingsShape = {
  ...defaultSettings,
  lease: Duration.millis(1_500),
  fenceMargin: Duration.millis(300),
  pollInterval: Duration.millis(50),
  repairInterval: Duration.millis(200),
  drainTimeout: Duration.millis(200),
  retry: { ...defaultSettings.retry, backoffBaseMs: 20, backoffCapMs: 100 },
  projectionBackoffBaseMs: 20,
  projectionBackoffCapMs: 100
}

const ports = Layer.mergeAll(
  PgStore.layer,
  PgLedger.layer,
  PgApiKeys.layer,
  Lossy.transactions.pipe(Layer.provide(PgTransaction.layer), Layer.provideMerge(Lossy.Losses.layer))
)

/** Everything but workers. Each build has a database of its own. A queue of the test's own may take the place of ours. */
export const layer = (settings: SettingsShape = testSettings, queue?: Layer.Layer<Queue>) =>
  Programs.api.pipe(
    Layer.provideMerge(Scripted.fallibleIndex.pipe(Layer.provide(PgVectorIndex.layer))),
    Layer.provideMerge(Scripted.provider),
    Layer.provideMerge(Scripted.Script.layer),
    Layer.provideMerge(Layer.mergeAll(ports, queue ?? PgQueue.layer)),
    Layer.provideMerge(SecureRandom.layerWebCrypto),
    Layer.provideMerge(PgTest.layer),
    Layer.provideMerge(Layer.succeed(Settings, settings))
  )

export type World = Layer.Success<ReturnType<typeof layer>>

/** A worker process that can be stopped (drains) or killed (does not). */
export interface RunningWorker {
  readonly stop: Effect.Effect<void>
  readonly kill: Effect.Effect<void>
  readonly life: Mortal.Life["Service"]
}

/** Starts a worker that lives until it is stopped or the test ends. */
export const startWorker = (settings?: Partial<SettingsShape>): Effect.Effect<RunningWorker, never, World | Scope.Scope> =>
  Effect.gen(function*() {
    const world = yield* Effect.context<World>()
    const scope = yield* Scope.make()
    yield* Effect.addFinalizer((exit) => Scope.close(scope, exit))
    const current = yield* Settings
    // A memo map of its own: layers are shared by default, and two workers that share everything are one worker.
    const context = yield* Layer.buildWithMemoMap(
      Programs.worker.pipe(
        Layer.provide(Mortal.ports),
        Layer.provideMerge(Mortal.Life.layer),
        Layer.provide(Layer.succeed(Settings, { ...current, ...settings })),
        Layer.provide(Layer.succeedContext(world))
      ),
      yield* Layer.makeMemoMap,
      scope
    )
    const life = Context.get(context, Mortal.Life)
    return { stop: Scope.close(scope, Exit.void), kill: life.end, life }
  }) as Effect.Effect<RunningWorker, never, World | Scope.Scope>

export const workspace = WorkspaceId.make("tests")

/** Makes the workspace of a test, with this much credit. */
export const open = Effect.fnUntraced(function*(credits: bigint = 1_000n, id: WorkspaceId = workspace) {
  yield* (yield* ApiKeys).makeWorkspace(id)
  yield* (yield* Ledger).grant(id, credits, "initial")
  return id
})

export const key = (text: string): IdempotencyKey => IdempotencyKey.make(text)

export const body = (content: string, user = "ana"): AddBody => ({ messages: [{ role: "user", content }], user_id: user })

/** Accepts one inferred add. */
export const accept = Effect.fnUntraced(function*(name: string, add: AddBody = body(name), in_: WorkspaceId = workspace) {
  const commands = yield* Commands
  return yield* commands.infer(in_, key(name), normaliseAdd(add))
})

/** Waits until an operation has ended, without a limit of its own. */
export const finished = Effect.fnUntraced(function*(id: OperationId, in_: WorkspaceId = workspace) {
  const events = yield* Events
  return yield* Effect.repeat(events.wait({ workspaceId: in_, id }, 30), {
    until: (event) => event.status === "succeeded" || event.status === "failed"
  })
})

/** Ends every lease by the database clock, as time would. The worker that holds it is not told. */
export const expireLeases = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  yield* sql`update operations set lease_expires_at = now() - interval '1 second' where state = 'running'`
}).pipe(Effect.orDie)

/** How many rows a table holds. */
export const count = Effect.fnUntraced(function*(table: string) {
  const sql = yield* PgClient.PgClient
  const rows = yield* sql<{ n: number }>`select count(*)::int as n from ${sql(table)}`
  return rows[0]!.n
}, Effect.orDie)

export const days = Duration.days

/** Runs something while nobody else can touch the account of the test's workspace. */
export const holdingAccount = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function*() {
    const sql = yield* PgClient.PgClient
    return yield* sql.withTransaction(
      // Only the lock is part of the transaction: what runs beside it has connections of its own.
      Effect.andThen(
        sql`select 1 from accounts where workspace_id = ${workspace} for update`,
        Effect.flatMap(Effect.context<R>(), (context) => Effect.provideContext(effect, withoutTransaction(context, sql)))
      )
    )
  }).pipe(Effect.catchTag("SqlError", Effect.die))

const withoutTransaction = <R>(context: Context.Context<R>, sql: PgClient.PgClient): Context.Context<R> =>
  Context.omit(sql.transactionService)(context) as Context.Context<R>

/** Everything in every table, as text: what a canary would be found in. */
export const dump = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const tables = yield* sql<{ name: string }>`select table_name as name from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE' order by table_name`
  const contents = yield* Effect.forEach(tables, ({ name }) =>
    Effect.map(sql<{ row: string }>`select t::text as row from ${sql(name)} t order by 1`, (rows) => [
      name,
      rows.map(({ row }) => row)
    ] as const))
  return Object.fromEntries(contents)
}).pipe(Effect.orDie)

/** Waits until the event is as wanted. */
export const untilEvent = Effect.fnUntraced(function*(id: OperationId, wanted: (event: Event) => boolean) {
  const events = yield* Events
  return yield* Effect.repeat(events.get({ workspaceId: workspace, id }), { until: wanted })
})

/** Waits until an operation has ended and everything it stored is in the vector index. */
export const projected = (id: OperationId) =>
  Effect.andThen(finished(id), untilEvent(id, ({ projection }) => projection === "ready" || projection === "none"))
