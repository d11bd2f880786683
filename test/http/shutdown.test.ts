/** How the edge ends: waits first, then the listening socket, with every request in flight answered. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { event, finishedEvent, memory, memoryId, operationId, receipt, serve } from "./harness.ts"

const waitPath = `/v1/events/${operationId}?wait=30`

describe("when the process drains", () => {
  it.live("a long wait answers with the event as it is, and its connection closes", () =>
    Effect.gen(function*() {
      const asked = yield* Deferred.make<void>()
      const { drain, send } = yield* serve({
        events: {
          wait: () => Effect.andThen(Deferred.succeed(asked, undefined), Effect.never),
          get: () => Effect.succeed({ ...event, status: "running" })
        }
      })
      const waiting = yield* Effect.forkChild(send({ path: waitPath }))
      yield* Deferred.await(asked)
      yield* drain.begin
      const answer = yield* Fiber.join(waiting)
      assert.deepStrictEqual([answer.status, answer.json.status], [200, "running"])
      assert.strictEqual(answer.headers.connection, "close")
    }))

  it.live("Prefer: wait answers 202 at once, and nothing waits any more", () =>
    Effect.gen(function*() {
      const { drain, send } = yield* serve({
        commands: { infer: () => Effect.succeed(receipt) },
        events: { get: () => Effect.succeed(event) }
      })
      yield* drain.begin
      const answer = yield* send({
        method: "POST",
        path: "/v1/memories",
        headers: { "idempotency-key": "k", prefer: "wait=30" },
        body: { content: "tea", user_id: "ada" }
      })
      assert.deepStrictEqual([answer.status, answer.json.status], [202, "pending"])
      assert.strictEqual((yield* send({ path: waitPath })).status, 200)
    }))

  it.live("readiness fails while requests are still answered", () =>
    Effect.gen(function*() {
      const { drain, send } = yield* serve({ memories: { get: () => Effect.succeed(memory) } })
      yield* drain.begin
      const ready = yield* send({ path: "/readyz", key: null })
      assert.deepStrictEqual([ready.status, ready.json.checks.accepting], [503, "failing"])
      assert.strictEqual((yield* send({ path: `/v1/memories/${memoryId}` })).status, 200)
    }))
})

describe("when the scope of the server closes", () => {
  it.live("a request in flight is answered before the server is gone", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const asked = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      const { drain, send } = yield* Scope.provide(
        serve({
          memories: {
            get: () => Deferred.succeed(asked, undefined).pipe(Effect.andThen(Deferred.await(go)), Effect.as(memory))
          },
          events: {
            wait: () => Effect.never,
            get: () => Effect.succeed(finishedEvent)
          }
        }),
        scope
      )
      const slow = yield* Effect.forkChild(send({ path: `/v1/memories/${memoryId}` }))
      yield* Deferred.await(asked)
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* drain.begun
      assert.isUndefined(closing.pollUnsafe())
      yield* Deferred.succeed(go, undefined)
      assert.strictEqual((yield* Fiber.join(slow)).status, 200)
      yield* Fiber.join(closing)
    }))
})
