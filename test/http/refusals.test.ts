/** Every header, query parameter, path and key that is refused, and that no refusal repeats what was sent. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Base64Url } from "effect/encoding"
import { get, good, json, patch, post, refused, type Row } from "./asking.ts"
import { memoryId, operationId, type Request, serve } from "./harness.ts"

const cursor = (value: unknown) => Base64Url.encode(JSON.stringify(value))

const table: ReadonlyArray<Row> = [
  // Headers
  ["no key for an inferred add", { ...post, headers: {}, body: good }, 400, "idempotency_key_required"],
  ["two keys", { ...post, headers: { "idempotency-key": ["a", "b"] }, body: good }, 400, "idempotency_key_invalid"],
  [
    "two quoted keys",
    { ...post, headers: { "idempotency-key": ["\"a\"", "\"b\""] }, body: good },
    400,
    "idempotency_key_invalid"
  ],
  ["an empty key", json(good, { "idempotency-key": "" }), 400, "idempotency_key_invalid"],
  ["an empty key in quotes", json(good, { "idempotency-key": "\"\"" }), 400, "idempotency_key_invalid"],
  ["a key with a blank", json(good, { "idempotency-key": "a b" }), 400, "idempotency_key_invalid"],
  ["a key with an open quote", json(good, { "idempotency-key": "\"a" }), 400, "idempotency_key_invalid"],
  ["a key with parameters", json(good, { "idempotency-key": "\"a\";x=1" }), 400, "idempotency_key_invalid"],
  ["a key beyond ASCII", json(good, { "idempotency-key": "caf\u00e9" }), 400, "idempotency_key_invalid"],
  ["a key too long", json(good, { "idempotency-key": "x".repeat(256) }), 400, "idempotency_key_invalid"],
  [
    "a bad key of a verbatim add",
    json({ ...good, infer: false }, { "idempotency-key": "a b" }),
    400,
    "idempotency_key_invalid"
  ],
  ["a version without quotes", patch({ memory: "x" }, { "if-match": "3" }), 400, "invalid_input", "If-Match"],
  ["a weak version", patch({ memory: "x" }, { "if-match": "W/\"3\"" }), 400, "invalid_input", "If-Match"],
  ["several versions", patch({ memory: "x" }, { "if-match": "\"3\", \"4\"" }), 400, "invalid_input", "If-Match"],
  [
    "version zero",
    { method: "DELETE", path: `/v1/memories/${memoryId}`, headers: { "if-match": "\"0\"" } },
    400,
    "invalid_input",
    "If-Match"
  ],

  // Query parameters
  ["a limit of zero", get("/v1/memories?limit=0"), 400, "invalid_input", "limit"],
  ["a limit too high", get("/v1/events?limit=101"), 400, "invalid_input", "limit"],
  ["a limit that is no number", get("/v1/usage/transfers?limit=abc"), 400, "invalid_input", "limit"],
  ["a limit twice", get("/v1/memories?limit=1&limit=2"), 400, "invalid_input", "limit"],
  ["an unknown parameter", get("/v1/memories?userid=ada"), 400, "invalid_input", "userid"],
  ["a parameter where none is taken", get(`/v1/memories/${memoryId}?version=2`), 400, "invalid_input", "version"],
  [
    "a body field as a parameter",
    { ...post, path: "/v1/memories?infer=false", body: good },
    400,
    "invalid_input",
    "infer"
  ],
  ["a parameter named like a method of objects", get("/v1/events?constructor=1"), 400, "invalid_input", "constructor"],
  ["a parameter named like a prototype", get("/v1/events?__proto__=1"), 400, "invalid_input", "__proto__"],
  ["an empty scope id in a query", get("/v1/memories?user_id="), 400, "invalid_input", "user_id"],
  ["NUL in a query", get("/v1/memories?user_id=a%00b"), 400, "invalid_input", "user_id"],
  ["a value that is no UTF-8", get("/v1/memories?user_id=q%ff"), 400, "invalid_input", "user_id"],
  ["a value with half an escape", get("/v1/memories?limit=1&user_id=q%zz"), 400, "invalid_input", "user_id"],
  ["a value of half a character", get("/v1/memories?user_id=%F0%9F"), 400, "invalid_input", "user_id"],
  ["a value of half a surrogate pair", get("/v1/memories?user_id=%ED%A0%80"), 400, "invalid_input", "user_id"],
  ["a query of one per cent sign", get("/v1/memories?%"), 400, "invalid_input", ""],
  ["a name that is no UTF-8", get("/v1/memories?q%ff=a"), 400, "invalid_input", ""],
  ["several values that are no UTF-8", get("/v1/events?cursor=%ff&status=%"), 400, "invalid_input", "cursor", "status"],
  ["a query without UTF-8 where none is taken", get("/healthz?a=%ff"), 400, "invalid_input", "a"],
  ["a status that is none", get("/v1/events?status=done"), 400, "invalid_input", "status"],
  ["a wait too long", get(`/v1/events/${operationId}?wait=31`), 400, "invalid_input", "wait"],
  ["a negative wait", get(`/v1/events/${operationId}?wait=-1`), 400, "invalid_input", "wait"],
  ["a metadata filter that is no object", get("/v1/memories?metadata=tea"), 400, "invalid_input", "metadata"],
  [
    "a metadata filter with NUL",
    get("/v1/memories?metadata=%7B%22a%22%3A%22%5Cu0000%22%7D"),
    400,
    "invalid_input",
    "metadata"
  ],
  ["a cursor of nonsense", get("/v1/memories?cursor=%F0%9F%8D%B5"), 400, "invalid_input", "cursor"],
  ["an empty cursor", get("/v1/memories?cursor="), 400, "invalid_input", "cursor"],
  ["a cursor that is no JSON", get("/v1/memories?cursor=AAAA"), 400, "invalid_input", "cursor"],
  [
    "a cursor of another list",
    get(`/v1/events?cursor=${cursor({ v: 1, list: "memories", after: operationId })}`),
    400,
    "invalid_input",
    "cursor"
  ],
  [
    "a cursor of another version",
    get(`/v1/events?cursor=${cursor({ v: 2, list: "events", after: operationId })}`),
    400,
    "invalid_input",
    "cursor"
  ],
  [
    "a cursor with another id",
    get(`/v1/events?cursor=${cursor({ v: 1, list: "events", after: "1" })}`),
    400,
    "invalid_input",
    "cursor"
  ],
  ["a cursor too long", get(`/v1/events?cursor=${"A".repeat(300)}`), 400, "invalid_input", "cursor"],

  // Paths
  ["an id that is none", get("/v1/memories/abc"), 404, "not_found"],
  ["an upper-case id", get(`/v1/events/${operationId.toUpperCase()}`), 404, "not_found"],
  ["an id with NUL", get("/v1/memories/a%00"), 404, "not_found"],
  ["an id with half an escape", get("/v1/memories/%zz"), 400, "invalid_input", ""],
  ["an id of a kilobyte", get(`/v1/memories/${"a".repeat(1_000)}`), 404, "not_found"],
  ["an unknown path", get("/v2/memories"), 404, "not_found"],
  ["the root", get("/"), 404, "not_found"],
  ["a trailing slash", get("/v1/memories/"), 404, "not_found"],
  ["a doubled slash", get("/v1//memories"), 404, "not_found"],
  ["another case", get("/V1/memories"), 404, "not_found"],
  ["a path that is not decodable", get("/v1/%ff"), 400, "invalid_input", ""],
  ["a method that a path has not", { method: "PUT", path: "/v1/memories" }, 405, "method_not_allowed"],
  ["options", { method: "OPTIONS", path: `/v1/memories/${memoryId}` }, 405, "method_not_allowed"],
  ["a method of the documentation", { method: "POST", path: "/openapi.json" }, 405, "method_not_allowed"],

  // Keys
  ["no key", { path: "/v1/memories", key: null }, 401, "unauthenticated"],
  ["an unknown key", { path: "/v1/memories", key: "guess" }, 401, "unauthenticated"],
  [
    "two keys to choose from",
    { path: "/v1/usage", key: null, headers: { authorization: ["Bearer all", "Bearer none"] } },
    400,
    "invalid_input",
    "Authorization"
  ],
  [
    "another scheme",
    { path: "/v1/usage", key: null, headers: { authorization: "Basic YTpi" } },
    401,
    "unauthenticated"
  ],
  ["a key in the query", { path: "/v1/memories?api_key=all", key: null }, 401, "unauthenticated"],
  ["no key is looked at before the body", { ...post, key: null, body: "{" }, 401, "unauthenticated"],
  ["a key that storage cannot look up", { path: "/v1/usage", key: "storage-down" }, 503, "outcome_unknown"]
]

describe("a request that asks wrongly", () => {
  refused(table)

  it.live("with a parameter twice is told that once is enough", () =>
    Effect.gen(function*() {
      const { send } = yield* serve()
      for (const twice of ["limit=1&limit=2", "user_id=a&user_id=a", "cursor=x&cursor=y"]) {
        const { json } = yield* send(get(`/v1/memories?${twice}`))
        assert.deepStrictEqual(json.errors, [{ path: twice.split("=")[0], message: "must be given once" }])
      }
    }))

  it.live("in no UTF-8 is told where", () =>
    Effect.gen(function*() {
      const { send } = yield* serve()
      const query = (yield* send(get("/v1/memories?user_id=q%ff"))).json
      assert.strictEqual(query.detail, "The query is not valid percent-encoded UTF-8.")
      assert.deepStrictEqual(query.errors, [{ path: "user_id", message: "is not valid percent-encoded UTF-8" }])
      const path = (yield* send(get("/v1/memories/%zz?limit=1"))).json
      assert.strictEqual(path.detail, "The path is not valid percent-encoded UTF-8.")
    }))

  it.live("is never told what it sent", () =>
    Effect.gen(function*() {
      const { logs, send } = yield* serve()
      const canary = "canary-7f3a"
      const requests: ReadonlyArray<Request> = [
        json({ ...good, role: canary, content: 7, messages: canary, metadata: canary }),
        json(`{"content": "${canary}`),
        json({ user_id: canary.repeat(100), content: "a" }),
        get(`/v1/memories?limit=${canary}&cursor=${canary}`),
        get(`/v1/memories/${canary}`),
        json(good, { "idempotency-key": `${canary} ${canary}` }),
        patch({ memory: "a" }, { "if-match": canary }),
        get(`/${canary}`)
      ]
      for (const request of requests) {
        const answer = yield* send(request)
        assert.isAtLeast(answer.status, 400)
        assert.notInclude(answer.text, canary)
      }
      assert.notInclude(JSON.stringify(logs), canary)
    }))

  it.live("405 names the methods that the path has", () =>
    Effect.gen(function*() {
      const { send } = yield* serve()
      const allow = (path: string) => Effect.map(send({ method: "PUT", path }), (answer) => answer.headers.allow)
      assert.strictEqual(yield* allow("/v1/memories"), "GET, HEAD, POST")
      assert.strictEqual(yield* allow(`/v1/memories/${memoryId}?x=1`), "DELETE, GET, HEAD, PATCH")
      assert.strictEqual(yield* allow(`/v1/events/${operationId}/input`), "DELETE")
      assert.strictEqual(yield* allow("/docs"), "GET, HEAD")
    }))

  it.live("401 names the scheme", () =>
    Effect.gen(function*() {
      const { send } = yield* serve()
      assert.strictEqual((yield* send({ path: "/v1/usage", key: null })).headers["www-authenticate"], "Bearer")
    }))
})
