/** Canaries in messages, keys, metadata of requests and the provider's errors: after it all, they sing nowhere. */
import { assert, describe, layer } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Effect, Redacted } from "effect"
import * as FakeOpenAi from "../fakeOpenAi.ts"
import { assertHealthy } from "../audit.ts"
import { PgTest } from "../postgres.ts"
import { type Answer, call, finished, start } from "./process.ts"

/** Everything in every table, as text. */
const dump = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const tables = yield* sql<{ name: string }>`select table_name as name from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE'`
  const contents = yield* Effect.forEach(tables, ({ name }) =>
    Effect.map(sql<{ row: string }>`select t::text as row from ${sql(name)} t`, (rows) => [
      name,
      rows.map(({ row }) => row).join("\n")
    ] as const))
  return Object.fromEntries(contents)
})

describe("privacy", () => {
  layer(PgTest.layer, { excludeTestServices: true })("the whole service", (it) => {
    it.effect("after success and after failure no table, log line or response holds a canary but the memory itself", () =>
      Effect.gen(function*() {
        const { url } = yield* PgTest
        const fake = yield* FakeOpenAi.serve
        const service = yield* start({
          DATABASE_URL: Redacted.value(url),
          PROVIDER: "openai",
          OPENAI_BASE_URL: `${fake.baseUrl.replace("/v1", "")}/host-canary/v1`,
          OPENAI_API_KEY: "provider-key-canary",
          OPENAI_MODEL: "fake",
          OPENAI_EMBEDDING_MODEL: "fake",
          OPENAI_EMBEDDING_DIMENSIONS: "8",
          BACKOFF_BASE_MS: "10",
          LOG_LEVEL: "debug"
        })
        const answers: Array<Answer> = []
        const ask = (...request: [method: string, path: string, options?: Parameters<typeof call>[3]]) =>
          Effect.tap(call(service, ...request), (answer) => Effect.sync(() => answers.push(answer)))
        const message = (content: string) => ({ messages: [{ role: "user", content, name: "name-canary" }], user_id: "ana" })
        const add = (key: string, content: string) =>
          ask("POST", "/v1/memories", {
            key,
            body: { ...message(content), instructions: "instructions-canary" }
          })

        // Two failures that quote canaries, then a success whose one fact is meant to be kept.
        const troubles = [
          FakeOpenAi.answer(500, { error: { message: "provider-error-canary" } }),
          FakeOpenAi.says("chatter-canary, and no facts at all"),
          FakeOpenAi.facts({ change: "add", text: "User keeps a stored-canary.", target: null })
        ]
        fake.script = (received) => received.url.includes("/embeddings") ? FakeOpenAi.honest() : troubles.shift()!
        const good = yield* add("key-canary-1", "I keep a raw-canary")
        const stored = yield* finished(service, good.body.event_id)
        assert.strictEqual(stored.outcome, "stored")

        // A failure for good, purged by its owner.
        fake.script = (received) =>
          received.url.includes("/embeddings")
            ? FakeOpenAi.honest()
            : FakeOpenAi.answer(401, { error: { message: "provider-error-canary", code: "canary" } })
        const bad = yield* add("key-canary-2", "I keep another raw-canary")
        assert.strictEqual((yield* finished(service, bad.body.event_id)).error.class, "provider_rejected")
        yield* ask("DELETE", `/v1/events/${bad.body.event_id}/input`)

        // Requests that are refused, each in its own way.
        yield* ask("POST", "/v1/memories", { key: "key-canary-3", body: { ...message("raw-canary"), "field-canary": 1 } })
        yield* ask("POST", "/v1/memories", { key: "key canary with spaces", body: message("raw-canary") })
        yield* ask("POST", "/v1/memories", { key: "key-canary-1", body: message("another raw-canary") })
        yield* ask("POST", "/v1/memories", { body: message("raw-canary") })
        yield* ask("GET", "/v1/memories/canary")
        yield* ask("GET", "/v1/events", { headers: { authorization: "Bearer token-canary" } })
        yield* ask("GET", "/v1/events?cursor=canary&status=canary")
        yield* ask("GET", `/v1/events/${good.body.event_id}`)
        yield* ask("GET", `/v1/events/${bad.body.event_id}`)
        yield* ask("GET", "/v1/events")
        yield* ask("GET", "/v1/usage/transfers")
        yield* service.terminate

        const tables = yield* dump
        const holders = Object.keys(tables).filter((name) => tables[name]!.includes("canary"))
        assert.deepStrictEqual(holders.toSorted(), ["memories", "memory_history"])
        const planted = /(raw|key|name|instructions|provider-error|provider-key|chatter|host|token)-canary/
        assert.notMatch(JSON.stringify(tables), planted)
        assert.notMatch(service.output(), /canary/)
        for (const { body, headers, text } of answers) {
          // A refusal names the field that it refuses, which is the caller's own word.
          const allowed = text.replaceAll("User keeps a stored-canary.", "").replaceAll("field-canary", "")
          assert.notMatch(allowed, /canary/, JSON.stringify(body))
          assert.notMatch(JSON.stringify([...headers]), /canary/)
        }
        assert.isAbove(answers.length, 10)
        yield* assertHealthy
      }))
  })
})
