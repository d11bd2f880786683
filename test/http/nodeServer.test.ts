/** What never becomes a request is answered too. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { connect } from "node:net"
import { serve } from "./harness.ts"

/** Sends bytes on one connection and returns everything that came back until it ended. */
const raw = (port: number, bytes: string): Effect.Effect<string> =>
  Effect.callback<string>((resume) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes))
    let received = ""
    socket.on("data", (part) => {
      received += part.toString("utf8")
    })
    socket.on("end", () => resume(Effect.succeed(received)))
    socket.on("error", (error) => resume(Effect.die(error)))
    return Effect.sync(() => socket.destroy())
  })

const problemIn = (received: string) => {
  const [head, body] = received.slice(received.indexOf("HTTP/1.1 4")).split("\r\n\r\n") as [string, string]
  const problem = JSON.parse(body)
  assert.include(head, "Content-Type: application/problem+json")
  assert.include(head, `X-Request-Id: ${problem.request_id}`)
  assert.include(head, `Content-Length: ${body.length}\r\n`)
  assert.include(head, "Connection: close")
  return problem
}

const good = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"

describe("bytes that are no request", () => {
  it.live("are answered with a problem, also after a request that was one", () =>
    Effect.gen(function*() {
      const { port } = yield* serve()
      for (const before of ["", good]) {
        const received = yield* raw(port, `${before}canary-0b5e\r\n\r\n`)
        assert.deepInclude(problemIn(received), { status: 400, code: "malformed_http", retryable: false })
        assert.notInclude(received, "canary-0b5e")
        assert.strictEqual(received.includes("HTTP/1.1 200 OK"), before !== "")
      }
    }))

  it.live("a body that does not arrive in time is 408, and its connection ends", () =>
    Effect.gen(function*() {
      const timeouts = { connectionsCheckingInterval: 20, headersTimeout: 50, requestTimeout: 50 }
      const { port } = yield* serve({}, { timeouts })
      const head = [
        "POST /v1/memories HTTP/1.1",
        "Host: a",
        "Authorization: Bearer all",
        "Content-Type: application/json",
        "Content-Length: 100"
      ]
      const received = yield* raw(port, `${head.join("\r\n")}\r\n\r\n{`)
      assert.deepInclude(problemIn(received), { status: 408, code: "request_timeout", retryable: true })
    }))

  it.live("a request without a host is refused as HTTP/1.1 has it, with a problem like any other", () =>
    Effect.gen(function*() {
      const { logs, port } = yield* serve()
      const received = yield* raw(port, "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n")
      assert.match(received, /^HTTP\/1\.1 400 /)
      const problem = JSON.parse(received.split("\r\n\r\n")[1]!)
      assert.deepInclude(problem, { status: 400, code: "invalid_input", errors: [{ path: "Host", message: "is required" }] })
      assert.include(received.toLowerCase(), `x-request-id: ${problem.request_id}`)
      assert.strictEqual(logs.filter(({ message }) => message === "request").length, 1)
      assert.match(yield* raw(port, "GET /healthz HTTP/1.0\r\n\r\n"), /^HTTP\/1\.1 200 /)
    }))

  it.live("a request that names two hosts, or none in a whole URL, is refused like one without", () =>
    Effect.gen(function*() {
      const { port } = yield* serve()
      const answerTo = (target: string, ...headers: ReadonlyArray<string>) =>
        raw(port, [`GET ${target} HTTP/1.1`, "Connection: close", ...headers, "", ""].join("\r\n"))
      for (const hosts of [["Host: a", "Host: a"], ["Host: a", "X: Host", "hOST: b"]]) {
        const received = yield* answerTo("/healthz", ...hosts)
        assert.match(received, /^HTTP\/1\.1 400 /)
        const { errors } = JSON.parse(received.split("\r\n\r\n")[1]!)
        assert.deepStrictEqual(errors, [{ path: "Host", message: "must be given once" }])
      }
      assert.match(yield* answerTo("http://a/healthz"), /^HTTP\/1\.1 400 /)
      assert.match(yield* answerTo("http://a/healthz", "Host: a"), /^HTTP\/1\.1 200 /)
      assert.match(yield* answerTo("/healthz", "Host: a", "X: Host", "Y: Host"), /^HTTP\/1\.1 200 /)
    }))

  it.live("a target that is half a URL is refused, and not guessed", () =>
    Effect.gen(function*() {
      const { port } = yield* serve()
      for (const target of ["http://[::1/healthz", "http://a:99999999/healthz", "HTTPS://[/healthz"]) {
        const received = yield* raw(port, `GET ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
        assert.match(received, /^HTTP\/1\.1 400 /, target)
        const problem = JSON.parse(received.split("\r\n\r\n")[1]!)
        assert.deepInclude(problem, { status: 400, code: "invalid_input", detail: "The target of the request is not a URL." })
      }
    }))

  it.live("an expectation that nobody knows is no reason to refuse what is asked", () =>
    Effect.gen(function*() {
      const { port } = yield* serve()
      const head = "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: wonders\r\n\r\n"
      assert.match(yield* raw(port, head), /^HTTP\/1\.1 200 /)
    }))

  it.live("headers beyond all bounds are 431", () =>
    Effect.gen(function*() {
      const { port } = yield* serve()
      const received = yield* raw(port, `GET /healthz HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(40_000)}\r\n\r\n`)
      assert.deepInclude(problemIn(received), { status: 431, code: "headers_too_large" })
    }))
})
