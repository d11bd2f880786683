/** Every answer that the OpenAPI document promises is given, and is as promised: status, headers, problem, body. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Refusal from "../../src/domain/Refusal.ts"
import { bodyMaxBytes } from "../../src/http/Limits.ts"
import { type Answer, event, finishedEvent, memory, memoryId, operationId, receipt, type Request, serve } from "./harness.ts"
import { violations } from "./jsonSchema.ts"

/** How the services answer: as they like, or all in one way. */
let mood: Effect.Effect<never, any> | null = null
let readiness = true
const liking = <A>(value: () => A) => () => Effect.suspend(() => mood ?? Effect.succeed(value()))

let heldReceipt: typeof receipt | Record<string, unknown> = receipt
let replayed = false
let current = event

const version = { memoryId, version: 1, change: "add", text: "likes tea", operationId, at: memory.createdAt } as const
const transfer = {
  workspaceId: memory.workspaceId,
  seq: 12n,
  kind: "grant",
  operationId: null,
  authorizationNo: null,
  amount: 2n,
  reference: "invoice",
  at: memory.createdAt
} as const

const completed = liking(() => ({ event: finishedEvent, replayed }))
const server = serve({
  commands: { infer: liking(() => heldReceipt as typeof receipt), add: completed, update: completed, delete: completed },
  memories: {
    list: liking(() => [memory]),
    get: liking(() => memory),
    history: liking(() => [version]),
    search: liking(() => ({ hits: [{ memory, score: 1, similarity: 0.5 }], semantic: true }))
  },
  events: { list: liking(() => [event, finishedEvent]), get: liking(() => current), wait: liking(() => finishedEvent) },
  retries: {
    retry: liking(() => heldReceipt as typeof receipt),
    cancel: liking(() => finishedEvent),
    purgeInput: liking(() => finishedEvent)
  },
  usage: {
    balances: liking(() => ({ available: 1n, reserved: 2n, consumed: 3n, issued: 6n })),
    transfers: liking(() => [transfer])
  },
  readiness: {
    check: Effect.sync(() => ({ ready: readiness, checks: { storage: readiness ? "ok" as const : "failing" as const } }))
  }
})

/** What a service says to be answered with each problem. */
const refusals: Record<string, Effect.Effect<never, any>> = {
  idempotency_conflict: Effect.fail(new Refusal.IdempotencyConflict({ operationId })),
  insufficient_credit: Effect.fail(new Refusal.InsufficientCredit({ required: 2n, available: 1n })),
  not_found: Effect.fail(new Refusal.NotFound({ what: "memory" })),
  version_conflict: Effect.fail(new Refusal.VersionConflict({ current: 5 })),
  wrong_state: Effect.fail(new Refusal.WrongState({ state: "running" })),
  input_gone: Effect.fail(new Refusal.InputGone()),
  overloaded: Effect.fail(new Refusal.ComeBackLater({ reason: "overloaded" })),
  outcome_unknown: Effect.fail(new Refusal.ComeBackLater({ reason: "outcome_unknown" })),
  shutting_down: Effect.fail(new Refusal.ComeBackLater({ reason: "shutting_down" })),
  internal: Effect.die(new Error("broken"))
}

const key = { "idempotency-key": "k" }

/** How a caller asks to be answered with each problem. */
const mistakes: Record<string, (right: Request) => Request> = {
  "400 invalid_input": (right) => ({ ...right, path: `${right.path}?nope=1` }),
  "422 invalid_input": (right) => ({ ...right, body: { nope: 1 } }),
  "400 idempotency_key_required": ({ headers: _, ...right }) => right,
  "400 idempotency_key_invalid": (right) => ({ ...right, headers: { "idempotency-key": "a b" } }),
  "401 unauthenticated": (right) => ({ ...right, key: null }),
  "403 forbidden_scope": (right) => ({ ...right, key: "none" }),
  "413 payload_too_large": (right) => ({ ...right, body: " ".repeat(bodyMaxBytes + 1) }),
  "415 unsupported_media_type": (right) => ({ ...right, headers: { ...right.headers, "content-type": "text/plain" } })
}

/** Headers that belong to the connection, or to what a body is. */
const transport = new Set(["connection", "content-length", "content-type", "date", "keep-alive", "transfer-encoding", "vary"])

interface Route {
  readonly name: string
  readonly operation: any
  readonly right: Request
}

const routesOf = (document: any): ReadonlyArray<Route> =>
  Object.entries<any>(document.paths).flatMap(([path, methods]) =>
    Object.entries<any>(methods).map(([method, operation]) => {
      const content = operation.requestBody?.content["application/json"]
      return {
        name: `${method.toUpperCase()} ${path}`,
        operation,
        right: {
          method: method.toUpperCase(),
          path: path.replace("{id}", path.includes("memories") ? memoryId : operationId),
          headers: key,
          ...(content === undefined ? {} : { body: Object.values<any>(content.examples)[0].value })
        }
      }
    })
  )

