/** Which key may do what. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ComeBackLater } from "../../src/domain/Refusal.ts"
import { get, good, json, patch, search } from "./asking.ts"
import { allScopes, memoryId, operationId, type Request, serve } from "./harness.ts"

const down = () => Effect.fail(new ComeBackLater({ reason: "overloaded" }))

describe("the scopes of a key", () => {
  const needs: ReadonlyArray<readonly [scope: string, request: Request]> = [
    ["memories:write", json(good)],
    ["memories:write", patch({ memory: "a" })],
    ["memories:write", { method: "DELETE", path: `/v1/memories/${memoryId}` }],
    ["memories:read", get("/v1/memories")],
    ["memories:read", get(`/v1/memories/${memoryId}`)],
    ["memories:read", get(`/v1/memories/${memoryId}/history`)],
    ["memories:read", search({ query: "tea" })],
    ["events:read", get("/v1/events")],
    ["events:read", get(`/v1/events/${operationId}`)],
    ["events:write", { method: "POST", path: `/v1/events/${operationId}/retry` }],
    ["events:write", { method: "POST", path: `/v1/events/${operationId}/cancel` }],
    ["events:write", { method: "DELETE", path: `/v1/events/${operationId}/input` }],
    ["usage:read", get("/v1/usage")],
    ["usage:read", get("/v1/usage/transfers")]
  ]
  it.live("each endpoint is closed to a key with every other scope, and opens to its own", () =>
    Effect.gen(function*() {
      const { send } = yield* serve({
        commands: { infer: down, update: down, delete: down },
        memories: { list: down, get: down, history: down, search: down },
        events: { list: down, get: down },
        retries: { retry: down, cancel: down, purgeInput: down },
        usage: { balances: down, transfers: down }
      })
      for (const [scope, request] of needs) {
        const others = allScopes.filter((other) => other !== scope).join(",")
        const closed = yield* send({ ...request, key: others })
        assert.strictEqual(closed.status, 403)
        assert.deepInclude(closed.json, { code: "forbidden_scope", required_scope: scope })
        const open = yield* send({ ...request, key: scope })
        assert.strictEqual(open.status, 503)
        assert.deepInclude(open.json, { code: "overloaded", retryable: true })
        assert.strictEqual(open.headers["retry-after"], "1")
      }
    }))

  it.live("a key with no scope may do nothing", () =>
    Effect.gen(function*() {
      const { send } = yield* serve()
      for (const [, request] of needs) assert.strictEqual((yield* send({ ...request, key: "none" })).status, 403)
    }))
})
