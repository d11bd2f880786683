/** Each decision has numbers of its own: uniform, independent of all others, and the same for ever. */
import { assert, describe, it } from "@effect/vitest"
import { root } from "../../src/sim/Keyed.ts"

const many = 20_000
const indexes = Array.from({ length: many }, (_, index) => index)
const key = root("a seed")

/** How far the counts of `buckets` are from even, by chi-squared, in standard deviations above what chance gives. */
const unevenness = (draws: ReadonlyArray<number>, buckets: number): number => {
  const counts = Array.from({ length: buckets }, () => 0)
  for (const draw of draws) counts[draw]!++
  const expected = draws.length / buckets
  const chi = counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
  return (chi - (buckets - 1)) / Math.sqrt(2 * (buckets - 1))
}

describe("keyed randomness", () => {
  it("depends on every part of the key, and on where they are split", () => {
    const keys = [
      key, key.of(""), key.of("a"), key.of("b"), key.of("ab"), key.of("a").of("b"), key.of("b").of("a"),
      key.of(1), key.of("1"), key.of(0), key.of(-1), key.of(2 ** 32), key.of(2 ** 32 + 1), key.of(2 ** 33), key.of(1.5),
      root("a seed ").of("a"), root(1).of("a"), root(2).of("a"), root(2 ** 32 + 1).of("a"),
      key.at("crash", "worker", "op", 1), key.at("crash", "worker", "op", 2), key.at("crash", "worke", "rop", 1)
    ]
    assert.strictEqual(new Set(keys.map((one) => one.unit())).size, keys.length)
  })

  it("gives the same numbers on every machine and in every version", () => {
    const fault = root(1).at("fault", "worker-1", "op-1", 0)
    const drawn = [root(1).unit(), root("x").of("y").of(3).unit(), fault.below(1_000_000)]
    assert.deepStrictEqual(drawn, [0.9764699354662856, 0.362059952557805, 191924])
    assert.deepStrictEqual([...root(1).bytes(5)], [247, 143, 124, 114, 217])
  })

  it("is uniform along an index, along names and along seeds", () => {
    const along = [
      indexes.map((index) => key.of(index)),
      indexes.map((index) => key.of(`op-${index}`)),
      indexes.map((index) => root(index)),
      indexes.map((index) => root(index).of("crash").of("worker-1")),
      indexes.map((index) => key.of(Math.floor(index / 100)).of(index % 100))
    ]
    for (const keys of along) {
      assert.isBelow(Math.abs(unevenness(keys.map((one) => one.below(100)), 100)), 5)
      assert.isBelow(Math.abs(unevenness(keys.map((one) => one.word() & 255), 256)), 5)
      const pairs = keys.slice(1).map((one, index) => one.below(10) * 10 + keys[index]!.below(10))
      assert.isBelow(Math.abs(unevenness(pairs, 100)), 5)
    }
  })

  it("keeps to its bounds, both ends included where it says so", () => {
    const drawn = indexes.map((index) => key.of(index))
    assert.deepStrictEqual([...new Set(drawn.map((one) => one.between(-1, 1)))].toSorted((a, b) => a - b), [-1, 0, 1])
    assert.isTrue(drawn.every((one) => one.unit() >= 0 && one.unit() < 1))
    assert.isTrue(drawn.every((one) => one.logUniform(0.001, 1) >= 0.001 && one.logUniform(0.001, 1) <= 1))
    const small = drawn.filter((one) => one.logUniform(0.001, 1) < 0.01).length
    assert.closeTo(small / many, 1 / 3, 0.02)
    assert.closeTo(drawn.filter((one) => one.chance(0.1)).length / many, 0.1, 0.01)
    assert.isFalse(drawn.some((one) => one.chance(0)))
    assert.isTrue(drawn.every((one) => one.chance(1)))
  })

  it("chooses and shuffles evenly, and loses nothing", () => {
    const letters = ["a", "b", "c"] as const
    const orders = indexes.map((index) => key.of(index).shuffled(letters).join(""))
    const names = ["abc", "acb", "bac", "bca", "cab", "cba"]
    assert.isBelow(Math.abs(unevenness(orders.map((order) => names.indexOf(order)), 6)), 5)
    assert.isBelow(Math.abs(unevenness(indexes.map((index) => letters.indexOf(key.of(index).choose(letters))), 3)), 5)
    assert.isUndefined(key.choose([]))
  })

  it("makes bytes of which each is uniform", () => {
    for (const place of [0, 3, 4, 9]) {
      assert.isBelow(Math.abs(unevenness(indexes.map((index) => key.of(index).bytes(10)[place]!), 256)), 5)
    }
    assert.strictEqual(key.bytes(16).length, 16)
  })
})
