/** A refused body is explained in full, by place, without repeating a word of it. */
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import * as Arbitrary from "effect/Arbitrary"
import { AddBody } from "../../src/domain/Command.ts"
import { decodeBody } from "../../src/domain/Decode.ts"
import * as Ids from "../../src/domain/Ids.ts"
import { problemsMax } from "../../src/domain/Problem.ts"

const errorsOf = (body: unknown) => {
  const result = decodeBody(AddBody)(body)
  return Result.isFailure(result) ? result.failure.errors : []
}

describe("decoding a body", () => {
  it("names every problem at its own place", () => {
    const body = {
      messages: [{ role: "user", content: "x" }, { role: "robot", content: 5, colour: "red" }, { role: "user" }],
      user_id: "",
      "a/b~c": 1,
      infer: "yes",
      event_date: "soon",
      metadata: { fine: 1, bad: undefined }
    }
    assert.deepStrictEqual(errorsOf(body).toSorted((a, b) => a.path < b.path ? -1 : 1), [
      { path: "/a~1b~0c", message: "is not a known field" },
      { path: "/event_date", message: "must be an ISO 8601 date, or date and time with Z or an offset" },
      { path: "/infer", message: "must be boolean" },
      { path: "/messages/1/colour", message: "is not a known field" },
      { path: "/messages/1/content", message: "must be string" },
      { path: "/messages/1/role", message: "must be \"user\" | \"assistant\" | \"system\" | \"tool\"" },
      { path: "/messages/2/content", message: "is required" },
      { path: "/metadata/bad", message: "must be JSON value" },
      { path: "/user_id", message: "must not be empty" }
    ])
  })

  it("what is missing is called missing, and not blank", () => {
    const scope = { path: "", message: "at least one of user_id, agent_id, run_id, app_id is required" }
    const text = { path: "", message: "exactly one of messages and content is required" }
    const blank = { path: "", message: "there is no text to remember: all of it is blank" }
    assert.deepStrictEqual(errorsOf({}), [scope, text])
    assert.deepStrictEqual(errorsOf({ user_id: "u" }), [text])
    assert.deepStrictEqual(errorsOf({ content: "x" }), [scope])
    assert.deepStrictEqual(errorsOf({ user_id: "u", content: "" }), [blank])
    assert.deepStrictEqual(errorsOf({ user_id: "u", messages: [{ role: "user", content: "\n " }] }), [blank])
  })

  it("an id that is not one is told how they look, in words", () => {
    const ids = Object.entries(Ids).filter(([, value]) => Schema.isSchema(value))
    assert.isAbove(ids.length, 5)
    for (const [name, schema] of ids) {
      const result = decodeBody(schema as Schema.Codec<unknown>)("\u0000 No Id")
      assert.isTrue(Result.isFailure(result), name)
      assert.notMatch(Result.isFailure(result) ? result.failure.errors[0]!.message : "RegExp", /RegExp|\^/, name)
    }
  })

  it("a body that is no object is refused at the root", () => {
    for (const body of [null, 1, "x", [], undefined]) {
      assert.deepStrictEqual(errorsOf(body), [{ path: "", message: "must be object" }])
    }
  })

  it("metadata holds no text that the database cannot", () => {
    for (const metadata of [{ a: "\u0000" }, { "\u0000": 1 }, { a: [{ b: "\ud800" }] }, { "\udfff": null }]) {
      assert.deepStrictEqual(errorsOf({ user_id: "u", content: "x", metadata })[0], {
        path: "/metadata",
        message: "must not contain NUL or a lone surrogate"
      })
    }
    for (const metadata of [{ "\\": 1 }, { a: { "\"": 1 } }, { a: [[{ "\n": 1 }]] }]) {
      assert.deepStrictEqual(errorsOf({ user_id: "u", content: "x", metadata }), [
        { path: "/metadata", message: "must have names without quotation marks, backslashes and control characters" }
      ])
    }
    assert.deepStrictEqual(errorsOf({ user_id: "u", content: "x", metadata: { "é 🏠/~": "\"\\\n" } }), [])
  })

  it("problems and the names in their paths are bounded", () => {
    const body = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`field${index}`, 1]))
    assert.strictEqual(errorsOf(body).length, problemsMax)
    const [problem] = errorsOf({ user_id: "u", content: "x", ["n".repeat(100_000)]: 1 })
    assert.strictEqual(problem?.path, `/${"n".repeat(64)}…`)
    assert.isTrue(errorsOf({ user_id: "u", content: "x", [`${"n".repeat(63)}😀`]: 1 })[0]!.path.isWellFormed())
  })

  it.prop("no message repeats a value that was sent", {
    value: Arbitrary.schema(Schema.Union([Schema.String, Schema.Finite, Schema.Array(Schema.String)]))
  }, ({ value }) => {
    const sent = typeof value === "string" ? `s3cret ${value}\u0000` : [`s3cret ${value}`]
    const fields = ["user_id", "content", "infer", "metadata", "event_date", "instructions", "unknown"]
    for (const field of fields) {
      const body = { messages: [{ role: sent, content: sent, name: sent }], [field]: sent }
      for (const { message, path } of errorsOf(body)) {
        assert.notInclude(message + path, "s3cret")
      }
    }
  })
})
