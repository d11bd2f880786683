/** What only a database can get wrong about memories. */
import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer } from "effect"
import * as PgStore from "../../src/adapters/PgStore.ts"
import { contains } from "../../src/domain/Containment.ts"
import type { WorkspaceId } from "../../src/domain/Ids.ts"
import { Store } from "../../src/services/Store.ts"
import { metadata } from "../domain/arbitraries.ts"
import { PgTest } from "../postgres.ts"
import { add, added, remove, update, workspaceOf } from "../services/records.ts"

const open = (workspaceId: WorkspaceId) =>
  Effect.flatMap(PgClient.PgClient, (sql) => sql`insert into workspaces (workspace_id) values (${workspaceId})`)

const postgres = PgStore.layer.pipe(Layer.provideMerge(PgTest.layer))

layer(postgres, { excludeTestServices: true })("PgMemoryStore", (it) => {
  it.effect.prop(
    "the domain knows what JSON contains exactly as the database does",
    { left: metadata, right: metadata },
    ({ left, right }) =>
      Effect.gen(function*() {
        const sql = yield* PgClient.PgClient
        const pairs = [
          [left, right],
          [{ ...left, ...right }, right],
          [{ nested: [left, right] }, { nested: [right] }],
          [{ nested: left }, { nested: [left] }]
        ] as const
        for (const [one, other] of pairs) {
          const [row] = yield* sql<{ readonly holds: boolean }>`select ${sql.json(one)} @> ${sql.json(other)} as holds`
          assert.strictEqual(contains(one, other), row!.holds)
        }
      })
  )

  it.effect.each(["lock", "write"] as const)("%s takes its rows in one order, whatever order they come in", (how) =>
    Effect.gen(function*() {
      const sql = yield* PgClient.PgClient
      const { memories } = yield* Store
      const workspaceId = workspaceOf("orders")
      yield* open(workspaceId)
      const all = Array.from({ length: 9 }, (_, n) => added(workspaceId, `memory ${n}`))
      const shuffled = [7, 2, 8, 0, 4, 6, 1, 5, 3].map((place) => all[place]!)
      yield* Effect.forEach(shuffled, (memory) => memories.write([add(memory)]))
      const [held, blocked] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const holder = yield* Effect.forkChild(sql.withTransaction(Effect.gen(function*() {
        yield* memories.lock([all[4]!])
        yield* Deferred.succeed(held, undefined)
        yield* Deferred.await(blocked)
      })))
      yield* Deferred.await(held)
      const taker = yield* Effect.forkChild(
        how === "lock" ? memories.lock(shuffled) : memories.write(shuffled.map((memory) => update(memory, "changed")))
      )
      yield* Effect.repeat(
        sql`select from pg_stat_activity where cardinality(pg_blocking_pids(pid)) > 0 and query like '%memories%'`,
        { until: (rows) => rows.length > 0 }
      )
      const free = yield* sql<{ readonly text: string }>`select text from memories
        where workspace_id = ${workspaceId} order by id for no key update skip locked`
      assert.deepStrictEqual(free.map(({ text }) => text), ["memory 5", "memory 6", "memory 7", "memory 8"])
      yield* Deferred.succeed(blocked, undefined)
      yield* Fiber.join(holder)
      assert.strictEqual((yield* Fiber.join(taker)).length, 9)
    }))

  it.effect("nobody rewrites history", () =>
    Effect.gen(function*() {
      const sql = yield* PgClient.PgClient
      const { memories } = yield* Store
      const workspaceId = workspaceOf("history")
      yield* open(workspaceId)
      const memory = added(workspaceId, "as it was")
      yield* memories.write([add(memory)])
      for (
        const rewrite of [
          sql`update memory_history set text = 'as it never was' where memory_id = ${memory.id}::uuid`,
          sql`update memory_history set version = 2, text = null where memory_id = ${memory.id}::uuid`,
          sql`delete from memory_history where memory_id = ${memory.id}::uuid`
        ]
      ) assert.isTrue(Exit.isFailure(yield* Effect.exit(rewrite)))
      assert.deepStrictEqual((yield* memories.history(memory)).map(({ text }) => text), ["as it was"])
    }))

  it.effect("of a deleted memory no word is left in any table", () =>
    Effect.gen(function*() {
      const sql = yield* PgClient.PgClient
      const { memories } = yield* Store
      const workspaceId = workspaceOf("canary")
      yield* open(workspaceId)
      const memory = added(workspaceId, "canarytext one", { metadata: { canarykey: "canarytext" } })
      const second = update(memory, "canarytext two")
      yield* memories.write([add(memory)])
      yield* memories.write([second])
      yield* memories.write([remove(second.memory)])
      const tables = yield* sql<{ readonly name: string }>`select tablename as name from pg_tables where schemaname = 'public'`
      for (const { name } of tables) {
        assert.deepStrictEqual(yield* sql`select t from ${sql(name)} t where t::text ~ 'canary(text|key)'`, [], name)
      }
    }))
})
