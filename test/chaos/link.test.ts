/** The proxy in front of a real Postgres: what it cuts is cut there and nowhere else, and what it passes on is whole. */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Exit, Fiber, Queue, Redacted } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Link from "../../chaos/link.ts"
import { PgTest } from "../postgres.ts"

const linked = Effect.gen(function*() {
  const url = new URL(Redacted.value((yield* PgTest).url))
  const upstream = { port: Number(url.port) as number | null }
  const link = yield* Link.open(() => upstream.port)
  url.port = String(link.port)
  const client = PgClient.make({ url: Redacted.make(url.href), maxConnections: 1 }).pipe(Effect.provide(Reactivity.layer))
  return { link, client, upstream }
})

const insert = (sql: PgClient.PgClient, n: number) => sql.withTransaction(sql`insert into cut values (${n})`)

describe("a link", () => {
  layer(PgTest.layer, { excludeTestServices: true })("to a database", (it) => {
    it.effect("a commit that is cut before it arrives is rolled back, and one whose answer is cut stands", () =>
      Effect.gen(function*() {
        const direct = yield* PgClient.PgClient
        yield* direct`create table cut (n int)`
        const { client, link } = yield* linked
        const sql = yield* client
        yield* insert(sql, 1)

        link.cut("before-commit", { count: 1 })
        assert.isTrue(Exit.isFailure(yield* Effect.exit(insert(sql, 2))))
        link.cut("after-commit", { count: 1 })
        assert.isTrue(Exit.isFailure(yield* Effect.exit(insert(sql, 3))))
        yield* insert(sql, 4)
        assert.deepStrictEqual(yield* direct`select n from cut order by n`, [{ n: 1 }, { n: 3 }, { n: 4 }])

        link.cut("reply", { count: 1 })
        assert.isTrue(Exit.isFailure(yield* Effect.exit(sql`insert into cut values (5)`)))
        assert.deepStrictEqual(yield* direct`select n from cut where n = 5`, [{ n: 5 }])
        assert.deepStrictEqual(link.cuts, { "before-commit": 1, "after-commit": 1, reply: 1 })
      }).pipe(Effect.scoped))

    it.effect("where only money is cut, other commits pass, and after each cut one that moves money; nothing is once it is over", () =>
      Effect.gen(function*() {
        const direct = yield* PgClient.PgClient
        yield* direct`create table others (n int)`
        const { client, link } = yield* linked
        const sql = yield* client
        const put = (n: number) => sql`insert into others values (${n})`
        const move = sql`insert into transfers (workspace_id, kind, amount)
          select workspace_id, kind, amount from transfers where false`
        const other = (n: number) => Effect.exit(sql.withTransaction(put(n)))
        const money = (n: number) => Effect.exit(sql.withTransaction(Effect.andThen(put(n), move)))
        link.cut("before-commit", { count: 3, isOver: () => true })
        link.cut("before-commit", { count: 2, ofMoney: true })
        const exits = yield* Effect.all([other(1), money(2), money(3), other(4), money(5), money(6)])
        assert.deepStrictEqual(exits.map(Exit.isSuccess), [true, false, true, true, false, true])
        assert.deepStrictEqual(yield* direct`select n from others order by n`, [{ n: 1 }, { n: 3 }, { n: 4 }, { n: 6 }])
      }).pipe(Effect.scoped))

    it.effect("what it holds arrives later and whole, or breaks", () =>
      Effect.gen(function*() {
        const { client, link } = yield* linked
        const sql = yield* client
        yield* sql`select 1`
        link.hold()
        const late = yield* Effect.forkChild(sql`select repeat('x', 300000) as text`)
        link.release("deliver")
        const rows = yield* Fiber.join(late)
        assert.strictEqual((rows[0] as { text: string }).text.length, 300_000)

        link.hold()
        const broken = yield* Effect.forkChild(Effect.exit(sql`select 2`))
        yield* Effect.yieldNow
        link.release("break")
        yield* Fiber.join(broken)
        assert.deepStrictEqual(yield* sql`select 3 as n`, [{ n: 3 }])
      }).pipe(Effect.scoped))

    it.effect("a deaf link drops notifications and nothing else", () =>
      Effect.gen(function*() {
        const direct = yield* PgClient.PgClient
        const { client, link } = yield* linked
        const sql = yield* client
        const heard = yield* sql.listen("news")
        link.deafen(true)
        yield* direct`select pg_notify('news', 'lost')`
        yield* Effect.repeat(Effect.sync(() => link.dropped()), { until: (dropped) => dropped === 1 })
        link.deafen(false)
        yield* direct`select pg_notify('news', 'heard')`
        assert.strictEqual((yield* Queue.take(heard)).payload, "heard")
      }).pipe(Effect.scoped))

    it.effect("while the database is down nobody gets through, and a slow link is only slow", () =>
      Effect.gen(function*() {
        const { client, link, upstream } = yield* linked
        const there = upstream.port
        upstream.port = null
        assert.isTrue(Exit.isFailure(yield* Effect.exit(Effect.flatMap(client, (sql) => sql`select 1`))))
        upstream.port = there
        const sql = yield* client
        link.delay(15)
        assert.deepStrictEqual(yield* sql`select 1 as n`, [{ n: 1 }])
        link.heal()
        assert.deepStrictEqual(yield* sql`select 2 as n`, [{ n: 2 }])
      }).pipe(Effect.scoped))
  })
})

