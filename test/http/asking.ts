/** Requests that ask wrongly, and what their answer must be: a problem document, before any service is called. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Answer, memoryId, type Request, serve } from "./harness.ts"

/** What is wrong, the request, the status and code of its answer, and the paths of the faults that it names. */
export type Row = readonly [
  what: string,
  request: Request,
  status: number,
  code: string,
  ...paths: ReadonlyArray<string>
]

export const post = { method: "POST", path: "/v1/memories", headers: { "idempotency-key": "k" } } as const

export const good = { content: "I like tea", user_id: "ada" }

export const json = (body: string | object, headers: Record<string, string> = {}): Request => ({
  ...post,
  headers: { ...post.headers, ...headers },
  body
})

export const patch = (body: object, headers: Record<string, string> = {}): Request => ({
  method: "PATCH",
  path: `/v1/memories/${memoryId}`,
  headers,
  body
})

export const search = (body: object): Request => ({ method: "POST", path: "/v1/memories/search", body })

export const get = (path: string): Request => ({ path })

const assertProblem = (answer: Answer, status: number, code: string, paths: ReadonlyArray<string>): void => {
  assert.strictEqual(answer.status, status)
  assert.strictEqual(answer.headers["content-type"], "application/problem+json")
  assert.deepInclude(answer.json, {
    type: `urn:indelible:problem:${code}`,
    status,
    code,
    request_id: answer.headers["x-request-id"]
  })
  assert.isString(answer.json.title)
  assert.match(answer.json.detail, /\.$/)
  if (code === "invalid_input") {
    const found = answer.json.errors.map((error: { path: string }) => error.path)
    assert.deepStrictEqual([...new Set(found)].toSorted(), [...paths].toSorted())
    for (const { message } of answer.json.errors) assert.isAbove(message.length, 5)
  } else assert.isUndefined(answer.json.errors)
}

/** One test for each row. No service is scripted: to call one would be a defect. */
export const refused = (rows: ReadonlyArray<Row>): void => {
  for (const [what, request, status, code, ...paths] of rows) {
    const where = paths.length > 0 ? ` at ${paths.map((path) => `"${path}"`).join(", ")}` : ""
    it.live(`${what}: ${status} ${code}${where}`, () =>
      Effect.gen(function*() {
        const { logs, send } = yield* serve()
        assertProblem(yield* send(request), status, code, paths)
        assert.deepStrictEqual(logs.filter((line) => line.level === "Error"), [])
      }))
  }
}
