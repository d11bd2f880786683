/** A sweep misses no fault, pairs follow from where the first fault led, and equal bases are equal runs. */
import { assert, describe, it } from "@effect/vitest"
import { engine, type EngineName, faultsAt, jobsOf, sweptKinds, type Wave, workloads } from "../../src/sim/Engines.ts"
import { nameOf } from "../../src/sim/Faults.ts"
import type { Run, Simulate, Spec } from "../../src/sim/Run.ts"
import { toy } from "./toy.ts"

/** At most `limit` runs of a wave and of those that follow. */
const runsOf = (wave: Wave, simulate: Simulate, limit: number): ReadonlyArray<Run> => {
  const runs: Array<Run> = []
  const jobs = jobsOf(wave)
  let next = jobs.next()
  while (next.done !== true && runs.length < limit) {
    const run = simulate(next.value.spec, next.value.keep)
    runs.push(run)
    next = jobs.next(run)
  }
  return runs
}

const broken = (runs: ReadonlyArray<Run>) => runs.filter(({ violations }) => violations.length > 0)
const specs = (name: EngineName, base: string, limit = 50): ReadonlyArray<Spec> =>
  runsOf(engine(name, base), toy(), limit).map(({ spec }) => spec)

describe("every engine", () => {
  for (const name of ["swarm", "pct", "sweep", "pair"] as const) {
    it(`${name}: one base is one list of runs, and another base is another`, () => {
      assert.deepStrictEqual(specs(name, "base"), specs(name, "base"))
      const seeds = (base: string) => new Set(specs(name, base).map((spec) => spec.seed))
      assert.isFalse([...seeds("one")].some((seed) => seeds("other").has(seed)))
    })
  }
})

describe("the sweep", () => {
  it("makes one run for every fault that each point of both workloads offers, and ends", () => {
    const expected = workloads("sweep", "base").flatMap((spec) => {
      const { occasions } = toy()(spec, { occasions: true })
      return [spec, ...faultsAt(occasions).map((fault) => ({ ...spec, faults: [fault] }))]
    })
    const made = runsOf(engine("sweep", "base"), toy(), Infinity).map(({ spec }) => spec)
    assert.sameDeepMembers([...made], expected)
    assert.isAbove(made.length, 100)
  })

  it("fires each of its faults: the runs before it are alike", () => {
    for (const run of runsOf(engine("sweep", "base"), toy(), Infinity)) {
      assert.deepStrictEqual([run.fired, run.unused.faults], [run.spec.faults, []])
    }
  })

  it("finds what one fault can show, and nothing in a world without a bug", () => {
    assert.isAbove(broken(runsOf(engine("sweep", "base"), toy("charge"), Infinity)).length, 0)
    assert.deepStrictEqual(broken(runsOf(engine("sweep", "base"), toy(), Infinity)), [])
    assert.deepStrictEqual(broken(runsOf(engine("sweep", "base"), toy("answer"), Infinity)), [])
  })

  it("asks only for kinds that the point offers and that a sweep tries", () => {
    const occasions = [{ actor: "a", label: "b", index: 0, kinds: ["in_doubt", "edit", "crash_after"] as const }]
    assert.deepStrictEqual(faultsAt(occasions).map(({ kind }) => kind), ["in_doubt", "crash_after"])
    assert.deepStrictEqual(faultsAt(occasions, ["edit"]).map(({ kind }) => kind), ["edit"])
    assert.strictEqual(new Set(sweptKinds).size, sweptKinds.length)
  })
})

describe("the pair sweep", () => {
  it("strikes a second time after the first, at points that are there because of it", () => {
    const runs = runsOf(engine("pair", "base"), toy(), 600)
    const both = runs.filter(({ spec }) => spec.faults?.length === 2)
    assert.isAbove(both.length, 300)
    assert.isTrue(both.every(({ fired, spec }) => fired.map(nameOf).join() === spec.faults?.map(nameOf).join()))
    assert.isTrue(both.some(({ fired }) => fired[1]?.actor.endsWith("#2")))
  })

  it("finds what takes two faults", () => {
    assert.isAbove(broken(runsOf(engine("pair", "base"), toy("answer"), 2_000)).length, 0)
  })
})

describe("swarm and priorities", () => {
  it("are seeds without end, none of them twice", () => {
    for (const name of ["swarm", "pct"] as const) {
      const made = specs(name, "base", 500)
      assert.strictEqual(new Set(made.map(({ seed }) => seed)).size, 500)
      assert.isTrue(made.every((spec) => spec.engine === name && spec.faults === undefined))
    }
  })
})
