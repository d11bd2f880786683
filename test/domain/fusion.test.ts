/** Rankings become one by ranks alone, and the small arithmetic underneath a search. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { contains } from "../../src/domain/Containment.ts"
import { fuse } from "../../src/domain/Fusion.ts"
import { best, dot, unit } from "../../src/domain/Vector.ts"

const items = (fused: ReturnType<typeof fuse<string>>) => fused.map(({ item }) => item)

describe("fusion", () => {
  it("what is first in every list scores 1 and comes first", () => {
    const fused = fuse([["a", "b"], ["a", "c"]])
    assert.deepStrictEqual(fused[0], { item: "a", score: 1 })
  })

  it("a good place in both lists beats the first place in one", () => {
    assert.strictEqual(items(fuse([["x", "both"], ["y", "both"]]))[0], "both")
  })

  it("an empty list takes nothing from the other's order", () => {
    assert.deepStrictEqual(items(fuse([[], ["b", "a", "c"]])), ["b", "a", "c"])
    assert.strictEqual(fuse([[], ["b"]])[0]!.score, 0.5)
  })

  it("equals keep the order in which the lists name them", () => {
    assert.deepStrictEqual(items(fuse([["m", "n"], ["p", "q"]])), ["m", "p", "n", "q"])
  })

  it("a repeat within a list gains nothing", () => {
    assert.deepStrictEqual(fuse([["a", "a", "b"], []]), fuse([["a", "b"], []]))
  })

  const Ranking = Schema.Array(Schema.Literals(["a", "b", "c", "d", "e", "f"]))

  it.prop("every item comes out once, best first, with a score above 0 and at most 1", [Ranking, Ranking], ([one, two]) => {
    const fused = fuse([one, two])
    assert.deepStrictEqual(new Set(items(fused)), new Set([...one, ...two]))
    assert.strictEqual(fused.length, new Set([...one, ...two]).size)
    for (const [index, { score }] of fused.entries()) {
      assert.isTrue(score > 0 && score <= 1)
      assert.isTrue(index === 0 || fused[index - 1]!.score >= score)
    }
  })
})

describe("vectors", () => {
  it("a vector of another dimension, without length, or with a component that is no number is none", () => {
    assert.isNull(unit(Float32Array.of(1, 2), 3))
    assert.isNull(unit(Float32Array.of(0, 0, 0), 3))
    assert.isNull(unit(Float32Array.of(1, NaN, 0), 3))
    assert.isNull(unit(Float32Array.of(1, Infinity, 0), 3))
  })

  it.prop(
    "a unit vector has length 1, whatever its dimension",
    [Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: -1_000, maximum: 1_000 })))],
    ([components]) => {
      const made = unit(Float32Array.from([1, ...components]), components.length + 1)!
      assert.closeTo(dot(made, made), 1, 1e-5)
    }
  )

  it.prop(
    "the best of a stream are the first of its sorted whole",
    [Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 }))), Schema.Literals([0, 1, 3, 100])],
    ([scores, limit]) => {
      const { kept, offer } = best<number>(limit)
      for (const [place, score] of scores.entries()) offer(place, score)
      const sorted = scores.map((score, item) => ({ item, score })).toSorted((a, b) => b.score - a.score)
      assert.deepStrictEqual([...kept], sorted.slice(0, limit))
    }
  )
})

describe("containment", () => {
  it("holds pairs, nested pairs, and elements in any order", () => {
    const outer = { team: "blue", tags: ["a", "b", { deep: 1 }], at: { city: "Paris", year: 2024 } }
    assert.isTrue(contains(outer, {}))
    assert.isTrue(contains(outer, { team: "blue", at: { year: 2024 } }))
    assert.isTrue(contains(outer, { tags: ["b", "a", "a"] }))
    assert.isTrue(contains(outer, { tags: [{}] }))
    assert.isFalse(contains(outer, { team: "red" }))
    assert.isFalse(contains(outer, { tags: "a" }))
    assert.isFalse(contains(outer, { at: ["city"] }))
    assert.isFalse(contains(outer, { missing: null }))
    assert.isFalse(contains({}, { toString: null }))
  })
})
