/** How the edge ends: waits first, then the listening socket, with every request in flight answered. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Agent, request } from "node:http"
import { connect } from "node:net"
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

  it.effect("readiness says no while new connections are still taken, for the grace and no longer", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const { drain, port, send } = yield* Scope.provide(
        serve({ memories: { get: () => Effect.succeed(memory) } }, { shutdownGrace: Duration.seconds(7) }),
        scope
      )
      assert.strictEqual((yield* send({ path: "/readyz", key: null })).status, 200)
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* drain.begun
      for (const seconds of [0, 6]) {
        yield* TestClock.adjust(Duration.seconds(seconds))
        assert.strictEqual((yield* send({ path: "/readyz", key: null })).status, 503)
        assert.strictEqual((yield* send({ path: `/v1/memories/${memoryId}` })).status, 200)
        assert.isUndefined(closing.pollUnsafe())
      }
      yield* TestClock.adjust(Duration.seconds(1))
      yield* Fiber.join(closing)
      assert.strictEqual(yield* refusedBy(port), "ECONNREFUSED")
    }))

  it.effect("a connection that is kept is told to close by its next answer, and closes", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const { drain, port } = yield* Scope.provide(serve({}, { shutdownGrace: Duration.seconds(7) }), scope)
      const agent = yield* Effect.acquireRelease(
        Effect.sync(() => new Agent({ keepAlive: true, maxSockets: 1 })),
        (agent) => Effect.sync(() => agent.destroy())
      )
      assert.strictEqual(yield* connectionAfter(port, agent), "keep-alive")
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* drain.begun
      assert.strictEqual(yield* connectionAfter(port, agent), "close")
      yield* TestClock.adjust(Duration.seconds(7))
      yield* Fiber.join(closing)
    }))

  it.live("half a request, whose rest never comes, does not hold the process", () =>
    Effect.gen(function*() {
      for (const half of ["GET /healthz HTTP/1.1\r\n", `${head}{`]) {
        const scope = yield* Scope.make()
        const { port } = yield* Scope.provide(serve({}, { inFlightTimeout: Duration.millis(50) }), scope)
        const ended = yield* Deferred.make<void>()
        yield* Effect.acquireRelease(
          Effect.callback<ReturnType<typeof connect>>((resume) => {
            const socket = connect(port, "127.0.0.1", () => socket.write(half, () => resume(Effect.succeed(socket))))
            socket.on("error", () => {})
            socket.on("close", () => Deferred.doneUnsafe(ended, Effect.void))
          }),
          (socket) => Effect.sync(() => socket.destroy())
        )
        yield* Scope.close(scope, Exit.void)
        yield* Deferred.await(ended)
      }
    }))

  it.effect("each step is told in one line, with what is in flight", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const asked = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      const { drain, logs, send } = yield* Scope.provide(
        serve({
          memories: {
            get: () => Deferred.succeed(asked, undefined).pipe(Effect.andThen(Deferred.await(go)), Effect.as(memory))
          }
        }, { shutdownGrace: Duration.seconds(7) }),
        scope
      )
      const slow = yield* Effect.forkChild(send({ path: `/v1/memories/${memoryId}` }))
      yield* Deferred.await(asked)
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* drain.begun
      yield* TestClock.adjust(Duration.seconds(7))
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(slow)
      yield* Fiber.join(closing)
      const told = logs.filter(({ message }) => message !== "request")
      assert.deepStrictEqual(told.map(({ annotations, message }) => [message, annotations]), [
        ["Shutting down: not ready any more, still answering", { grace_ms: 7_000 }],
        ["Taking no more connections", { requests_in_flight: 1 }],
        ["Requests are drained", { requests_unanswered: 0 }]
      ])
    }))
})

const head = [
  "POST /v1/memories HTTP/1.1",
  "Host: a",
  "Authorization: Bearer all",
  "Content-Type: application/json",
  "Content-Length: 100\r\n\r\n"
].join("\r\n")

/** How an attempt to connect ends. */
const refusedBy = (port: number): Effect.Effect<string | undefined> =>
  Effect.callback((resume) => {
    const socket = connect(port, "127.0.0.1", () => resume(Effect.succeed("connected")))
    socket.on("error", (error: NodeJS.ErrnoException) => resume(Effect.succeed(error.code)))
    return Effect.sync(() => socket.destroy())
  })

/** What an answer on this agent's one connection says about the connection. */
const connectionAfter = (port: number, agent: Agent): Effect.Effect<string | undefined> =>
  Effect.callback((resume) => {
    request({ host: "127.0.0.1", port, path: "/healthz", agent }, (incoming) => {
      incoming.resume().on("end", () => resume(Effect.succeed(incoming.headers.connection)))
    }).on("error", (error) => resume(Effect.die(error))).end()
  })