/** The codes of the problems behind a documented response. */
const codesOf = (document: any, response: any): ReadonlyArray<string> => {
  const schema = response.content["application/problem+json"]?.schema
  return schema === undefined ? [] : (schema.anyOf ?? [schema]).map(({ $ref }: { $ref: string }) =>
    document.components.schemas[$ref.split("/").at(-1)!].properties.code.enum[0])
}

/** Everything in an answer that the document does not say, and everything that it says and the answer has not. */
const unlike = (document: any, { operation }: Route, answer: Answer): ReadonlyArray<string> => {
  const response = operation.responses[answer.status]
  if (response === undefined) return [`status ${answer.status} is not in the document`]
  const declared = new Map(Object.entries<any>(response.headers).map(([name, header]) => [name.toLowerCase(), header]))
  const [type] = (answer.headers["content-type"] ?? "").split(";")
  const schema = response.content[type!]?.schema
  return [
    ...Object.keys(answer.headers).filter((name) => !transport.has(name) && !declared.has(name)).map((name) => `undocumented ${name}`),
    ...[...declared].flatMap(([name, header]) => {
      const value = answer.headers[name]
      if (value === undefined) return header.required ? [`no ${name}`] : []
      return violations(document, header.schema, value).map((wrong) => `${name} ${wrong}`)
    }),
    ...schema === undefined ? [`${type} is not in the document`] : violations(document, schema, answer.json)
  ]
}

describe("each route of the OpenAPI document", () => {
  it.live("answers with every problem that it names, as it describes it", () =>
    Effect.gen(function*() {
      const { send } = yield* server
      const document = (yield* send({ path: "/openapi.json" })).json
      let met = 0
      for (const route of routesOf(document)) {
        for (const [status, response] of Object.entries<any>(route.operation.responses)) {
          for (const code of codesOf(document, response)) {
            const where = `${route.name}: ${status} ${code}`
            const mistake = mistakes[`${status} ${code}`]
            mood = mistake === undefined ? refusals[code]! : null
            const answer = yield* send(mistake === undefined ? route.right : mistake(route.right))
            assert.strictEqual(`${answer.status} ${answer.json.code}`, `${status} ${code}`, where)
            assert.deepStrictEqual(unlike(document, route, answer), [], where)
            met++
          }
        }
      }
      mood = null
      assert.isAbove(met, 100)
    }))

  it.live("gives every success that it names, with every header that it names, as it describes it", () =>
    Effect.gen(function*() {
      const { send } = yield* server
      const document = (yield* send({ path: "/openapi.json" })).json
      for (const route of routesOf(document)) {
        const seen = new Set<string>()
        const look = Effect.fnUntraced(function*(request: Request) {
          const answer = yield* send(request)
          assert.deepStrictEqual(unlike(document, route, answer), [], `${route.name}: ${answer.status}`)
          for (const name of Object.keys(answer.headers)) seen.add(`${answer.status} ${name}`)
        })
        const { headers, ...keyless } = route.right
        for (const request of [route.right, { ...keyless, headers: { ...headers, prefer: "wait=1", "if-match": "\"2\"" } }]) {
          for (const again of [false, true]) {
            replayed = again
            heldReceipt = { ...receipt, replayed: again, status: again ? "succeeded" : "pending" }
            current = again ? finishedEvent : event
            readiness = !again
            yield* look(request)
            if (route.name === "POST /v1/memories") yield* look({ ...request, body: { ...request.body as object, infer: false } })
          }
        }
        for (const [status, response] of Object.entries<any>(route.operation.responses)) {
          if (codesOf(document, response).length > 0) continue
          for (const name of Object.keys(response.headers)) {
            assert.isTrue(seen.has(`${status} ${name.toLowerCase()}`), `${route.name}: ${status} never has ${name}`)
          }
        }
      }
    }))

  it.live("takes the examples that it gives, and the request id", () =>
    Effect.gen(function*() {
      const { send } = yield* server
      const document = (yield* send({ path: "/openapi.json" })).json
      for (const { name, operation, right } of routesOf(document)) {
        const sent = operation.parameters.find((row: any) => row.in === "header" && row.name === "X-Request-Id")
        assert.isDefined(sent, name)
        const id = "r".repeat(64)
        assert.deepStrictEqual(violations(document, sent.schema, id), [])
        assert.strictEqual((yield* send({ ...right, headers: { ...key, "x-request-id": id } })).headers["x-request-id"], id)
        const content = operation.requestBody?.content["application/json"]
        for (const { summary, value } of Object.values<any>(content?.examples ?? {})) {
          assert.deepStrictEqual(violations(document, content.schema, value), [], `${name}: ${summary}`)
          assert.isBelow((yield* send({ ...right, body: value })).status, 300, `${name}: ${summary}`)
        }
      }
    }))
})
