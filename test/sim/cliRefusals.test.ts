/** Whatever cannot be done is refused before anything is run, with 2 and a reason. */
import { assert, describe, it, vi } from "@effect/vitest"
import type { Plan } from "../../src/sim/Plan.ts"
import { fileOf, plan, sim } from "./cliProcess.ts"

// Each command is a process with threads of its own, on a machine that may be busy.
vi.setConfig({ testTimeout: 240_000 })

const planFile = fileOf("plan.json", plan)

describe("what cannot be meant", () => {
  it.each([
    ["run", "--for", "0s"],
    ["run", "--seed-base", ""],
    ["run", "--blind", "nonsense"],
    ["run", "--only", "1"],
    ["run", "--out", ""],
    ["replay", "--seed", ""],
    ["replay", "--plan", planFile, "--engine", "pct"],
    ["mutants", "hurries", "--engine", "pct"],
    ["mutants", "--engine", "pct"],
    ["shrink", "--seed", "x/swarm/1", "--invariant", "nonsense"],
    ["shrink", "--seed", "x/swarm/1", "--seconds", "0"]
  ])("is wrong usage, without a stack: %s %s %s %s %s", async (...args) => {
    const { code, err } = await sim(args.includes("run") ? [...args, "--seeds", "1"] : args)
    assert.strictEqual(code, 2)
    assert.notStrictEqual(err, "")
    assert.notMatch(err, /^ +at /m)
  })
})

describe("what nothing can be written to", () => {
  it.each([
    ["run", "--seeds", "1", "--out", "/proc/x/y"],
    ["run", "--seeds", "1", "--out", "/dev/null/x"],
    ["shrink", "--seed", "x/swarm/1", "--out", "/proc/x/y"],
    ["replay", "--seed", "x/swarm/1", "--html", "/proc/x/y.html"],
    ["replay", "--seed", "x/swarm/1", "--html", "/"]
  ])("is wrong usage, in one line and before anything is run: %s %s %s %s %s", async (...args) => {
    const { code, err, out } = await sim(args)
    assert.deepStrictEqual([code, out], [2, ""])
    assert.match(err, /^.*(?:cannot be written|is no file to write to).*\n$/)
  })
})

describe("wrong usage", () => {
  const asked: ReadonlyArray<readonly [args: ReadonlyArray<string>, answer: RegExp]> = [
    [["bogus"], /Unknown subcommand/],
    [["run", "--seeds", "0"], /--seeds/],
    [["run", "--for", "3x"], /no length of time/],
    [["run", "--double", "500%"], /no share/],
    [["replay"], /give either --seed or --plan/],
    [["replay", "--plan", "/nowhere/x.json"], /cannot be read/],
    [["scenario", "nope"], /there is no scenario nope; there are: charged-by-the-dead/],
    [["mutants", "nope"], /there is no planted bug nope/]
  ]

  it("leaves with 2, and says why", async () => {
    for (let place = 0; place < asked.length; place += 2) {
      const pair = asked.slice(place, place + 2)
      const said = await Promise.all(pair.map(([args]) => sim(args)))
      said.forEach(({ code, err, out }, index) => {
        assert.strictEqual(code, 2, pair[index]![0].join(" "))
        assert.match(out + err, pair[index]![1])
      })
    }
  })

  it("a plan that names what there is not is refused", async () => {
    const { code, err } = await sim(["replay", "--plan", fileOf("typo.json", { ...plan, holds: ["charged twice"] })])
    assert.strictEqual(code, 2)
    assert.match(err, /is no plan:\n {2}there is no invariant "charged twice"/)
  })

  const [fault] = plan.spec.faults!
  it.each<readonly [what: string, spec: Partial<Plan["spec"]>, problem: string]>([
    ["is blind to what there is not", { blind: ["nonsense"] }, "there is no invariant \"nonsense\""],
    ["wants two faults at one point", { faults: [fault!, { ...fault!, kind: "crash_before" }] }, "/spec/faults has more than one at worker-1#1/charge/0"],
    ["wants turns in which nobody comes on", { shape: { budget: 2 } }, "/spec/shape/budget must be 0, or at least 3"],
    ["wants a world without end", { shape: { operations: 1_000_000 } }, "/spec/shape/operations must be at most 1024"]
  ])("a plan is refused that %s", async (_, spec, problem) => {
    const { code, err, out } = await sim(["replay", "--plan", fileOf("unfit.json", { ...plan, spec: { ...plan.spec, ...spec } })])
    assert.deepStrictEqual([code, out], [2, ""])
    assert.include(err, problem)
  })

  it("help leaves with 0", async () => assert.strictEqual((await sim(["run", "--help"])).code, 0))
})
