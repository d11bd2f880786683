/** A campaign says the same whoever did its runs, notices what has two histories, and claims no more than it saw. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { boundOf, distinct, type Finding, signatureOf, Tally } from "../../src/sim/Campaign.ts"
import { explore } from "../../src/sim/cli/Explore.ts"
import * as Pool from "../../src/sim/cli/Pool.ts"
import { perform } from "../../src/sim/cli/Task.ts"
import { engine, type EngineName } from "../../src/sim/Engines.ts"
import type { Run } from "../../src/sim/Run.ts"
import { shrink } from "../../src/sim/Shrink.ts"
import { type Bug, toy } from "./toy.ts"

/** Threads in which these bugs are planted. */
const poolOf = (threads: number, ...bugs: ReadonlyArray<Bug>) => {
  process.env["TOY_BUGS"] = bugs.join(",")
  return Pool.make(new URL("toyHarness.ts", import.meta.url), threads)
}

interface Asked {
  readonly name?: EngineName
  readonly runs?: number
  readonly double?: number
  readonly first?: boolean
  readonly blind?: ReadonlyArray<string>
}

const campaign = Effect.fnUntraced(function*(
  pool: Pool.Pool,
  { blind = [], double = 0, first = false, name = "swarm", runs = 60 }: Asked = {}
) {
  const tally = new Tally()
  yield* explore({ pool, tally, base: "b", wave: engine(name, "b"), runs, enough: () => false, double, first, blind, only: null })
  return tally
})

/** All that a report says of what was simulated. */
const said = (tally: Tally) => ({
  runs: tally.runs,
  steps: tally.steps,
  virtualMs: tally.virtualMs,
  failed: tally.failed,
  exhausted: tally.exhausted,
  faults: tally.faultCounts,
  outcomes: tally.outcomeCounts,
  states: [...tally.states].toSorted((one, other) => one - other),
  failures: tally.failuresByInvariant,
  quotas: tally.quotas([])
})

describe("threads", () => {
  it.effect("however many there are, every engine comes to the same", () =>
    Effect.gen(function*() {
      const [one, three] = [yield* poolOf(1, "charge", "order"), yield* poolOf(3, "charge", "order")]
      for (const name of ["swarm", "sweep", "pair"] as const) {
        const alone = said(yield* campaign(one, { name, runs: 300 }))
        assert.deepStrictEqual(said(yield* campaign(three, { name, runs: 300 })), alone)
        assert.isAbove(alone.failed, 0)
      }
    }))

  it.effect("a sweep ends by itself, and has then done all there is", () =>
    Effect.gen(function*() {
      const pool = yield* poolOf(2)
      const tally = yield* campaign(pool, { name: "sweep", runs: Infinity })
      assert.isTrue(tally.exhausted)
      assert.isFalse((yield* campaign(pool, { name: "sweep", runs: tally.runs - 1 })).exhausted)
    }))

  it.effect("the first failure is the one with the lowest number, and nobody sees what all are blind to", () =>
    Effect.gen(function*() {
      const pool = yield* poolOf(2, "charge")
      const [all] = (yield* campaign(pool, { runs: 200 })).failuresByInvariant
      const tally = yield* campaign(pool, { runs: 200, first: true })
      assert.strictEqual(tally.failuresByInvariant[0]?.first[0]?.index, all?.first[0]?.index)
      assert.isBelow(tally.runs, 200)
      assert.strictEqual((yield* campaign(pool, { blind: ["charged once"] })).failed, 0)
    }))

  it.effect("a run that throws is told with its seed and its place, and the others go on", () =>
    Effect.gen(function*() {
      const tally = yield* campaign(yield* poolOf(2, "error"), { runs: 100 })
      assert.isAbove(tally.breakdowns.length, 0)
      assert.strictEqual(tally.runs + tally.breakdowns.length, 100)
      assert.isTrue(tally.breakdowns.every(({ message }) => /the toy is broken\n +at .*toy\.ts/.test(message)))
    }))
})

describe("runs done twice", () => {
  for (const threads of [1, 2]) {
    it.effect(`in a pool of ${threads}: one history is found alike, two are found out`, () =>
      Effect.gen(function*() {
        const pool = yield* poolOf(threads)
        const alike = yield* campaign(pool, { double: 0.5 })
        assert.isAbove(alike.doubles, 15)
        assert.deepStrictEqual(alike.mismatches, [])
        const leaking = yield* campaign(yield* poolOf(threads, "leak"), { double: 0.5 })
        assert.strictEqual(leaking.doubles, alike.doubles)
        assert.isAbove(leaking.mismatches.length, 10)
        assert.strictEqual((yield* campaign(pool, { double: 1 })).doubles, 60)
        assert.strictEqual((yield* campaign(pool, { double: 0 })).doubles, 0)
      }))
  }
})

