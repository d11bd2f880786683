/** Whatever is sent, the answer is a success or a problem document, never a fault of ours. A failure names its seed. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ComeBackLater } from "../../src/domain/Refusal.ts"
import { streamOf } from "../domain/arbitraries.ts"
import { type Fakes, memoryId, operationId, type Request, serve } from "./harness.ts"

const odd = [
  "", "a", "%", "%zz", "%00", "%ff", "..", "%2e%2e", "__proto__", "constructor", "toString", "a".repeat(200), "%F0%9F",
  "a:b", ";", "'", "[]", "a[b]=c", "%5B", "+", "&&", "=", memoryId, operationId, "0", "-1", "1e400", "%7B%7D", "null"
]
const segments = ["v1", "memories", "events", "usage", "transfers", "history", "input", "retry", "docs", ...odd]
const paths = [
  "/v1/memories", `/v1/memories/${memoryId}`, `/v1/memories/${memoryId}/history`, "/v1/memories/search", "/v1/events",
  `/v1/events/${operationId}`, `/v1/events/${operationId}/retry`, `/v1/events/${operationId}/input`, "/v1/usage",
  "/v1/usage/transfers", "/healthz", "/readyz"
]
const names = ["limit", "cursor", "wait", "user_id", "metadata", "status", "type", ...odd]
const fields = [
  "messages", "content", "user_id", "infer", "metadata", "event_date", "instructions", "memory", "query", "limit",
  "constructor", "__proto__", ""
]
const headers: Record<string, ReadonlyArray<string | ReadonlyArray<string>>> = {
  "idempotency-key": ["k", "\"a\"", "\"", "a, b", ["a", "b"], "\u00e9"],
  "if-match": ["*", "\"1\"", "W/\"1\"", "", "\"99999999999\""],
  prefer: ["wait=1", "wait=", ";;;", "wait=999999999999"],
  "content-type": ["application/json", "application/json; charset=utf-8", "text/plain", ";"],
  "content-encoding": ["identity", "gzip"],
  "x-request-id": ["r", "", "\u00e9", "a b"]
}

/** A request made of what is known, what is odd, and chance. */
const requestFrom = (random: () => number): Request => {
  const pick = <A>(choices: ReadonlyArray<A>): A => choices[Math.floor(random() * choices.length)]!
  const some = <A>(most: number, make: () => A) => Array.from({ length: Math.floor(random() * (most + 1)) }, make)
  const value = (depth = 0): unknown =>
    depth > 3 ? 1 : pick([
      () => pick<unknown>([null, 1, -0, 1.5, "x", "\u0000", "\ud800", true, 2 ** 60]),
      () => [value(depth + 1)],
      () => [{ role: "user", content: "a" }],
      () => ({ [pick(fields)]: value(depth + 1) })
    ])()
  const object = () => JSON.stringify(Object.fromEntries(some(6, () => [pick(fields), value()])))
  const body = pick<() => NonNullable<Request["body"]>>([
    object,
    object,
    object,
    () => JSON.stringify(value()),
    () => pick(["", "{", "[1,", "{} {}"]),
    () => Uint8Array.from(some(20, () => Math.floor(random() * 256))),
    () => [Buffer.from("{\"a\":"), Buffer.from("1}")]
  ])()
  const parameters = some(3, () => `${pick(names)}${pick(["=", "", "=="])}${pick(odd)}`)
  const query = random() < 0.5 ? `?${parameters.join("&")}` : ""
  const method = pick(["GET", "GET", "POST", "POST", "POST", "PATCH", "DELETE", "HEAD", "PUT", "OPTIONS"])
  const bodiless = method === "GET" || method === "HEAD" ? random() < 0.9 : random() < 0.1
  return {
    method,
    path: `${random() < 0.8 ? pick(paths) : `/${some(5, () => pick(segments)).join("/")}`}${query}`,
    key: pick(["all", "all", "all", "all", "all", "all", "none", "", null]),
    headers: Object.fromEntries(
      Object.entries(headers).filter(() => random() < 0.4).map(([name, values]) => [name, pick(values)])
    ),
    ...(bodiless ? {} : { body })
  }
}

const down = () => Effect.fail(new ComeBackLater({ reason: "overloaded" }))
const fakes: Fakes = {
  commands: { infer: down, add: down, update: down, delete: down },
  memories: { list: down, get: down, history: down, search: down },
  events: { list: down, get: down, wait: down },
  retries: { retry: down, cancel: down, purgeInput: down },
  usage: { balances: down, transfers: down }
}

describe("a thousand requests at random", () => {
  it.live("are all answered, and none with a fault of ours", () =>
    Effect.gen(function*() {
      const { logs, send } = yield* serve(fakes)
      const statuses = new Set<number>()
      for (let seed = 0; seed < 1_000; seed++) {
        const request = requestFrom(streamOf(seed))
        const answer = yield* send(request)
        const where = `seed ${seed}: ${request.method} ${request.path}`
        statuses.add(answer.status)
        assert.notStrictEqual(answer.status, 500, where)
        assert.isDefined(answer.headers["x-request-id"], where)
        if (answer.status < 400) continue
        assert.strictEqual(answer.headers["content-type"], "application/problem+json", where)
        if (request.method !== "HEAD") assert.strictEqual(answer.json.status, answer.status, where)
      }
      assert.includeMembers([...statuses], [200, 400, 401, 403, 404, 405, 415, 422, 503])
      assert.deepStrictEqual(logs.filter((line) => line.level === "Error"), [])
    }))
})
