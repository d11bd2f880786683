import { assert, describe, it } from "@effect/vitest"
import { beginning } from "../../src/domain/Text.ts"

describe("the beginning of a text", () => {
  it("is all of it where there is room", () => {
    for (const text of ["", "tea", "a😀"]) assert.strictEqual(beginning(text, 3), text)
  })

  it("has no half of a character", () => {
    assert.strictEqual(beginning("a😀b", 2), "a")
    assert.strictEqual(beginning("a😀b", 3), "a😀")
    assert.isTrue(beginning(`${"a".repeat(1_999)}😀 hello`, 2_000).isWellFormed())
  })
})
