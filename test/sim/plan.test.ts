/** A plan is read strictly, prints as it was read, repeats its run, and says when it has gone stale. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as Plan from "../../src/sim/Plan.ts"
import { toy } from "./toy.ts"

const fault = { kind: "crash_after", actor: "worker-1#1", label: "charge", index: 0 } as const

const plan: Plan.Plan = {
  version: 1,
  name: "charged-twice",
  comment: "A worker dies after it has charged.",
  holds: ["charged once"],
  reaches: ["takeover"],
  outcomes: { stored: 2 },
  bug: "charge",
  breaks: "charged once",
  spec: {
    seed: "a seed",
    engine: "plan",
    shape: { workers: 1, operations: 2, chaosMs: 1_000, rates: { pause: 0.5 } },
    faults: [fault],
    deviations: []
  }
}

const problemsOf = (file: unknown): ReadonlyArray<string> => {
  const found = Plan.read(typeof file === "string" ? file : JSON.stringify(file))
  return Result.isFailure(found) ? Plan.problemLines(found.failure) : []
}

const judged = (changes: Partial<Plan.Plan["spec"]>, simulate = toy(), expected: Partial<Plan.Plan> = {}) => {
  const changed = { ...plan, ...expected, spec: { ...plan.spec, ...changes } }
  return Plan.judge(changed, simulate(changed.spec))
}

describe("a plan file", () => {
  it("is read as it was printed", () => {
    assert.deepStrictEqual(Result.getOrThrow(Plan.read(Plan.print(plan))), plan)
    const small: Plan.Plan = { version: 1, name: "x", comment: "", spec: { seed: "s", engine: "swarm" } }
    assert.deepStrictEqual(Result.getOrThrow(Plan.read(Plan.print(small))), small)
  })

  it("says where it is wrong, and what is wrong there", () => {
    assert.deepStrictEqual(problemsOf("{"), ["the file is not valid JSON (line 1, column 2)"])
    assert.deepStrictEqual(problemsOf({ ...plan, version: 2 }), ["/version must be 1"])
    assert.deepStrictEqual(problemsOf({ ...plan, hold: [] }), ["/hold is not a known field"])
    assert.deepStrictEqual(problemsOf({ ...plan, outcomes: { sored: 0 } }), ["/outcomes/sored is not a known field"])
    assert.deepStrictEqual(problemsOf({ ...plan, name: "No Name" }), ["/name must be words joined by dashes"])
    const specs = [
      problemsOf({ ...plan, spec: { ...plan.spec, faults: [{ ...fault, index: -1 }] } }),
      problemsOf({ ...plan, spec: { ...plan.spec, faults: [{ ...fault, label: undefined }] } }),
      problemsOf({ ...plan, spec: { ...plan.spec, shape: { workers: 1.5 } } }),
      problemsOf({ ...plan, spec: { engine: "plan" } })
    ]
    const places = specs.flat().map((line) => line.split(" ")[0])
    assert.deepStrictEqual(places, ["/spec/faults/0/index", "/spec/faults/0/label", "/spec/shape/workers", "/spec/seed"])
    const [unheard] = problemsOf({ ...plan, spec: { ...plan.spec, faults: [{ ...fault, kind: "crash" }] } })
    assert.match(unheard ?? "", /^\/spec\/faults\/0\/kind .*crash_before/)
  })

  it("names only what there is", () => {
    assert.deepStrictEqual(Plan.unknownNames(plan, { invariants: ["charged once"], states: ["takeover"] }), [])
    const found = Plan.unknownNames(plan, { invariants: ["charged twice"], states: [] })
    assert.deepStrictEqual([...new Set(found)], ['there is no invariant "charged once"', 'there is no state "takeover"'])
  })
})

describe("a plan", () => {
  it("holds when everything came to pass and nothing broke", () => {
    assert.deepStrictEqual(judged({}), { verdict: "held", findings: [] })
  })

  it("breaks with its bug, and says what broke", () => {
    const found = judged({}, toy("charge"))
    assert.deepStrictEqual(found, { verdict: "broke", findings: ["charged once: operation-0: 2 times"] })
  })

  it("is stale when a fault or a deviation has no occasion any more", () => {
    const faults = [fault, { ...fault, index: 99 }, { ...fault, kind: "lost_acknowledgement" as const, index: 1 }]
    assert.deepStrictEqual(judged({ faults, deviations: [{ head: "worker-1#1:0", chosen: "worker-9#1:0" }] }), {
      verdict: "stale",
      findings: [
        "no occasion for crash_after at worker-1#1/charge/99",
        "no occasion for lost_acknowledgement at worker-1#1/charge/1",
        "no occasion for worker-9#1:0 to go before worker-1#1:0"
      ]
    })
  })

  it("has proved nothing without the states that it is about", () => {
    assert.deepStrictEqual(judged({ faults: [] }, toy(), { outcomes: { stored: 3, no_memory: 1 } }), {
      verdict: "missed",
      findings: ["never reached: takeover", "2 of 3 ended as stored", "0 of 1 ended as no_memory"]
    })
  })

  it("written down from a run repeats it to the last step", () => {
    for (const seed of ["one", "two", "three"]) {
      const rates = { crash_before: 0.1, lost_before_send: 0.1 }
      const run = toy()({ seed, engine: "swarm", shape: { workers: 3, rates } }, { deviations: true })
      const again = toy()(Plan.explicit(run))
      assert.strictEqual(again.hash, run.hash)
      assert.deepStrictEqual(again.unused, { faults: [], deviations: [] })
      assert.isAbove(Math.min(run.deviations.length, run.fired.length), 0)
    }
  })
})
