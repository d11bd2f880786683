/** The operator's command line, on a database and beside a running service. */
import { assert, describe, layer } from "@effect/vitest"
import { PgClient } from "@effect/sql-pg"
import { Effect, Redacted } from "effect"
import { digest } from "../../src/domain/Digest.ts"
import { PgTest } from "../postgres.ts"
import { apiKey, call, run, start } from "./process.ts"

describe("npm run admin", () => {
  layer(PgTest.layer, { excludeTestServices: true })("on a database", (it) => {
    it.effect("makes a workspace with a key and credit that work at once, and a revoked key works no more", () =>
      Effect.gen(function*() {
        const { url } = yield* PgTest
        const env = { DATABASE_URL: Redacted.value(url) }
        const admin = (...args: ReadonlyArray<string>) => run(["admin", ...args], env)
        const api = yield* start({ ...env, PROVIDER: "local" }, "api")

        assert.include((yield* admin("workspace", "make", "acme")).output, "Made workspace acme")
        assert.include((yield* admin("workspace", "make", "acme")).output, "exists already")
        const made = yield* admin("key", "make", "acme", "--label", "ci", "--scope", "memories:write", "--scope", "events:read")
        const [, id] = /^([0-9a-z]{12}) {2}ci {2}memories:write,events:read/m.exec(made.output) ?? []
        const [, secret] = /shown this once: (\S+)/.exec(made.output) ?? []
        assert.isString(id)
        const headers = { authorization: `Bearer ${secret}` }
        const body = { content: "I like tea", user_id: "ana" }

        assert.strictEqual((yield* call(api, "POST", "/v1/memories", { key: "k", body, headers })).status, 402)
        const granted = yield* admin("credit", "grant", "acme", "10", "--reference", "invoice-1")
        assert.include(granted.output, "available 10, reserved 0, consumed 0, issued 10")
        const accepted = yield* call(api, "POST", "/v1/memories", { key: "k", body, headers })
        assert.strictEqual(accepted.status, 202)
        assert.strictEqual((yield* call(api, "GET", "/v1/usage", { headers })).status, 403)

        const shown = JSON.parse((yield* admin("operation", "show", "acme", accepted.body.event_id)).output)
        assert.deepInclude(shown, { id: accepted.body.event_id, status: "pending", type: "memory.infer" })
        assert.notInclude(JSON.stringify(shown), "tea")
        assert.match(shown.createdAt, /^\d{4}-\d\d-\d\dT/)

        assert.include((yield* admin("key", "list", "acme")).output, `${id}  ci`)
        assert.include((yield* admin("key", "revoke", "acme", id!)).output, "revoked ")
        assert.strictEqual((yield* call(api, "GET", "/v1/events", { headers })).status, 401)
        const rows = yield* (yield* PgClient.PgClient)`select * from api_keys`
        assert.notInclude(JSON.stringify(rows), secret!)
        assert.notInclude(JSON.stringify(rows), apiKey)
      }))

    it.effect("a reference grants once, whatever is said the second time; a new key tells of bootstrap keys", () =>
      Effect.gen(function*() {
        const { url } = yield* PgTest
        const admin = (...args: ReadonlyArray<string>) => run(["admin", ...args], { DATABASE_URL: Redacted.value(url) })
        yield* admin("workspace", "make", "bona")
        yield* admin("credit", "grant", "bona", "10", "--reference", "invoice-1")
        const repeated = yield* admin("credit", "grant", "bona", "10", "--reference", "invoice-1")
        assert.strictEqual(repeated.code, 0)
        assert.match(repeated.output, /^Already granted: 10 credits for reference "invoice-1"\.\navailable 10, /)
        assert.deepStrictEqual(yield* admin("credit", "grant", "bona", "11", "--reference", "invoice-1"), {
          code: 1,
          output: "indelible admin: reference \"invoice-1\" granted 10 credits before, not 11: nothing was granted. " +
            "A grant of its own needs a reference of its own.\n"
        })
        yield* (yield* PgClient.PgClient)`insert into api_keys (workspace_id, id, secret_hash, label, scopes)
          values ('bona', 'abcdefghijkl', repeat('a', 64), 'bootstrap', '{}')`
        const another = yield* admin("key", "make", "bona", "--label", "ci")
        assert.include(another.output, "npm run admin -- key revoke bona abcdefghijkl\n")
      }))

    it.effect("a workspace is issued at most what JSON can say: the grant beyond is refused, and usage is answered", () =>
      Effect.gen(function*() {
        const { url } = yield* PgTest
        const env = { DATABASE_URL: Redacted.value(url) }
        const admin = (...args: ReadonlyArray<string>) => run(["admin", ...args], env)
        const grant = (amount: string, reference: string) => admin("credit", "grant", "crassus", amount, "--reference", reference)
        const api = yield* start({ ...env, PROVIDER: "local" }, "api")
        yield* admin("workspace", "make", "crassus")
        const [, secret] = /shown this once: (\S+)/.exec((yield* admin("key", "make", "crassus")).output) ?? []
        const usage = call(api, "GET", "/v1/usage", { headers: { authorization: `Bearer ${secret}` } })
        yield* (yield* PgClient.PgClient)`insert into transfers (workspace_id, kind, amount, reference)
          values ('crassus', 'grant', 9007199254740000, 'earlier')`
        assert.deepStrictEqual(yield* grant("992", "beyond"), {
          code: 1,
          output: "indelible admin: workspace crassus was issued 9007199254740000 credits, and may be issued 9007199254740991 " +
            "in all: nothing was granted\n"
        })
        assert.strictEqual((yield* grant("991", "the rest")).code, 0)
        const answer = yield* usage
        assert.strictEqual(answer.status, 200)
        assert.strictEqual(answer.body.issued, Number.MAX_SAFE_INTEGER)
      }))

    it.effect("a reference and a label have at most 255 characters, and more never reaches the database", () =>
      Effect.gen(function*() {
        const { url } = yield* PgTest
        const admin = (...args: ReadonlyArray<string>) => run(["admin", ...args], { DATABASE_URL: Redacted.value(url) })
        const longest = "\u20ac".repeat(255)
        const long = Array.from({ length: 100 }, (_, n) => digest("admin", String(n))).join("")
        yield* admin("workspace", "make", "dido")
        for (const name of [`${longest}x`, long]) {
          for (const args of [["credit", "grant", "dido", "5", "--reference", name], ["key", "make", "dido", "--label", name]]) {
            const refused = yield* admin(...args)
            assert.strictEqual(refused.code, 1)
            assert.include(refused.output, "must be at most 255 characters")
            assert.notInclude(refused.output, "the database")
          }
        }
        assert.include((yield* admin("key", "make", "dido", "--label", "two\nlines")).output, "must be one line")
        assert.strictEqual((yield* admin("key", "make", "dido", "--label", longest)).code, 0)
        assert.include((yield* admin("credit", "grant", "dido", "5", "--reference", longest)).output, "available 5,")
      }))

    it.effect("what does not exist, or cannot be, is one line and an exit code", () =>
      Effect.gen(function*() {
        const { url } = yield* PgTest
        const env = { DATABASE_URL: Redacted.value(url) }
        const admin = (...args: ReadonlyArray<string>) => run(["admin", ...args], env)
        assert.deepStrictEqual(yield* admin("key", "list", "nobody"), {
          code: 1,
          output: "indelible admin: there is no such workspace\n"
        })
        assert.strictEqual((yield* admin("workspace", "make", "Not A Name")).code, 1)
        assert.strictEqual((yield* admin("credit", "grant", "nobody", "-5", "--reference", "x")).code, 1)
        const nameless = yield* admin("credit", "grant", "nobody", "5", "--reference", "")
        assert.include(nameless.output, "must be a name that is not empty")
        assert.strictEqual(nameless.code, 1)
        assert.deepStrictEqual(yield* admin("operation", "show", "nobody", "01900000-0000-7000-8000-000000000000"), {
          code: 1,
          output: "indelible admin: there is no such event\n"
        })
      }))
  })
})

