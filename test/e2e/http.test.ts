/** What clients meet when they all come at once: real processes, real sockets, one real Postgres. */
import { assert, describe, layer } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Effect, Redacted } from "effect"
import * as FakeOpenAi from "../fakeOpenAi.ts"
import { assertHealthy } from "../audit.ts"
import { PgTest } from "../postgres.ts"
import { type Answer, call, finished, start } from "./process.ts"

const environment = Effect.gen(function*() {
  const { url } = yield* PgTest
  return { DATABASE_URL: Redacted.value(url), PROVIDER: "openai", ...openAi("http://127.0.0.1:9/v1") }
})

const openAi = (baseUrl: string) => ({
  OPENAI_BASE_URL: baseUrl,
  OPENAI_API_KEY: "unused",
  OPENAI_MODEL: "fake",
  OPENAI_EMBEDDING_MODEL: "fake",
  OPENAI_EMBEDDING_DIMENSIONS: "8"
})

const add = (content: string, extra: object = {}) => ({ messages: [{ role: "user", content }], user_id: "ana", ...extra })

const ids = (answers: ReadonlyArray<Answer>) => new Set(answers.map(({ body }) => body.event_id))

const statuses = (answers: ReadonlyArray<Answer>) =>
  Object.fromEntries([...Map.groupBy(answers, ({ status }) => status)].map(([status, all]) => [status, all.length]))

const times = <A>(count: number, f: (n: number) => Effect.Effect<A>) =>
  Effect.forEach(Array.from({ length: count }, (_, n) => n), f, { concurrency: "unbounded" })

describe("many clients at once", () => {
  layer(PgTest.layer, { excludeTestServices: true })("one API process", (it) => {
    it.effect("200 simultaneous first requests with one key: one operation, one reservation, 200 equal receipts", () =>
      Effect.gen(function*() {
        const api = yield* start(yield* environment, "api")
        const before = (yield* call(api, "GET", "/v1/usage")).body
        const answers = yield* times(200, () => call(api, "POST", "/v1/memories", { key: "same", body: add("I like tea") }))
        assert.deepStrictEqual(statuses(answers), { 202: 200 })
        assert.strictEqual(ids(answers).size, 1)
        assert.strictEqual(answers.filter(({ headers }) => headers.get("idempotent-replayed") === "true").length, 199)
        assert.strictEqual(new Set(answers.map(({ body }) => JSON.stringify({ ...body, replayed: null }))).size, 1)
        const after = (yield* call(api, "GET", "/v1/usage")).body
        assert.strictEqual(after.reserved - before.reserved, 2)

        const operations = yield* (yield* PgClient.PgClient)`select 1 from operations`
        assert.strictEqual(operations.length, 1)
        for (const other of [add("I like coffee"), add("I like tea", { infer: false }), add("I like tea", { app_id: "x" })]) {
          const conflict = yield* call(api, "POST", "/v1/memories", { key: "same", body: other })
          assert.strictEqual(conflict.status, 409)
          assert.strictEqual(conflict.body.code, "idempotency_conflict")
        }
        assert.deepStrictEqual((yield* call(api, "GET", "/v1/usage")).body, after)
        yield* assertHealthy
      }))
  })

  layer(PgTest.layer, { excludeTestServices: true })("two API processes on one Postgres", (it) => {
    it.effect("200 simultaneous first requests with one key, half to each, make one operation", () =>
      Effect.gen(function*() {
        const env = yield* environment
        const apis = [yield* start(env, "api"), yield* start(env, "api")]
        const answers = yield* times(200, (n) =>
          call(apis[n % 2]!, "POST", "/v1/memories", { key: "same", body: add("I like tea") }))
        assert.deepStrictEqual(statuses(answers), { 202: 200 })
        assert.strictEqual(ids(answers).size, 1)
        assert.strictEqual((yield* call(apis[0]!, "GET", "/v1/usage")).body.reserved, 2)
        yield* assertHealthy
      }))

    it.effect("the last credit goes to one of 50, the rest are told 402, and a refused key works after a top-up", () =>
      Effect.gen(function*() {
        const sql = yield* PgClient.PgClient
        const env = yield* environment
        const apis = [yield* start(env, "api"), yield* start(env, "api")]
        const { available } = (yield* call(apis[0]!, "GET", "/v1/usage")).body
        yield* times(Math.floor(available / 100_000), () => Effect.void)
        // The purse is emptied but for one reservation, as a charge would: through the ledger.
        yield* sql`insert into operations (workspace_id, id, kind, state, scope, lane, seq, ready, fair_tag, epoch, attempts,
            window_started_at, outcome, evidence, created_at, completed_at)
          select workspace_id, gen_random_uuid(), kind, 'succeeded', scope, lane, nextval('operation_seq'), false, 0, 0, 0,
            now(), 'stored', evidence, now(), now() from operations limit 1`
        yield* sql`with spent as (select workspace_id, id from operations where state = 'succeeded'), paid as (
            insert into authorizations (workspace_id, operation_id, no, state, reserved, charged, price)
            select workspace_id, id, 1, 'charged', ${available - 2}, ${available - 2},
              '{"policy":"infer-add","stored":2,"noMemory":2}' from spent returning *
          ) insert into transfers (workspace_id, kind, amount, operation_id, authorization_no)
          select workspace_id, kind, reserved, operation_id, no from paid, unnest(array['reserve', 'charge']) kind
          order by kind desc`
        const answers = yield* times(50, (n) =>
          call(apis[n % 2]!, "POST", "/v1/memories", { key: `last-${n}`, body: add("I like tea") }))
        assert.deepStrictEqual(statuses(answers), { 202: 1, 402: 49 })
        const refused = answers.findIndex(({ status }) => status === 402)
        assert.strictEqual(answers[refused]!.body.code, "insufficient_credit")
        assert.strictEqual((yield* call(apis[0]!, "GET", "/v1/usage")).body.available, 0)
        yield* sql`insert into transfers (workspace_id, kind, amount, reference) values ('default', 'grant', 10, 'top-up')`
        const again = yield* call(apis[0]!, "POST", "/v1/memories", { key: `last-${refused}`, body: add("I like tea") })
        assert.strictEqual(again.status, 202)
        assert.isFalse(again.body.replayed)
      }))
  })

  layer(PgTest.layer, { excludeTestServices: true })("an API and a worker in processes of their own", (it) => {
    it.effect("a caller that waits hears of the end, and finds what was stored", () =>
      Effect.gen(function*() {
        const fake = yield* FakeOpenAi.serve
        const env = { ...(yield* environment), ...openAi(fake.baseUrl) }
        const api = yield* start(env, "api")
        yield* start(env, "worker")
        const waited = yield* call(api, "POST", "/v1/memories", {
          key: "waits",
          body: add("I play the cello"),
          headers: { prefer: "wait=20" }
        })
        assert.strictEqual(waited.status, 202)
        assert.strictEqual(waited.body.status, "succeeded")
        assert.strictEqual(waited.headers.get("preference-applied"), "wait=20")
        const event = yield* finished(api, waited.body.event_id)
        assert.deepStrictEqual(event.results.map(({ memory }: { memory: string }) => memory), ["I play the cello"])
        const found = yield* call(api, "POST", "/v1/memories/search", { body: { query: "cello", user_id: "ana" } })
        assert.strictEqual(found.body.data[0].memory, "I play the cello")
        const replay = yield* call(api, "POST", "/v1/memories", { key: "waits", body: add("I play the cello") })
        assert.deepInclude(replay.body, { event_id: waited.body.event_id, status: "succeeded", replayed: true })
        yield* assertHealthy
      }))
  })
})
