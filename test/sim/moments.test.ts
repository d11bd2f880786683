/** Faults that are looked for by their time: what is left of a run when some of them are left out, and written down anew. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { type Fault, type FaultKind, type Moment, timed } from "../../src/sim/Faults.ts"
import * as Plan from "../../src/sim/Plan.ts"
import { simulate } from "../../src/sim/Simulation.ts"

const moment = (actor: string, index: number, notBefore: number, kind: FaultKind = "in_doubt"): Moment =>
  ({ kind, actor, label: "save", index, notBefore })

const strikes = (moments: ReadonlyArray<Moment>, visits: ReadonlyArray<readonly [actor: string, index: number, now: number]>) => {
  const faults = timed(moments)
  const struck = visits.map(([actor, index, now]) => faults.strike({ actor, label: "save", index }, ["in_doubt", "crash_after"], now))
  return { struck, unused: faults.unused() }
}

describe("a moment", () => {
  it("strikes whoever comes by first at its place, and not before its time", () => {
    const { struck, unused } = strikes([moment("worker-1#1", 4, 50)], [
      ["worker-1#1", 2, 49], ["worker-2#1", 4, 60], ["worker-1#1", 3, 61], ["worker-1#1", 4, 62]
    ])
    const like = { actor: "worker-1#1", label: "save", index: 4 }
    assert.deepStrictEqual(struck, [null, null, { kind: "in_doubt", actor: "worker-1#1", label: "save", index: 3, like }, null])
    assert.deepStrictEqual(unused, [])
  })

  it("strikes a later incarnation as well, and knows itself again where it was", () => {
    const { struck } = strikes([moment("worker-1#1", 0, 5), moment("worker-1#3", 1, 20)], [["worker-1#1", 0, 5], ["worker-1#2", 1, 30]])
    assert.deepStrictEqual(struck.map((fault) => fault?.like), [undefined, { actor: "worker-1#3", label: "save", index: 1 }])
    assert.notProperty(struck[0], "like")
  })

  it("strikes once, one at each visit, and only where its kind can", () => {
    const moments = [moment("worker-1#1", 0, 5), moment("worker-1#1", 1, 6, "pause"), moment("worker-1#1", 2, 7, "crash_after")]
    const { struck, unused } = strikes(moments, [["worker-1#1", 0, 9], ["worker-1#1", 1, 9], ["worker-1#1", 2, 9]])
    assert.deepStrictEqual(struck.map((fault) => fault?.kind), ["in_doubt", "crash_after", undefined])
    assert.deepStrictEqual(unused, [moments[1]!])
  })
})

describe("a run of which faults are left out", () => {
  const seeds = Array.from({ length: 6 }, (_, index) => `moments/${index}`)
  const whole = seeds.map((seed) => simulate({ seed, engine: "swarm" }, { moments: true, deviations: true }))

  it("is the same run when none is left out", () => {
    for (const run of whole) {
      const again = simulate({ ...Plan.explicit(run), moments: run.moments })
      assert.deepStrictEqual([again.hash, again.fired], [run.hash, run.fired])
    }
  })

  it("keeps the details of those that are counted anew, also in a plan file", () => {
    const moved: Array<Fault> = []
    for (const run of whole) {
      const moments = run.moments.filter((_, index) => index % 3 > 0)
      const less = simulate({ ...Plan.explicit(run), moments })
      const file = Plan.print({ version: 1, name: "less", comment: "", spec: { ...Plan.explicit(run), faults: less.fired } })
      const again = simulate(Result.getOrThrow(Plan.read(file)).spec)
      assert.deepStrictEqual([again.hash, again.fired, again.unused.faults], [less.hash, less.fired, []])
      moved.push(...less.fired.filter(({ like }) => like !== undefined))
    }
    assert.isAbove(moved.length, 10)
    const unlike = moved.map(({ like: _, ...fault }) => fault)
    assert.isTrue(unlike.some(({ kind }) => kind === "slow_statement"))
  })

  it("has more of them left than by their points", () => {
    const left = whole.map((run) => {
      const spec = Plan.explicit(run)
      const some = new Set(run.fired.filter((_, index) => index % 4 > 0))
      const moments = run.moments.filter((_, index) => some.has(run.fired[index]!))
      return [simulate({ ...spec, moments }).fired.length, simulate({ ...spec, faults: [...some] }).fired.length] as const
    })
    const sum = (place: 0 | 1) => left.reduce((total, pair) => total + pair[place], 0)
    assert.isAbove(sum(0), sum(1))
  })
})