describe("a tally", () => {
  const run = (changes: Partial<Run>): Run => ({ ...toy()({ seed: "s", engine: "swarm" }), ...changes })
  const tallied = (...runs: ReadonlyArray<Run>) => {
    const tally = new Tally()
    runs.forEach((one, index) => tally.add(index, one.spec, one))
    return tally
  }

  it("holds a state to its quota only once there were enough runs", () => {
    const tally = tallied(run({ reached: ["seen"] }), run({ reached: ["seen", "extra"] }))
    const found = tally.quotas([
      { state: "seen", perThousand: 1_000 },
      { state: "rare", perThousand: 499 },
      { state: "never", perThousand: 500 },
      { state: "extra", perThousand: 1_000 }
    ])
    assert.deepStrictEqual(found.map(({ count, due, state, verdict }) => `${state} ${count}/${due} ${verdict}`), [
      "seen 2/2 reached", "rare 0/0 not due", "never 0/1 missed", "extra 1/2 missed"
    ])
    assert.deepStrictEqual(tally.quotas([]).map(({ state }) => state), ["extra", "seen"])
  })

  it("counts distinct states, faults by kind and what never struck", () => {
    const crash = { kind: "crash_before", actor: "a", label: "b", index: 0 } as const
    const tally = tallied(run({ states: [1, 2, 2], fired: [crash, crash] }), run({ states: [2, 3], fired: [] }))
    assert.strictEqual(tally.states.size, 3)
    assert.deepStrictEqual(tally.faultCounts, { crash_before: 2 })
    assert.include(tally.faultsUnseen, "crash_after")
    assert.notInclude(tally.faultsUnseen, "crash_before")
  })

  it("bounds what was not seen by three in so many runs", () => {
    assert.strictEqual(boundOf({ failed: 0, runs: 3_000 }), "0 of 3000 failed: p < 0.0010 at 95 %")
    assert.strictEqual(boundOf({ failed: 0, runs: 1 }), "0 of 1 failed: p < 1.0 at 95 %")
    assert.strictEqual(boundOf({ failed: 2, runs: 9 }), "2 of 9 failed")
    assert.strictEqual(boundOf({ failed: 0, runs: 0 }), "no run was made")
  })
})

describe("bugs", () => {
  const findings = (bug: Bug): ReadonlyArray<Finding> =>
    Array.from({ length: 60 }, (_, index) => ({ seed: `x/${index}`, engine: "swarm" } as const)).flatMap((spec, index) => {
      const { violations: [violation] } = toy(bug)(spec)
      if (violation === undefined) return []
      const { invariant } = violation
      const shrunk = shrink(spec, invariant, { simulate: toy(bug) })
      assert.isNotNull(shrunk)
      return [{ signature: signatureOf(invariant, shrunk), failure: { index, spec, invariant, detail: "" }, shrunk }]
    })

  it("that shrink to the same are one", () => {
    const found = findings("charge")
    assert.isAbove(found.length, 5)
    const signatures = distinct(found).map(({ signature }) => signature)
    assert.includeMembers(
      ["charged once | crash_after at charge of worker", "charged once | crash_before at store of worker"],
      [...signatures]
    )
    assert.strictEqual(distinct(found)[0], found[0])
  })

  it("of the schedule are told from those of faults", () => {
    const [one] = distinct(findings("order"))
    assert.strictEqual(one?.signature, "first come, first served | schedule")
  })
})

describe("a task", () => {
  it("shrinks within its time", () => {
    let clock = 0
    const spec = { seed: "x/3", engine: "swarm", shape: { workers: 3, rates: { crash_after: 0.3 } } } as const
    assert.strictEqual(toy("charge")(spec).violations[0]?.invariant, "charged once")
    const task = { _tag: "Shrink", spec, invariant: "charged once", runs: 1_000, seconds: 1 } as const
    const shrunk = perform(task, toy("charge"), () => clock += 400)
    assert.isFalse((shrunk as { readonly finished: boolean }).finished)
  })
})
