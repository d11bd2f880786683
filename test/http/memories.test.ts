/** What a caller sees of memories: receipts, replays, waits, pages, tags and search. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { MemoryId } from "../../src/domain/Ids.ts"
import { ComeBackLater, NotFound, VersionConflict } from "../../src/domain/Refusal.ts"
import { event, finishedEvent, memory, memoryId, operationId, receipt, serve, workspaceId } from "./harness.ts"

const add = { method: "POST", path: "/v1/memories", headers: { "idempotency-key": "k-1" } } as const
const body = { messages: [{ role: "user", content: "I like tea" }], user_id: "ada" }

describe("an inferred add", () => {
  it.live("is answered 202 with a receipt and the place of its event", () =>
    Effect.gen(function*() {
      const calls: Array<unknown> = []
      const { send } = yield* serve({
        commands: { infer: (...call) => Effect.sync(() => (calls.push(call), receipt)) }
      })
      const answer = yield* send({ ...add, body })
      assert.strictEqual(answer.status, 202)
      assert.deepStrictEqual(answer.json, {
        event_id: operationId,
        status: "pending",
        replayed: false,
        created_at: "2025-12-01T00:00:00.123Z",
        usage: { reserved: 2 }
      })
      assert.strictEqual(answer.headers.location, `/v1/events/${operationId}`)
      assert.strictEqual(answer.headers["retry-after"], "1")
      assert.isUndefined(answer.headers["idempotent-replayed"])
      assert.isUndefined(answer.headers["preference-applied"])
      assert.deepStrictEqual(calls, [[workspaceId, "k-1", {
        kind: "memory.infer",
        scope: { user_id: "ada" },
        messages: [{ role: "user", content: "I like tea" }],
        metadata: {},
        eventDate: null,
        instructions: null
      }]])
    }))

  it.live("that is replayed says so in a header and in the body, and is still 202", () =>
    Effect.gen(function*() {
      const { send } = yield* serve({
        commands: { infer: () => Effect.succeed({ ...receipt, status: "succeeded", replayed: true }) }
      })
      const answer = yield* send({ ...add, body })
      assert.strictEqual(answer.status, 202)
      assert.strictEqual(answer.headers["idempotent-replayed"], "true")
      assert.isTrue(answer.json.replayed)
      assert.strictEqual(answer.json.status, "succeeded")
      assert.isUndefined(answer.headers["retry-after"])
    }))

  it.live("with Prefer: wait waits for the terminal event and answers 202 with its status", () =>
    Effect.gen(function*() {
      const terminal = yield* Deferred.make<void>()
      const waited: Array<unknown> = []
      const { send } = yield* serve({
        commands: { infer: () => Effect.succeed(receipt) },
        events: {
          wait: (...call) => {
            waited.push(call)
            return Effect.andThen(Deferred.succeed(terminal, undefined), Effect.succeed(finishedEvent))
          }
        }
      })
      const answer = yield* send({ ...add, headers: { ...add.headers, prefer: "respond-async, wait=5" }, body })
      yield* Deferred.await(terminal)
      assert.strictEqual(answer.status, 202)
      assert.strictEqual(answer.json.status, "succeeded")
      assert.strictEqual(answer.headers["preference-applied"], "wait=5")
      assert.deepStrictEqual(waited, [[{ workspaceId, id: operationId }, 5]])
    }))

  it.live("with Prefer: wait is capped by the settings, and a preference that is not understood is ignored", () =>
    Effect.gen(function*() {
      const waited: Array<number> = []
      const { send } = yield* serve({
        commands: { infer: () => Effect.succeed(receipt) },
        events: { wait: (_ref, seconds) => Effect.sync(() => (waited.push(seconds), event)) }
      })
      const long = yield* send({ ...add, headers: { ...add.headers, prefer: "wait=3600" }, body })
      assert.strictEqual(long.headers["preference-applied"], "wait=30")
      const endless = yield* send({ ...add, headers: { ...add.headers, prefer: `wait=${"9".repeat(400)}` }, body })
      assert.strictEqual(endless.headers["preference-applied"], "wait=30")
      for (const prefer of ["wait=soon", "wait=-1", "handling=lenient", "await=3"]) {
        const ignored = yield* send({ ...add, headers: { ...add.headers, prefer }, body })
        assert.strictEqual(ignored.status, 202)
        assert.isUndefined(ignored.headers["preference-applied"])
      }
      assert.deepStrictEqual(waited, [30, 30])
    }))

  it.live("stays accepted when the wait for its event fails", () =>
    Effect.gen(function*() {
      const { send } = yield* serve({
        commands: { infer: () => Effect.succeed(receipt) },
        events: { wait: () => Effect.fail(new ComeBackLater({ reason: "outcome_unknown" })) }
      })
      const answer = yield* send({ ...add, headers: { ...add.headers, prefer: "wait=1" }, body })
      assert.strictEqual(answer.status, 202)
      assert.strictEqual(answer.json.status, "pending")
    }))

  it.live("takes a key in the quotes of a structured field as the same key", () =>
    Effect.gen(function*() {
      const keys: Array<unknown> = []
      const { send } = yield* serve({
        commands: { infer: (_workspace, key) => Effect.sync(() => (keys.push(key), receipt)) }
      })
      for (const key of ["k\"1", "\"k\\\"1\"", "\"plain\"", "plain", "x".repeat(255)]) {
        const answer = yield* send({ ...add, headers: { "idempotency-key": key }, body })
        assert.strictEqual(answer.status, 202)
      }
      assert.deepStrictEqual(keys, ["k\"1", "k\"1", "plain", "plain", "x".repeat(255)])
    }))
})

describe("a verbatim add", () => {
  it.live("is 201 with its records, and needs no key", () =>
    Effect.gen(function*() {
      const keys: Array<unknown> = []
      const { send } = yield* serve({
        commands: {
          add: (_workspace, key) => Effect.sync(() => (keys.push(key), { event: finishedEvent, replayed: false }))
        }
      })
      const answer = yield* send({ ...add, headers: {}, body: { ...body, infer: false } })
      assert.strictEqual(answer.status, 201)
      assert.deepStrictEqual(answer.json, {
        event_id: operationId,
        status: "succeeded",
        replayed: false,
        results: [{ id: memoryId, change: "add", version: 1, memory: "likes tea" }]
      })
      assert.strictEqual(answer.headers.location, `/v1/events/${operationId}`)
      assert.isUndefined(answer.headers["idempotent-replayed"])
      assert.deepStrictEqual(keys, [null])
    }))

  it.live("that is replayed is 200 and says so", () =>
    Effect.gen(function*() {
      const { send } = yield* serve({
        commands: { add: () => Effect.succeed({ event: finishedEvent, replayed: true }) }
      })
      const answer = yield* send({ ...add, body: { content: "likes tea", user_id: "ada", infer: false } })
      assert.strictEqual(answer.status, 200)
      assert.isTrue(answer.json.replayed)
      assert.strictEqual(answer.headers["idempotent-replayed"], "true")
    }))
})

describe("reading memories", () => {
  it.live("one memory comes with its version as the entity tag", () =>
    Effect.gen(function*() {
      const { send } = yield* serve({ memories: { get: () => Effect.succeed(memory) } })
      const answer = yield* send({ path: `/v1/memories/${memoryId}` })
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(answer.headers.etag, "\"3\"")
      assert.deepStrictEqual(answer.json, {
        id: memoryId,
        memory: "likes tea",
        scope: { user_id: "ada" },
        metadata: { topic: "drinks" },
        version: 3,
        source_event_id: operationId,
        event_date: null,
        created_at: "2025-12-01T00:00:00.123Z",
        updated_at: "2025-12-01T00:00:01.123Z"
      })
    }))

  it.live("a list passes every filter on, and its cursor continues after the last row it showed", () =>
    Effect.gen(function*() {
      const pages: Array<any> = []
      const { send } = yield* serve({
        memories: {
          list: (page) => Effect.sync(() => (pages.push(page), Array.from({ length: page.limit }, () => memory)))
        }
      })
      const filter = encodeURIComponent("{\"topic\":\"drinks\",\"n\":1}")
      const first = yield* send({ path: `/v1/memories?user_id=ada&agent_id=b%20c&metadata=${filter}&limit=2` })
      assert.strictEqual(first.status, 200)
      assert.strictEqual(first.json.data.length, 2)
      const second = yield* send({ path: `/v1/memories?cursor=${first.json.next_cursor}` })
      assert.strictEqual(second.json.data.length, 50)
      assert.deepStrictEqual(pages, [
        {
          workspaceId,
          scope: { user_id: "ada", agent_id: "b c" },
          metadata: { topic: "drinks", n: 1 },
          before: null,
          limit: 3
        },
        { workspaceId, scope: {}, metadata: {}, before: memoryId, limit: 51 }
      ])
    }))

  it.live("the last page has no cursor", () =>
    Effect.gen(function*() {
      const { send } = yield* serve({ memories: { list: () => Effect.succeed([memory]) } })
      const answer = yield* send({ path: "/v1/memories?limit=1" })
      assert.deepStrictEqual(Object.keys(answer.json), ["data", "next_cursor"])
      assert.isNull(answer.json.next_cursor)
    }))

  it.live("the history is one page, without texts once the memory is deleted", () =>
    Effect.gen(function*() {
      const entry = { memoryId, version: 1, change: "add", text: null, operationId, at: memory.createdAt } as const
      const { send } = yield* serve({
        memories: { history: () => Effect.succeed([entry, { ...entry, version: 2, change: "delete" }]) }
      })
      const answer = yield* send({ path: `/v1/memories/${memoryId}/history` })
      assert.deepStrictEqual(answer.json.data.map((row: any) => [row.version, row.change, row.memory, row.event_id]), [
        [1, "add", null, operationId],
        [2, "delete", null, operationId]
      ])
      assert.isNull(answer.json.next_cursor)
    }))

  it.live("a search answers hits with their scores, and says when vectors did not take part", () =>
    Effect.gen(function*() {
      const queries: Array<unknown> = []
      const { send } = yield* serve({
        memories: {
          search: (query) => {
            queries.push(query)
            return Effect.succeed({ hits: [{ memory, score: 0.5, similarity: null }], semantic: false })
          }
        }
      })
      const answer = yield* send({
        method: "POST",
        path: "/v1/memories/search",
        body: { query: "tea", user_id: "ada", metadata: { topic: "drinks" } }
      })
      assert.strictEqual(answer.status, 200)
      assert.isFalse(answer.json.semantic)
      assert.deepInclude(answer.json.data[0], { id: memoryId, memory: "likes tea", score: 0.5, similarity: null })
      assert.deepStrictEqual(queries, [
        { workspaceId, scope: { user_id: "ada" }, metadata: { topic: "drinks" }, query: "tea", limit: 10 }
      ])
    }))
})

describe("changing a memory", () => {
  const path = `/v1/memories/${memoryId}`
  const results = [{ id: memoryId, change: "update", version: 4, memory: "x" }] as const
  const done = { event: { ...finishedEvent, results } }

  it.live("passes on the version in If-Match, and answers with the tag of the new one", () =>
    Effect.gen(function*() {
      const calls: Array<unknown> = []
      const { send } = yield* serve({
        commands: { update: (...call) => Effect.sync(() => (calls.push(call), { ...done, replayed: false })) }
      })
      const edit = { method: "PATCH", path, body: { memory: "likes green tea" } }
      const answer = yield* send({ ...edit, headers: { "if-match": "\"3\"", "idempotency-key": "k" } })
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(answer.headers.etag, "\"4\"")
      assert.deepInclude(answer.json, { event_id: operationId, status: "succeeded", replayed: false })
      yield* send({ ...edit, headers: { "if-match": "*" } })
      yield* send({ ...edit, body: { metadata: {} } })
      const command = { kind: "memory.update", memoryId, text: "likes green tea", metadata: null, expectedVersion: 3 }
      assert.deepStrictEqual(calls, [
        [workspaceId, "k", command],
        [workspaceId, null, { ...command, expectedVersion: null }],
        [workspaceId, null, { ...command, text: null, metadata: {}, expectedVersion: null }]
      ])
    }))

  it.live("that is done already, by another command, is no replay; its tag is that of this memory among others", () =>
    Effect.gen(function*() {
      const other = MemoryId.make("019b0000-0000-8000-8000-00000000000b")
      const results = [
        { id: other, change: "add", version: 1, memory: "likes coffee" },
        { id: null, change: "none", version: null, memory: null, reason: "duplicate" },
        { id: memoryId, change: "delete", version: 7, memory: null }
      ] as const
      const { send } = yield* serve({
        commands: {
          delete: () => Effect.succeed({ event: { ...finishedEvent, results }, replayed: false, already: true })
        }
      })
      const answer = yield* send({ method: "DELETE", path, headers: { "idempotency-key": "fresh" } })
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(answer.headers.etag, "\"7\"")
      assert.isFalse(answer.json.replayed)
      assert.isUndefined(answer.headers["idempotent-replayed"])
      assert.notProperty(answer.json, "already")
    }))

  it.live("that another version met is 412 and names the current one", () =>
    Effect.gen(function*() {
      const { send } = yield* serve({ commands: { delete: () => Effect.fail(new VersionConflict({ current: 5 })) } })
      const answer = yield* send({ method: "DELETE", path, headers: { "if-match": "\"3\"" } })
      assert.strictEqual(answer.status, 412)
      assert.deepInclude(answer.json, { code: "version_conflict", current_version: 5, retryable: false })
    }))

  it.live("a deletion that is replayed says so; one of nothing is 404", () =>
    Effect.gen(function*() {
      let known = true
      const { send } = yield* serve({
        commands: {
          delete: () =>
            known
              ? Effect.succeed({ event: finishedEvent, replayed: true })
              : Effect.fail(new NotFound({ what: "memory" }))
        }
      })
      const replayed = yield* send({ method: "DELETE", path })
      assert.strictEqual(replayed.status, 200)
      assert.strictEqual(replayed.headers["idempotent-replayed"], "true")
      known = false
      const absent = yield* send({ method: "DELETE", path })
      assert.strictEqual(absent.status, 404)
      assert.strictEqual(absent.json.code, "not_found")
    }))
})