describe("the embedding model changes", () => {
  layer(PgTest.layer, { excludeTestServices: true })("under a database", (it) => {
    it.effect("the start is refused in one line before anything is written, until the index is reset", () =>
      Effect.gen(function*() {
        const { url } = yield* PgTest
        const sql = yield* PgClient.PgClient
        const model = (dimensions: string) => ({
          DATABASE_URL: Redacted.value(url),
          PROVIDER: "openai",
          OPENAI_BASE_URL: "http://127.0.0.1:9/v1",
          OPENAI_MODEL: "fake",
          OPENAI_EMBEDDING_MODEL: "fake",
          OPENAI_EMBEDDING_DIMENSIONS: dimensions
        })
        yield* Effect.scoped(start(model("8"), "worker"))
        const refused = yield* run(["--role", "worker"], model("16"))
        assert.strictEqual(refused.code, 1)
        assert.match(refused.output.trim().split("\n").at(-1)!, /^indelible: .*reset the index \(npm run admin -- index reset\)/)
        assert.deepStrictEqual(yield* sql`select dimension from vector_meta`, [{ dimension: 8 }])
        assert.strictEqual((yield* run(["admin", "index", "reset"], model("16"))).code, 0)
        yield* Effect.scoped(start(model("16"), "worker"))
        assert.deepStrictEqual(yield* sql`select dimension from vector_meta`, [{ dimension: 16 }])
      }))
  })
})
