/** Whatever a swarm finds comes out as the few things that it takes, and repeats from them alone. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { fewer } from "../../src/sim/DeltaDebugging.ts"
import * as Plan from "../../src/sim/Plan.ts"
import type { Simulate, Spec } from "../../src/sim/Run.ts"
import { shrink } from "../../src/sim/Shrink.ts"
import { type Bug, toy } from "./toy.ts"

const everything = {
  crash_before: 0.1,
  crash_after: 0.1,
  in_doubt: 0.1,
  lost_before_send: 0.1,
  lost_acknowledgement: 0.1
}

/** The first run of a swarm, with faults all over, that breaks this invariant, with at least so many faults. */
const found = (bug: Bug, invariant: string, faults = 0): Spec => {
  for (let index = 0; index < 1_000; index++) {
    const spec: Spec = {
      seed: `${bug}/${index}`,
      engine: "swarm",
      shape: { workers: 4, operations: 16, rates: everything, chaosMs: 5_000 }
    }
    const run = toy(bug)(spec)
    if (run.violations.some((violation) => violation.invariant === invariant) && run.fired.length >= faults) return spec
  }
  throw new Error("nothing found")
}

const shrunk = (bug: Bug, invariant: string, faults?: number) => {
  const result = shrink(found(bug, invariant, faults), invariant, { simulate: toy(bug) })
  assert.isNotNull(result)
  assert.isTrue(result.isPlan)
  assert.isTrue(result.finished)
  return result
}

describe("delta debugging", () => {
  const search = (items: ReadonlyArray<number>, needed: ReadonlyArray<number>) => {
    let best = items
    let tries = 0
    fewer(() => best, (some) => {
      tries++
      if (!needed.every((item) => some.includes(item))) return false
      best = some
      return true
    })
    return { best: [...best], tries }
  }

  it("finds exactly what is needed", () => {
    const items = Array.from({ length: 100 }, (_, index) => index)
    for (const needed of [[], [0], [99], [3, 60], [0, 1, 2, 97, 98, 99], items.slice(40, 60)]) {
      assert.deepStrictEqual(search(items, needed).best, needed)
    }
    assert.deepStrictEqual(search([], []), { best: [], tries: 0 })
  })

  it("needs far fewer tries than there are items", () => {
    const items = Array.from({ length: 2_000 }, (_, index) => index)
    assert.isBelow(search(items, [700, 701, 1_500]).tries, 120)
  })
})

describe("a failing run", () => {
  it("shrinks to the one fault that it takes, in the smallest world", () => {
    const { from, run, spec } = shrunk("charge", "charged once", 3)
    assert.isAbove(from.faults, 2)
    assert.isAbove(from.deviations, 2)
    assert.deepStrictEqual(spec.deviations, [])
    assert.deepStrictEqual(spec.faults?.map(({ kind, label }) => `${kind} ${label}`), [
      spec.faults?.[0]?.label === "charge" ? "crash_after charge" : "crash_before store"
    ])
    const { operations, workers } = run.shape
    assert.deepStrictEqual({ operations, workers }, { operations: 1, workers: 1 })
  })

  it("keeps both of two faults", () => {
    const { spec } = shrunk("answer", "stored once")
    assert.strictEqual(spec.faults?.length, 2)
    assert.strictEqual(spec.faults?.at(-1)?.kind, "lost_acknowledgement")
  })

  it("shrinks to a single deviation when only the schedule is to blame", () => {
    const { spec } = shrunk("order", "first come, first served")
    assert.deepStrictEqual(spec.faults, [])
    assert.strictEqual(spec.deviations?.length, 1)
  })

  it("shrinks too when only the end shows it", () => {
    const { spec } = shrunk("never", "every operation ends")
    assert.deepStrictEqual(spec.faults?.map(({ kind }) => kind), ["in_doubt"])
  })

  it("takes no crash that only leads to a later incarnation", () => {
    const { from, spec } = shrunk("never", "every operation ends", 12)
    assert.isAbove(from.faults, 11)
    assert.deepStrictEqual(spec.faults?.map(({ actor, kind }) => `${kind} ${actor}`), ["in_doubt worker-1#1"])
  })

  it("comes out as a plan file that breaks the same way, and holds without the bug", () => {
    const { run, spec } = shrunk("charge", "charged once")
    const file = Plan.print({ version: 1, name: "found", comment: "", spec, breaks: "charged once" })
    const plan = Result.getOrThrow(Plan.read(file))
    assert.strictEqual(toy("charge")(plan.spec).hash, run.hash)
    assert.strictEqual(Plan.judge(plan, toy()(plan.spec)).verdict, "held")
  })

  it("keeps its seed when what was written down does not repeat it", () => {
    const seedOnly: Simulate = (spec, keep) => {
      const run = toy("charge")(spec, keep)
      return spec.engine === "plan" ? { ...run, violations: [] } : run
    }
    const spec = found("charge", "charged once")
    const result = shrink(spec, "charged once", { simulate: seedOnly })
    assert.isFalse(result?.isPlan)
    assert.deepStrictEqual(result?.spec, spec)
  })

  it("that needs every one of its many faults is found elsewhere with fewer", () => {
    const spec = found("charge", "charged once", 8)
    const { fired: all, violations } = toy("charge")(spec)
    const fragile: Simulate = (spec, keep) => {
      const run = toy()(spec, keep)
      const isBroken = spec.seed.includes("~") ? run.fired.length > 0 : run.fired.length >= all.length
      return { ...run, violations: isBroken ? violations : [] }
    }
    const result = shrink(spec, "charged once", { simulate: fragile })
    assert.isAbove(all.length, 6)
    assert.match(result?.spec.seed ?? "", /^charge\/\d+~\d+$/)
    assert.strictEqual(result?.spec.faults?.length, 1)
  })

  it("is not given up for what the simulation itself cannot do", () => {
    const brittle: Simulate = (spec, keep) => {
      if (spec.faults?.length === 0) throw new Error("no faults, no run")
      return toy("charge")(spec, keep)
    }
    const result = shrink(found("charge", "charged once", 3), "charged once", { simulate: brittle })
    assert.strictEqual(result?.spec.faults?.length, 1)
  })

  it("that breaks something else is not taken for it", () => {
    assert.isNull(shrink(found("charge", "charged once"), "stored once", { simulate: toy("charge") }))
  })
})

describe("a search", () => {
  it("takes no more runs than it may, and gives what it has", () => {
    const spec = found("charge", "charged once")
    const result = shrink(spec, "charged once", { simulate: toy("charge"), runs: 4 })
    assert.isFalse(result?.finished)
    assert.isAtMost(result?.runs ?? 99, 5)
    assert.strictEqual(toy("charge")(result?.spec ?? spec).violations[0]?.invariant, "charged once")
  })

  it("ends when its time is up", () => {
    let looks = 0
    const spec = found("charge", "charged once")
    const result = shrink(spec, "charged once", { simulate: toy("charge"), enough: () => ++looks > 3 })
    assert.isFalse(result?.finished)
    assert.isAtMost(result?.runs ?? 99, 4)
  })
})
