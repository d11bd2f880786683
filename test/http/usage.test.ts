/** What a caller sees of money, and what a probe sees of the process. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Timestamp } from "../../src/domain/Ids.ts"
import { createdAt, operationId, serve, workspaceId } from "./harness.ts"

const empty = { available: 0n, reserved: 0n, consumed: 0n, issued: 0n }

describe("usage", () => {
  it.live("amounts are JSON integers", () =>
    Effect.gen(function*() {
      const { send } = yield* serve({
        usage: { balances: () => Effect.succeed({ ...empty, available: 9_007_199_254_740_991n, issued: 5n }) }
      })
      const answer = yield* send({ path: "/v1/usage" })
      assert.strictEqual(answer.text, "{\"available\":9007199254740991,\"reserved\":0,\"consumed\":0,\"issued\":5}")
    }))

  it.live("an amount that JSON would round is an internal error, never a wrong number", () =>
    Effect.gen(function*() {
      const { send } = yield* serve({
        usage: { balances: () => Effect.succeed({ ...empty, available: 9_007_199_254_740_993n }) }
      })
      const answer = yield* send({ path: "/v1/usage" })
      assert.strictEqual(answer.status, 500)
      assert.strictEqual(answer.json.code, "internal")
    }))

  it.live("transfers show both accounts, and page by their place in the ledger", () =>
    Effect.gen(function*() {
      const pages: Array<unknown> = []
      const row = {
        workspaceId,
        seq: 12n,
        kind: "charge",
        operationId,
        authorizationNo: 1,
        amount: 2n,
        reference: null,
        at: Timestamp.make(createdAt)
      } as const
      const { send } = yield* serve({
        usage: { transfers: (page) => Effect.sync(() => (pages.push(page), [row, { ...row, seq: 11n }])) }
      })
      const answer = yield* send({ path: "/v1/usage/transfers?limit=1" })
      assert.deepStrictEqual(answer.json.data, [{
        seq: 12,
        kind: "charge",
        from: "reserved",
        to: "consumed",
        amount_credits: 2,
        event_id: operationId,
        authorization_no: 1,
        reference: null,
        created_at: "2025-12-01T00:00:00.123Z"
      }])
      yield* send({ path: `/v1/usage/transfers?cursor=${answer.json.next_cursor}` })
      assert.deepStrictEqual(pages, [
        { workspaceId, before: null, limit: 2 },
        { workspaceId, before: 12n, limit: 51 }
      ])
    }))
})

describe("probes", () => {
  it.live("need no key", () =>
    Effect.gen(function*() {
      const { send } = yield* serve()
      const alive = yield* send({ path: "/healthz", key: null })
      assert.deepStrictEqual([alive.status, alive.json], [200, { status: "ok" }])
      const ready = yield* send({ path: "/readyz", key: null })
      assert.strictEqual(ready.status, 200)
      assert.deepStrictEqual(ready.json, { ready: true, checks: { storage: "ok", accepting: "ok" } })
    }))

  it.live("readiness is 503 and names what is failing", () =>
    Effect.gen(function*() {
      const { send } = yield* serve({
        readiness: { check: Effect.succeed({ ready: false, checks: { storage: "failing" } }) }
      })
      const answer = yield* send({ path: "/readyz", key: null })
      assert.strictEqual(answer.status, 503)
      assert.deepStrictEqual(answer.json, { ready: false, checks: { storage: "failing", accepting: "ok" } })
      assert.strictEqual((yield* send({ path: "/healthz", key: null })).status, 200)
    }))
})
