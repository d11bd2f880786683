/** What a caller sees of events: the projection, waits, retries, cancels and purges. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber } from "effect"
import {
  IdempotencyConflict,
  InputGone,
  InsufficientCredit,
  NotFound,
  WrongState
} from "../../src/domain/Refusal.ts"
import { event, finishedEvent, memoryId, operationId, receipt, serve, workspaceId } from "./harness.ts"

const path = `/v1/events/${operationId}`
const ref = { workspaceId, id: operationId }

describe("an event", () => {
  it.live("is on the wire as the design has it, and as nothing else", () =>
    Effect.gen(function*() {
      const failed = {
        ...finishedEvent,
        status: "failed",
        error: { class: "provider_timeout", message: "Late.", retryable: true, leaked: "must not be sent" },
        results: [{ id: null, change: "none", version: null, memory: null, reason: "duplicate" }],
        usage: { reserved: 4n, charged: 2n, refunded: 2n }
      } as const
      const { send } = yield* serve({ events: { get: () => Effect.succeed(failed) } })
      const answer = yield* send({ path })
      assert.strictEqual(answer.status, 200)
      assert.deepStrictEqual(answer.json, {
        id: operationId,
        type: "memory.infer",
        status: "failed",
        scope: { user_id: "ada" },
        attempts: 0,
        max_attempts: 5,
        next_attempt_at: null,
        error: { class: "provider_timeout", message: "Late.", retryable: true },
        outcome: "stored",
        results: [{ id: null, change: "none", version: null, memory: null, reason: "duplicate" }],
        projection: "pending",
        usage: { reserved: 4, charged: 2, refunded: 2 },
        created_at: "2025-12-01T00:00:00.123Z",
        started_at: "2025-12-01T00:00:00.123Z",
        completed_at: "2025-12-01T00:00:00.128Z",
        input_retained: false,
        evidence: {
          command_version: 1,
          command_hash: "ab".repeat(32),
          messages: 1,
          input_bytes: 12,
          model: null,
          plan_digest: null,
          offered: 0,
          stored: 0
        }
      })
    }))

  it.live("asks to be looked at again while it is not terminal, and not before its next attempt", () =>
    Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      let current = event
      const { send } = yield* serve({ events: { get: () => Effect.sync(() => current) } })
      assert.strictEqual((yield* send({ path })).headers["retry-after"], "1")
      current = { ...event, nextAttemptAt: now + 30_000 }
      assert.include(["29", "30"], (yield* send({ path })).headers["retry-after"])
      current = { ...event, nextAttemptAt: now + 3_600_000 }
      assert.strictEqual((yield* send({ path })).headers["retry-after"], "60")
      current = finishedEvent
      assert.isUndefined((yield* send({ path })).headers["retry-after"])
    }))

  it.live("long-polls: the answer comes when the event is terminal, and no earlier", () =>
    Effect.gen(function*() {
      const asked = yield* Deferred.make<ReadonlyArray<unknown>>()
      const terminal = yield* Deferred.make<void>()
      const { send } = yield* serve({
        events: {
          wait: (...call) =>
            Deferred.succeed(asked, call).pipe(Effect.andThen(Deferred.await(terminal)), Effect.as(finishedEvent))
        }
      })
      const waiting = yield* Effect.forkChild(send({ path: `${path}?wait=30` }))
      assert.deepStrictEqual(yield* Deferred.await(asked), [ref, 30])
      assert.isUndefined(waiting.pollUnsafe())
      yield* Deferred.succeed(terminal, undefined)
      const answer = yield* Fiber.join(waiting)
      assert.strictEqual(answer.json.status, "succeeded")
    }))

  it.live("with wait=0 is read at once", () =>
    Effect.gen(function*() {
      const { send } = yield* serve({ events: { get: () => Effect.succeed(event) } })
      assert.strictEqual((yield* send({ path: `${path}?wait=0` })).json.status, "pending")
    }))

  it.live("the wait of a caller that went away is interrupted", () =>
    Effect.gen(function*() {
      const asked = yield* Deferred.make<void>()
      const gone = yield* Deferred.make<void>()
      const { send } = yield* serve({
        events: {
          wait: () =>
            Deferred.succeed(asked, undefined).pipe(
              Effect.andThen(Effect.never),
              Effect.onInterrupt(() => Deferred.succeed(gone, undefined))
            )
        }
      })
      const waiting = yield* Effect.forkChild(send({ path: `${path}?wait=30` }))
      yield* Deferred.await(asked)
      yield* Fiber.interrupt(waiting)
      yield* Deferred.await(gone)
    }))

  it.live("a list passes its filters on and pages by cursor", () =>
    Effect.gen(function*() {
      const pages: Array<unknown> = []
      const { send } = yield* serve({
        events: { list: (page) => Effect.sync(() => (pages.push(page), [event, event])) }
      })
      const first = yield* send({ path: "/v1/events?status=failed&type=memory.infer&run_id=r&limit=1" })
      assert.strictEqual(first.json.data.length, 1)
      yield* send({ path: `/v1/events?cursor=${first.json.next_cursor}&limit=100` })
      assert.deepStrictEqual(pages, [
        { workspaceId, status: "failed", type: "memory.infer", scope: { run_id: "r" }, before: null, limit: 2 },
        { workspaceId, status: null, type: null, scope: {}, before: operationId, limit: 101 }
      ])
    }))
})

describe("a manual retry", () => {
  it.live("is 202 with a receipt, and its key is optional", () =>
    Effect.gen(function*() {
      const calls: Array<unknown> = []
      const { send } = yield* serve({
        retries: { retry: (...call) => Effect.sync(() => (calls.push(call), { ...receipt, replayed: true })) }
      })
      const answer = yield* send({ method: "POST", path: `${path}/retry`, headers: { "idempotency-key": "again" } })
      assert.strictEqual(answer.status, 202)
      assert.strictEqual(answer.headers.location, path)
      assert.strictEqual(answer.headers["idempotent-replayed"], "true")
      yield* send({ method: "POST", path: `${path}/retry` })
      assert.deepStrictEqual(calls, [[ref, "again"], [ref, null]])
    }))

  it.live("of what is live is no replay", () =>
    Effect.gen(function*() {
      const { send } = yield* serve({ retries: { retry: () => Effect.succeed({ ...receipt, already: true }) } })
      const answer = yield* send({ method: "POST", path: `${path}/retry`, headers: { "idempotency-key": "fresh" } })
      assert.strictEqual(answer.status, 202)
      assert.isFalse(answer.json.replayed)
      assert.isUndefined(answer.headers["idempotent-replayed"])
    }))

  it.live("is refused with the reason and what to do", () =>
    Effect.gen(function*() {
      const refusals = [
        [new NotFound({ what: "event" }), 404, "not_found", {}],
        [new WrongState({ state: "succeeded" }), 409, "wrong_state", { state: "succeeded" }],
        [new InputGone(), 410, "input_gone", {}],
        [new InsufficientCredit({ required: 2n, available: 1n }), 402, "insufficient_credit", {
          required_credits: 2,
          available_credits: 1
        }],
        [new IdempotencyConflict({ operationId }), 409, "idempotency_conflict", { event_id: operationId }]
      ] as const
      for (const [refusal, status, code, members] of refusals) {
        const { send } = yield* serve({ retries: { retry: () => Effect.fail(refusal) } })
        const answer = yield* send({ method: "POST", path: `${path}/retry` })
        assert.strictEqual(answer.status, status)
        assert.deepInclude(answer.json, {
          ...members,
          code,
          status,
          retryable: false,
          type: `urn:indelible:problem:${code}`,
          request_id: answer.headers["x-request-id"]
        })
      }
    }))
})

describe("a cancel and a purge", () => {
  it.live("answer with the event as it is afterwards", () =>
    Effect.gen(function*() {
      const refs: Array<unknown> = []
      const { send } = yield* serve({
        retries: {
          cancel: (ref) => Effect.sync(() => (refs.push(ref), { ...event, status: "failed" })),
          purgeInput: (ref) => Effect.sync(() => (refs.push(ref), { ...event, status: "failed", inputRetained: false }))
        }
      })
      const cancelled = yield* send({ method: "POST", path: `${path}/cancel` })
      assert.strictEqual(cancelled.status, 200)
      assert.strictEqual(cancelled.json.status, "failed")
      const purged = yield* send({ method: "DELETE", path: `${path}/input` })
      assert.strictEqual(purged.status, 200)
      assert.isFalse(purged.json.input_retained)
      assert.deepStrictEqual(refs, [ref, ref])
    }))

  it.live("show nothing of a memory that was deleted since", () =>
    Effect.gen(function*() {
      const results = [{ id: memoryId, change: "add", version: 1, memory: null }] as const
      const { send } = yield* serve({ retries: { cancel: () => Effect.succeed({ ...finishedEvent, results }) } })
      const answer = yield* send({ method: "POST", path: `${path}/cancel` })
      assert.deepStrictEqual(answer.json.results, results)
    }))
})
