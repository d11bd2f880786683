/** The contract tells the truth: its document, its documentation page, and the client that is made from it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest } from "effect/http"
import { HttpApiClient } from "effect/http-api"
import { readFileSync } from "node:fs"
import { ComeBackLater, VersionConflict } from "../../src/domain/Refusal.ts"
import { Api } from "../../src/http/Api.ts"
import { finishedEvent, memory, memoryId, operationId, receipt, serve } from "./harness.ts"

const operations = (document: any): Array<[string, any]> =>
  Object.entries<any>(document.paths).flatMap(([path, methods]) =>
    Object.entries<any>(methods).map(([method, operation]): [string, any] => [
      `${method.toUpperCase()} ${path}`,
      operation
    ])
  )

const openApi = Effect.gen(function*() {
  const { send } = yield* serve()
  const answer = yield* send({ path: "/openapi.json", key: null })
  assert.strictEqual(answer.status, 200)
  return answer.json
})

describe("the OpenAPI document", () => {
  it.live("is 3.1 and lists every route, with the key it needs", () =>
    Effect.gen(function*() {
      const document = yield* openApi
      assert.match(document.openapi, /^3\.1\./)
      assert.deepStrictEqual(operations(document).map(([route]) => route).toSorted(), [
        "DELETE /v1/events/{id}/input",
        "DELETE /v1/memories/{id}",
        "GET /healthz",
        "GET /readyz",
        "GET /v1/events",
        "GET /v1/events/{id}",
        "GET /v1/memories",
        "GET /v1/memories/{id}",
        "GET /v1/memories/{id}/history",
        "GET /v1/usage",
        "GET /v1/usage/transfers",
        "PATCH /v1/memories/{id}",
        "POST /v1/events/{id}/cancel",
        "POST /v1/events/{id}/retry",
        "POST /v1/memories",
        "POST /v1/memories/search"
      ])
      for (const [route, operation] of operations(document)) {
        const open = route.endsWith("z")
        assert.deepStrictEqual(operation.security, open ? [] : [{ bearer: [] }], route)
        assert.isAbove((operation.summary as string).length, 3, route)
        assert.isAbove((operation.description as string).length, 10, route)
        if (!open) assert.match(operation.description, /Needs a key with `[a-z]+:[a-z]+`\.$/, route)
      }
      assert.deepInclude(document.components.securitySchemes.bearer, { type: "http", scheme: "bearer" })
    }))

  it.live("resolves every reference, names every path parameter, and has unique operation ids", () =>
    Effect.gen(function*() {
      const document = yield* openApi
      for (const [, name] of JSON.stringify(document).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
        assert.property(document.components.schemas, name!)
      }
      const ids = operations(document).map(([, operation]) => operation.operationId)
      assert.strictEqual(new Set(ids).size, ids.length)
      for (const [route, operation] of operations(document)) {
        const inPath = [...route.matchAll(/\{(\w+)\}/g)].map((match) => match[1])
        const declared = operation.parameters.filter((parameter: any) => parameter.in === "path")
        assert.deepStrictEqual(declared.map((parameter: any) => parameter.name), inPath, route)
        for (const parameter of operation.parameters) assert.isString(parameter.schema.type, route)
      }
    }))

  it.live("documents headers: those of requests, and those that every answer has", () =>
    Effect.gen(function*() {
      const document = yield* openApi
      const headersOf = (path: string, method: string): Array<string> =>
        document.paths[path][method].parameters.filter((row: any) => row.in === "header").map((row: any) => row.name)
      assert.deepStrictEqual(headersOf("/v1/memories", "post"), ["Idempotency-Key", "Prefer", "X-Request-Id"])
      assert.deepStrictEqual(headersOf("/v1/memories/{id}", "patch"), ["Idempotency-Key", "If-Match", "X-Request-Id"])
      assert.deepStrictEqual(headersOf("/v1/memories/{id}", "delete"), ["Idempotency-Key", "If-Match", "X-Request-Id"])
      assert.deepStrictEqual(headersOf("/v1/events/{id}/retry", "post"), ["Idempotency-Key", "X-Request-Id"])
      for (const [route, operation] of operations(document)) {
        for (const [status, response] of Object.entries<any>(operation.responses)) {
          assert.includeMembers(Object.keys(response.headers), ["X-Request-Id", "Cache-Control"], `${route} ${status}`)
          if (status === "401") assert.property(response.headers, "WWW-Authenticate")
          if (status === "503") assert.isTrue(response.headers["Retry-After"].required, route)
        }
      }
      assert.includeMembers(Object.keys(document.paths["/v1/memories"].post.responses["202"].headers), [
        "Location",
        "Retry-After",
        "Idempotent-Replayed",
        "Preference-Applied"
      ])
      assert.property(document.paths["/v1/memories/{id}"].get.responses["200"].headers, "ETag")
    }))

  it.live("gives every refusal as a problem with its code, and 2xx as JSON", () =>
    Effect.gen(function*() {
      const document = yield* openApi
      for (const [route, operation] of operations(document)) {
        for (const [status, response] of Object.entries<any>(operation.responses)) {
          const type = route.endsWith("z") || Number(status) < 400 ? "application/json" : "application/problem+json"
          assert.deepStrictEqual(Object.keys(response.content), [type], `${route} ${status}`)
          if (type === "application/json") continue
          const { schema } = response.content[type]
          for (const { $ref } of schema.anyOf ?? [schema]) {
            const problem = document.components.schemas[$ref.split("/").at(-1)]
            const { code, status: stated, type: uri } = problem.properties
            assert.deepStrictEqual(stated.enum, [Number(status)])
            assert.strictEqual(uri.enum[0], `urn:indelible:problem:${code.enum[0]}`)
            assert.includeMembers(problem.required, [
              "type", "title", "status", "code", "detail", "request_id", "retryable"
            ])
          }
        }
      }
    }))

  it.live("names the problems that belong to no route", () =>
    Effect.gen(function*() {
      const { info } = yield* openApi
      for (const code of ["not_found", "method_not_allowed", "malformed_http", "request_timeout", "headers_too_large"]) {
        assert.include(info.description, `\`${code}\``)
      }
    }))

  it.live("bounds what it takes as the server does", () =>
    Effect.gen(function*() {
      const document = yield* openApi
      const limit = document.paths["/v1/events"].get.parameters.find((row: any) => row.name === "limit")
      assert.deepStrictEqual(limit.schema, { type: "integer", minimum: 1, maximum: 100, default: 50 })
      const { AddMemory, EditMemory, Search } = document.components.schemas
      assert.deepInclude(AddMemory.properties.messages, { minItems: 1, maxItems: 500 })
      assert.deepInclude(AddMemory.properties.user_id, { minLength: 1, maxLength: 512 })
      for (const body of [AddMemory, EditMemory, Search]) assert.isFalse(body.additionalProperties)
    }))
})

describe("the documentation page", () => {
  it.live("is one page that loads nothing, and may load nothing", () =>
    Effect.gen(function*() {
      const { send } = yield* serve()
      const answer = yield* send({ path: "/docs", key: null })
      assert.strictEqual(answer.status, 200)
      assert.match(answer.headers["content-type"]!, /^text\/html/)
      assert.notMatch(answer.text, /<(?:script|link|img|iframe)\b[^>]*\s(?:src|href)\s*=/i)
      for (const off of ["\"withDefaultFonts\":false", "\"telemetry\":false"]) assert.include(answer.text, off)
      const policy = answer.headers["content-security-policy"]!
      assert.include(policy, "default-src 'none'")
      assert.notMatch(policy, /https?:|\*/)
      assert.include(policy, "connect-src 'self'")
    }))
})

