/** Strict JSON takes what every party reads alike, and survives whatever else it is given. */
import { assert, describe, it } from "@effect/vitest"
import canonicalize from "canonicalize"
import { Result, Schema } from "effect"
import * as Arbitrary from "effect/Arbitrary"
import { problemsMax } from "../../src/domain/Problem.ts"
import { nestingMax, parse } from "../../src/domain/StrictJson.ts"
import { metadata, respell, seeds, streamOf } from "./arbitraries.ts"

const problemsOf = (text: string) => {
  const result = parse(text)
  return Result.isFailure(result) ? result.failure : []
}
const nested = (levels: number, open: string, close: string) => `${open.repeat(levels)}1${close.repeat(levels)}`

const refused: ReadonlyArray<readonly [text: string, path: string, message: string]> = [
  ["", "", "is not valid JSON (line 1, column 1)"],
  ["{", "", "is not valid JSON (line 1, column 2)"],
  ["[1,]", "", "is not valid JSON (line 1, column 4)"],
  ["{\"a\":1,\n}", "", "is not valid JSON (line 2, column 1)"],
  ["[1] // comment", "", "is not valid JSON (line 1, column 5)"],
  ["/* comment */ 1", "", "is not valid JSON (line 1, column 1)"],
  ["{'a':1}", "", "is not valid JSON (line 1, column 2)"],
  ["[1 2]", "", "is not valid JSON (line 1, column 4)"],
  ["1 1", "", "is not valid JSON (line 1, column 3)"],
  ["{\"a\":1,\"a\":1}", "/a", "is there twice"],
  ["{\"x\":[{\"a\":1,\"\\u0061\":2}]}", "/x/0/a", "is there twice"],
  ["{\"a/b\":{\"~\":1,\"~\":2}}", "/a~1b/~0", "is there twice"],
  ["{\"a\":9007199254740992}", "/a", "is an integer beyond ±9007199254740991"],
  ["[-9007199254740993]", "/0", "is an integer beyond ±9007199254740991"],
  ["[0,1e21]", "/1", "is an integer beyond ±9007199254740991"],
  ["[9007199254740993.0]", "/0", "is an integer beyond ±9007199254740991"],
  ["1e400", "", "is a number out of range"],
  ["{\"a\":[-1e999]}", "/a/0", "is a number out of range"],
  ["\"a\\u0000b\"", "", "must not contain NUL"],
  ["{\"a\\u0000\":1}", "/a\u0000", "must not contain NUL"],
  ["{\"a\":\"\\ud800\"}", "/a", "must not contain a lone surrogate"],
  ["[\"\\udc00\\ud800\"]", "/0", "must not contain a lone surrogate"],
  ["{\"\\ud800\":1}", "/\uFFFD", "must not contain a lone surrogate"],
  ["{\"__proto__\":{\"admin\":true}}", "/__proto__", "is a reserved name"],
  ["{\"a\":{\"\\u005f_proto__\":1}}", "/a/__proto__", "is a reserved name"],
  [nested(nestingMax + 1, "[", "]"), "", "must not nest deeper than 32 levels"],
  [nested(nestingMax + 1, "{\"a\":", "}"), "", "must not nest deeper than 32 levels"]
]

