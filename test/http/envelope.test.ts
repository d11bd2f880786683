/** What every request has: an id, one log line without anything that was sent, and an answer that nobody stores. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ComeBackLater, NotFound } from "../../src/domain/Refusal.ts"
import { type LogLine, memory, memoryId, receipt, serve } from "./harness.ts"

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const requestLines = (logs: ReadonlyArray<LogLine>) =>
  logs.filter((line) => line.message === "request").map((line) => line.annotations)

describe("every answer", () => {
  it.live("has a request id and is stored by nobody, whatever its status", () =>
    Effect.gen(function*() {
      const { send } = yield* serve({
        memories: { get: () => Effect.succeed(memory), list: () => Effect.die("broken") },
        events: { list: () => Effect.fail(new ComeBackLater({ reason: "overloaded" })) }
      })
      const statuses: Array<number> = []
      for (
        const request of [
          { path: `/v1/memories/${memoryId}` },
          { path: `/v1/memories/${memoryId}`, method: "HEAD" },
          { path: "/healthz" },
          { path: "/readyz" },
          { path: "/openapi.json" },
          { path: "/docs" },
          { path: "/nowhere" },
          { path: "/healthz", method: "POST" },
          { path: "/v1/memories?limit=0" },
          { path: "/v1/memories", method: "POST", body: "{" },
          { path: "/v1/usage", key: null },
          { path: "/v1/usage", key: "none" },
          { path: "/v1/memories" },
          { path: "/v1/events" }
        ]
      ) {
        const answer = yield* send(request)
        statuses.push(answer.status)
        assert.match(answer.headers["x-request-id"]!, uuidV7)
        assert.strictEqual(answer.headers["cache-control"], "no-store")
      }
      assert.deepStrictEqual(statuses, [200, 200, 200, 200, 200, 200, 404, 405, 400, 400, 401, 403, 500, 503])
    }))

  it.live("repeats a valid request id, and gives a new one instead of any other", () =>
    Effect.gen(function*() {
      const { logs, send } = yield* serve()
      const echoed = (id: string) =>
        send({ path: "/healthz", headers: { "x-request-id": id } }).pipe(
          Effect.map(({ headers }) => headers["x-request-id"])
        )
      assert.strictEqual(yield* echoed("req_1-A"), "req_1-A")
      assert.strictEqual(yield* echoed("x".repeat(64)), "x".repeat(64))
      for (const id of ["", "a b", "x".repeat(65), "caf\u00e9", "a,b", "<script>"]) {
        assert.match((yield* echoed(id))!, uuidV7)
      }
      assert.strictEqual(requestLines(logs)[0]!.request_id, "req_1-A")
    }))

  it.live("to HEAD has the headers of GET and no body", () =>
    Effect.gen(function*() {
      const { send } = yield* serve({ memories: { get: () => Effect.succeed(memory) } })
      const answer = yield* send({ method: "HEAD", path: `/v1/memories/${memoryId}` })
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(answer.headers.etag, "\"3\"")
      assert.strictEqual(answer.text, "")
    }))
})

describe("the log", () => {
  it.live("has one line for each request: the template of its route, never its path, query, headers or body", () =>
    Effect.gen(function*() {
      const canary = "canary-19d2"
      const { logs, send } = yield* serve({
        commands: { infer: () => Effect.as(Effect.logInfo("accepted"), receipt) },
        memories: { list: () => Effect.succeed([]), get: () => Effect.fail(new NotFound({ what: "memory" })) }
      })
      yield* send({
        method: "POST",
        path: "/v1/memories",
        headers: { "idempotency-key": canary, "x-request-id": "r1", "user-agent": canary },
        body: { content: canary, user_id: canary }
      })
      yield* send({ path: `/v1/memories?user_id=${canary}`, headers: { "x-request-id": "r2" } })
      yield* send({ path: `/v1/memories/${memoryId}`, headers: { "x-request-id": "r3" } })
      yield* send({ path: `/${canary}`, key: null, headers: { "x-request-id": "r4" } })
      yield* send({ path: "/v1/usage", key: canary, headers: { "x-request-id": "r5" } })
      const lines = requestLines(logs).map(({ duration_ms, ...line }) => {
        assert.isAbove(duration_ms as number, 0)
        return line
      })
      const who = { workspace_id: "acme", api_key_id: "abcdefghijkl" }
      assert.deepStrictEqual(lines, [
        { request_id: "r1", method: "POST", route: "/v1/memories", status: 202, ...who },
        { request_id: "r2", method: "GET", route: "/v1/memories", status: 200, ...who },
        { request_id: "r3", method: "GET", route: "/v1/memories/:id", status: 404, ...who },
        { request_id: "r4", method: "GET", route: "unmatched", status: 404 },
        { request_id: "r5", method: "GET", route: "/v1/usage", status: 401 }
      ])
      const inner = logs.find((line) => line.message === "accepted")
      assert.strictEqual(inner?.annotations.request_id, "r1")
      assert.notInclude(JSON.stringify(logs), canary)
    }))

  it.live("names a defect by its class and its places in the code, once, and never by its text", () =>
    Effect.gen(function*() {
      const canary = "canary-c0de"
      class Broken extends Error {
        override readonly name = "Broken"
      }
      const { logs, send } = yield* serve({
        memories: {
          get: () => {
            const message = `${canary}\n    at fake (src/${canary}.ts:1:1)`
            return Effect.die(new Broken(message, { cause: new TypeError(canary) }))
          }
        }
      })
      const answer = yield* send({ path: `/v1/memories/${memoryId}` })
      assert.strictEqual(answer.status, 500)
      assert.deepInclude(answer.json, { code: "internal", retryable: true, request_id: answer.headers["x-request-id"] })
      assert.notInclude(answer.text, "Broken")
      const errors = logs.filter((line) => line.level === "Error")
      assert.strictEqual(errors.length, 1)
      assert.strictEqual(errors[0]!.annotations.request_id, answer.headers["x-request-id"])
      assert.match(JSON.stringify(errors[0]!.annotations.defect), /Die Broken .*:\d+.* caused by TypeError/)
      assert.notInclude(JSON.stringify(logs), canary)
    }))
})

describe("an answer that cannot be encoded", () => {
  it.live("is an internal error, and its text stays out of the answer and the log", () =>
    Effect.gen(function*() {
      const canary = "canary-e4c0"
      const { logs, send } = yield* serve({
        memories: { get: () => Effect.succeed({ ...memory, version: canary as unknown as number }) }
      })
      const answer = yield* send({ path: `/v1/memories/${memoryId}` })
      assert.strictEqual(answer.status, 500)
      assert.strictEqual(answer.json.code, "internal")
      assert.notInclude(answer.text + JSON.stringify(logs), canary)
    }))
})
