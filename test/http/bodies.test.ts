/** Every body that is refused, with where it is wrong. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { gzipSync } from "node:zlib"
import { bodyMaxBytes } from "../../src/http/Limits.ts"
import { good, json, patch, post, refused, type Row, search } from "./asking.ts"
import { finishedEvent, memoryId, operationId, type Request, serve } from "./harness.ts"

const table: ReadonlyArray<Row> = [
  // The body, as bytes
  ["an empty body", { ...post, body: "" }, 400, "invalid_input", ""],
  ["no body at all", post, 400, "invalid_input", ""],
  ["an empty body in chunks", { ...post, body: [] }, 400, "invalid_input", ""],
  ["JSON that is cut off", json("{\"content\": \"tea"), 400, "invalid_input", ""],
  ["two JSON texts", json("{} {}"), 400, "invalid_input", ""],
  ["a trailing comma", json("{\"content\":\"tea\",}"), 400, "invalid_input", ""],
  ["bytes that are not UTF-8", { ...post, body: Buffer.from([0x22, 0xff, 0xfe, 0x22]) }, 400, "invalid_input", ""],
  ["UTF-16", { ...post, body: Buffer.from("{}", "utf16le") }, 400, "invalid_input", ""],
  [
    "a duplicate key",
    json("{\"content\":\"a\",\"content\":\"b\",\"user_id\":\"u\"}"),
    400,
    "invalid_input",
    "/content"
  ],
  ["an escaped NUL", json("{\"content\":\"a\\u0000\",\"user_id\":\"u\"}"), 400, "invalid_input", "/content"],
  ["a lone surrogate", json("{\"content\":\"a\\ud800\",\"user_id\":\"u\"}"), 400, "invalid_input", "/content"],
  [
    "an unsafe integer",
    json("{\"content\":\"a\",\"user_id\":\"u\",\"metadata\":{\"n\":9007199254740993}}"),
    400,
    "invalid_input",
    "/metadata/n"
  ],
  ["nesting without end", json("[".repeat(100_000)), 400, "invalid_input", ""],
  ["a body one byte too long", { ...post, body: " ".repeat(bodyMaxBytes + 1) }, 413, "payload_too_large"],
  [
    "a body too long in chunks",
    { ...post, body: Array.from({ length: 5 }, () => Buffer.alloc(bodyMaxBytes / 4, 32)) },
    413,
    "payload_too_large"
  ],
  [
    "a form",
    { ...post, headers: { ...post.headers, "content-type": "application/x-www-form-urlencoded" }, body: "a=b" },
    415,
    "unsupported_media_type"
  ],
  [
    "text",
    { ...post, headers: { ...post.headers, "content-type": "text/plain" }, body: "{}" },
    415,
    "unsupported_media_type"
  ],
  [
    "another charset",
    json(good, { "content-type": "application/json; charset=latin1" }),
    415,
    "unsupported_media_type"
  ],
  ["a patch media type", json(good, { "content-type": "application/json-patch+json" }), 415, "unsupported_media_type"],
  [
    "a compressed body",
    { ...post, headers: { ...post.headers, "content-encoding": "gzip" }, body: gzipSync(JSON.stringify(good)) },
    415,
    "unsupported_media_type"
  ],

  // The body, as a command
  ["null", json("null"), 422, "invalid_input", ""],
  ["an array", json("[]"), 422, "invalid_input", ""],
  ["an unknown field", json({ ...good, userid: "x" }), 422, "invalid_input", "/userid"],
  [
    "an unknown field deep inside",
    json({ user_id: "u", messages: [{ role: "user", content: "a", extra: 1 }] }),
    422,
    "invalid_input",
    "/messages/0/extra"
  ],
  ["a pointer that needs escapes", json({ ...good, "a/b~c": 1 }), 422, "invalid_input", "/a~1b~0c"],
  ["a wrong type", json({ ...good, content: 7 }), 422, "invalid_input", "/content"],
  ["a null that means nothing", json({ ...good, user_id: null }), 422, "invalid_input", "/user_id"],
  ["two things wrong", json({ ...good, infer: "no", agent_id: 1 }), 422, "invalid_input", "/agent_id", "/infer"],
  [
    "an unknown role",
    json({ user_id: "u", messages: [{ role: "robot", content: "a" }] }),
    422,
    "invalid_input",
    "/messages/0/role"
  ],
  ["no scope", json({ content: "tea" }), 422, "invalid_input", ""],
  ["an empty scope id", json({ ...good, user_id: "" }), 422, "invalid_input", "/user_id"],
  ["a scope id too long", json({ ...good, user_id: "u".repeat(513) }), 422, "invalid_input", "/user_id"],
  ["messages and content", json({ ...good, messages: [{ role: "user", content: "a" }] }), 422, "invalid_input", ""],
  ["neither messages nor content", json({ user_id: "u" }), 422, "invalid_input", ""],
  ["no messages", json({ user_id: "u", messages: [] }), 422, "invalid_input", "/messages"],
  [
    "too many messages",
    json({ user_id: "u", messages: Array.from({ length: 501 }, () => ({ role: "user", content: "a" })) }),
    422,
    "invalid_input",
    "/messages"
  ],
  ["nothing but blanks", json({ ...good, content: " \n" }), 422, "invalid_input", ""],
  ["a date that is none", json({ ...good, event_date: "2026-02-30" }), 422, "invalid_input", "/event_date"],
  [
    "a date that in UTC is before the year 0000",
    json({ ...good, event_date: "0000-01-01T00:00:00+23:59" }),
    422,
    "invalid_input",
    "/event_date"
  ],
  [
    "a date that in UTC is after the year 9999",
    json({ ...good, event_date: "9999-12-31T23:59:59-23:59" }),
    422,
    "invalid_input",
    "/event_date"
  ],
  ["an edit of nothing", patch({}), 422, "invalid_input", ""],
  ["an edit to a blank", patch({ memory: " " }), 422, "invalid_input", "/memory"],
  ["an edit of the scope", patch({ user_id: "other" }), 422, "invalid_input", "/user_id"],
  ["a search without a query", search({ user_id: "u" }), 422, "invalid_input", "/query"],
  ["a search for too many", search({ query: "tea", limit: 51 }), 422, "invalid_input", "/limit"],
  ["a search for a half", search({ query: "tea", limit: 1.5 }), 422, "invalid_input", "/limit"]
]

describe("a body is refused when it is", () => refused(table))

type Body = NonNullable<Request["body"]>

const bodiless: ReadonlyArray<Request> = [
  { method: "DELETE", path: `/v1/memories/${memoryId}` },
  { method: "POST", path: `/v1/events/${operationId}/retry` },
  { method: "POST", path: `/v1/events/${operationId}/cancel` },
  { method: "DELETE", path: `/v1/events/${operationId}/input` },
  { path: "/v1/usage" },
  { path: "/v1/memories?limit=1" }
]

describe("where none is taken, a body is refused when it is", () =>
  refused(bodiless.flatMap((request): Array<Row> => {
    const { method = "GET", path } = request
    const of = (what: string, body: Body, headers = {}): Row =>
      [`${what} to ${method} ${path}`, { ...request, body, headers }, 400, "invalid_input", ""]
    return [
      of("a command", { user_id: "ada" }),
      of("an array", "[]"),
      of("null", "null"),
      of("no JSON", "{"),
      of("not UTF-8", Buffer.from([0x7b, 0xff, 0x7d])),
      of("a long one", `{${" ".repeat(bodyMaxBytes)}}`),
      of("a command in chunks", [Buffer.from("{\"user_id\":"), Buffer.from("\"ada\"}")], { "transfer-encoding": "chunked" })
    ]
  })))

describe("where none is taken", () => {
  const bodies: ReadonlyArray<readonly [string, Body]> = [
    ["no bytes", ""],
    ["no bytes in chunks", []],
    ["an empty object", "{}"],
    ["an empty object with blanks", " { }\n"],
    ["an empty object in chunks", [Buffer.from("{"), Buffer.from("}")]]
  ]
  it.live.each(bodies)("%s is as good as no body, whatever type it says that it has", ([, body]) =>
    Effect.gen(function*() {
      const { send } = yield* serve({ retries: { cancel: () => Effect.succeed(finishedEvent) } })
      const headers = { "content-type": "application/x-www-form-urlencoded" }
      const path = `/v1/events/${operationId}/cancel`
      assert.strictEqual((yield* send({ method: "POST", path, body, headers })).status, 200)
      assert.strictEqual((yield* send({ method: "POST", path, body })).status, 200)
    }))
})

describe("a body of just the allowed size", () => {
  it.live("is read, with a length and in chunks", () =>
    Effect.gen(function*() {
      const { send } = yield* serve()
      const text = JSON.stringify({ user_id: "u", unknown: 1 })
      const padded = Buffer.from(text + " ".repeat(bodyMaxBytes - text.length))
      assert.strictEqual((yield* send({ ...post, body: padded })).status, 422)
      const chunks = [padded.subarray(0, 1_000), padded.subarray(1_000)]
      assert.strictEqual((yield* send({ ...post, body: chunks })).status, 422)
    }))
})
