/** Hints between two processes on one Postgres: quick while all is well, and no more than that. */
import { assert, describe, layer } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import * as PgDatabase from "../../src/adapters/PgDatabase.ts"
import * as PgQueue from "../../src/adapters/PgQueue.ts"
import { OperationId, WorkspaceId } from "../../src/domain/Ids.ts"
import { Queue, type WakeUp } from "../../src/services/Queue.ts"
import { PgTest } from "../postgres.ts"

/** The queue of a process of its own: its own pool, its own listener. */
const another = Effect.gen(function*() {
  const { url } = yield* PgTest
  const context = yield* Layer.buildWithMemoMap(
    PgQueue.layer.pipe(Layer.provide([PgDatabase.layer({ url }), SecureRandom.layerWebCrypto])),
    yield* Layer.makeMemoMap,
    yield* Effect.scope
  )
  return Context.get(context, Queue)
})

/** Waits for a hint of this kind; those that a new listener makes up on connecting do not count as `Changed`. */
const next = (hints: Effect.Effect<ReadonlyArray<WakeUp>>, kind: WakeUp["_tag"]) =>
  hints.pipe(
    Effect.map((wakeUps) => wakeUps.filter(({ _tag }) => _tag === kind)),
    Effect.repeat({ until: (wakeUps) => wakeUps.length > 0 })
  )

const listeners = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  return yield* sql<{ pid: number }>`select pid from pg_stat_activity
    where datname = current_database() and query ilike 'listen%'`
})

const changed: WakeUp = {
  _tag: "Changed",
  operations: Array.from({ length: 150 }, (_, n) => ({
    workspaceId: WorkspaceId.make("w".repeat(63)),
    id: OperationId.make(`01900000-0000-7000-8000-${String(n).padStart(12, "0")}`)
  }))
}

describe("PgQueue", () => {
  layer(PgTest.layer, { excludeTestServices: true })("on a real Postgres", (it) => {
    it.effect("a hint reaches the own process and another, whatever its length", () =>
      Effect.gen(function*() {
        const [here, there] = [yield* another, yield* another]
        const [own, other] = [yield* here.subscribe, yield* there.subscribe]
        yield* Effect.repeat(listeners, { until: (rows) => rows.length === 2 })
        yield* here.send([changed])
        const heard = (hints: typeof own) =>
          Effect.gen(function*() {
            const seen = new Set<string>()
            while (seen.size < 150) {
              for (const wakeUp of yield* next(hints, "Changed")) {
                if (wakeUp._tag === "Changed") wakeUp.operations.forEach(({ id }) => seen.add(id))
              }
            }
            return seen.size
          })
        assert.strictEqual(yield* heard(own), 150)
        assert.strictEqual(yield* heard(other), 150)
      }))

    it.effect("a listener whose connection dies comes back, and makes everybody look once", () =>
      Effect.gen(function*() {
        const sql = yield* PgClient.PgClient
        const [here, there] = [yield* another, yield* another]
        const other = yield* there.subscribe
        const before = yield* Effect.repeat(listeners, { until: (rows) => rows.length === 2 })
        yield* sql`select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and query ilike 'listen%'`
        const isNew = ({ pid }: { readonly pid: number }) => !before.some((row) => row.pid === pid)
        yield* Effect.repeat(listeners, { until: (rows) => rows.filter(isNew).length === 2 })
        yield* next(other, "Work")
        yield* here.send([changed])
        assert.isAbove((yield* next(other, "Changed")).length, 0)
      }))
  })
})