/** The files that a module loads, itself included: types are erased, and load nothing. */
const loadedBy = (url: URL, seen = new Set<string>()): ReadonlySet<string> => {
  if (seen.has(url.pathname)) return seen
  seen.add(url.pathname)
  const source = readFileSync(url, "utf8")
  for (const [, path] of source.matchAll(/^(?:import|export) (?!type )[^"]*from "(\.[^"]+)"/gm)) {
    loadedBy(new URL(path!, url), seen)
  }
  return seen
}

describe("a client made from the contract", () => {
  it("loads no server code: nothing but the domain and the contract itself", () => {
    const api = new URL("../../src/http/Api.ts", import.meta.url)
    const loaded = [...loadedBy(api)].map((path) => path.split("/src/")[1]!)
    assert.includeMembers(loaded, ["http/MemoriesApi.ts", "http/Problems.ts", "domain/Command.ts"])
    for (const path of loaded) {
      assert.match(path, /^(?:domain|http)\//)
      assert.notMatch(path, /Handlers|Server|Edge|Authenticate\.ts|Body|Refuse/)
    }
  })

  const client = Effect.fnUntraced(function*(port: number) {
    return yield* HttpApiClient.make(Api, {
      transformClient: HttpClient.mapRequest((request) =>
        request.pipe(HttpClientRequest.prependUrl(`http://127.0.0.1:${port}`), HttpClientRequest.bearerToken("all"))
      )
    })
  }, Effect.provide(Layer.fresh(FetchHttpClient.layer)))

  it.live("writes, reads and pages", () =>
    Effect.gen(function*() {
      const { port } = yield* serve({
        commands: {
          infer: () => Effect.succeed(receipt),
          add: () => Effect.succeed({ event: finishedEvent, replayed: true })
        },
        memories: { get: () => Effect.succeed(memory), list: ({ limit }) => Effect.succeed(Array(limit).fill(memory)) },
        events: { get: () => Effect.succeed(finishedEvent) }
      })
      const { events, memories } = yield* client(port)
      const accepted = yield* memories.add({
        headers: { "idempotency-key": "k" },
        payload: { content: "tea", user_id: "ada" }
      })
      assert.deepInclude(accepted.headers, { location: `/v1/events/${operationId}`, "retry-after": "1" })
      assert.strictEqual(accepted.body.replayed, false)
      const stored = yield* memories.add({ headers: {}, payload: { content: "tea", user_id: "ada", infer: false } })
      assert.isTrue(stored.body.replayed)
      const read = yield* memories.get({ params: { id: memoryId } })
      assert.strictEqual(read.headers.etag, "\"3\"")
      const page = yield* memories.list({ query: { user_id: "ada", limit: 2 } })
      assert.strictEqual(page.data.length, 2)
      const event = yield* events.get({ params: { id: operationId }, query: {} })
      assert.strictEqual(event.body.outcome, "stored")
    }))

  it.live("learns each refusal by its own type", () =>
    Effect.gen(function*() {
      const { port } = yield* serve({
        commands: { update: () => Effect.fail(new VersionConflict({ current: 7 })) },
        events: { list: () => Effect.fail(new ComeBackLater({ reason: "shutting_down" })) }
      })
      const { events, memories } = yield* client(port)
      const conflict = yield* Effect.flip(memories.update({
        params: { id: memoryId },
        headers: { "if-match": "\"3\"" },
        payload: { memory: "tea" }
      }))
      assert.strictEqual(conflict._tag, "VersionConflictProblem")
      assert.deepInclude(conflict, { code: "version_conflict", current_version: 7 })
      const away = yield* Effect.flip(events.list({ query: {} }))
      assert.strictEqual(away._tag, "ShuttingDown")
      const missing = yield* Effect.flip(memories.add({ headers: {}, payload: { content: "tea", user_id: "ada" } }))
      assert.strictEqual(missing._tag, "IdempotencyKeyRequired")
    }))
})