describe("strict JSON", () => {
  it("refuses with the place, and in our own words", () => {
    for (const [text, path, message] of refused) assert.deepStrictEqual(problemsOf(text), [{ path, message }], text)
  })

  it("never accepts what JSON.parse refuses", () => {
    const numbers = ["NaN", "Infinity", "01", "+1", ".5", "1.", "-", "1e", "0x1"]
    const texts = ["\"\t\"", "\"\\x41\"", "\"a\nb\"", "'a'", "\"a"]
    for (const text of [...numbers, ...texts, "undefined", "\uFEFF1", "\u00a01", "tru", "[,]", "[1}"]) {
      assert.match(problemsOf(text)[0]!.message, /^is not valid JSON( \(line \d+, column \d+\))?$/, text)
    }
  })

  it("survives a quarter of a megabyte of openers, however they are mixed", () => {
    const size = 262_144
    const hostile = ["[", "{\"a\":", "[{", "[}", "[},", "\"\n[", "{[", "[\"", "[[]", "[],[", "{\"a\":[", "\\[", "\"\\"]
    for (const unit of hostile) {
      assert.strictEqual(problemsOf(unit.repeat(Math.ceil(size / unit.length))).length, 1, unit)
    }
    assert.strictEqual(problemsOf(nested(size / 2, "[", "]")).length, 1)
    assert.strictEqual(problemsOf(`[${"[],".repeat(size / 4)}`).length, 1)
  })

  it("a name may be there once in each object", () => {
    for (const text of ["[{\"a\":1},{\"a\":1}]", "{\"a\":{\"a\":{},\"b\":1},\"b\":{\"a\":1}}"]) {
      assert.deepStrictEqual<unknown>(Result.getOrThrow(parse(text)), JSON.parse(text))
    }
  })

  it("takes a quarter of a megabyte of siblings, and what looks deep inside a string", () => {
    const wide = `[${Array.from({ length: 65_536 }, () => "{}").join(",")}]`
    assert.isTrue(Result.isSuccess(parse(wide)))
    assert.isTrue(Result.isSuccess(parse(JSON.stringify("[{\\\"".repeat(65_536)))))
    assert.isTrue(Result.isSuccess(parse(nested(nestingMax, "[", "]"))))
    assert.isTrue(Result.isSuccess(parse(nested(nestingMax, "{\"a\":", "}"))))
  })

  it("reports everything that is wrong, up to a bound", () => {
    assert.deepStrictEqual(problemsOf("{\"a\":1e400,\"a\":\"\\u0000\"}").map(({ path }) => path), ["/a", "/a", "/a"])
    assert.strictEqual(problemsOf(`[${Array.from({ length: 1_000 }, () => "1e400").join(",")}]`).length, problemsMax)
  })

  it("a name is read as it is written, whatever names were read before", () => {
    for (const poison of ["\\\\", "\\\\u", "\\\\u00"]) assert.isTrue(Result.isSuccess(parse(`{"b":0,"${poison}":0}`)))
    assert.deepStrictEqual<unknown>(Result.getOrThrow(parse("{\"b\":0,\"\\u0078\":1}")), { b: 0, x: 1 })
    assert.deepStrictEqual<unknown>(Result.getOrThrow(parse("{\"b\":0,\"\\u0078y\":1}")), { b: 0, xy: 1 })
    assert.deepStrictEqual<unknown>(Result.getOrThrow(parse("{\"b\":0,\"\\n\":1}")), { b: 0, "\n": 1 })
  })

  it("minus zero is zero, wherever it is", () => {
    assert.deepStrictEqual(Result.getOrThrow(parse("-0")), 0)
    const value = Result.getOrThrow(parse("{\"a\":[-0.0,{\"b\":-0e5}],\"c\":-1}"))
    assert.strictEqual(JSON.stringify(value), "{\"a\":[0,{\"b\":0}],\"c\":-1}")
    assert.isFalse(Object.is((value as { a: ReadonlyArray<number> }).a[0], -0))
  })

  it.prop("a value that every party reads alike is read as it is", {
    value: metadata,
    seed: seeds
  }, ({ seed, value }) => {
    const read = Result.getOrThrow(parse(respell(value, streamOf(seed))))
    assert.strictEqual(canonicalize(read), canonicalize(value))
  }, { arbitrary: { runs: 200 } })

  it.prop("no message repeats what was sent, whatever was sent", {
    text: Arbitrary.schema(Schema.String.check(Schema.isMinLength(8)))
  }, ({ text }) => {
    const secret = `s3cret${text.replaceAll("\"", "")}`
    for (const sent of [secret, `{"a":"${secret}`, `{"a":"${secret}\\u0000"}`, `[1,"${secret}"`, `"${secret}" 1`]) {
      for (const { message, path } of problemsOf(sent)) assert.notInclude(message + path, "s3cret")
    }
  }, { arbitrary: { runs: 200 } })
})
