/**
 * Every planted bug can be planted: in a file that is there, at one place, as something else, for somebody to find; and
 * every plan that is kept has the bug that it is about.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readFileSync } from "node:fs"
import { type Mutant, patched, readMutants } from "../../src/sim/cli/Mutant.ts"
import { readPlans, shelves } from "../../src/sim/cli/Scenario.ts"
import { harness } from "../../src/sim/harness.ts"
import { catalogue } from "../../src/sim/oracles/Oracles.ts"
import { worldPromises } from "../../src/sim/Verdicts.ts"

const root = new URL("../../", import.meta.url)
const mutants = await Effect.runPromise(readMutants({ mutants: new URL("test/mutants/", root) }))
const known = new Set([...catalogue, ...worldPromises].map(({ name }) => name))

const unfit = (test: (mutant: Mutant) => boolean): ReadonlyArray<string> => mutants.filter(test).map(({ id }) => id)

describe("planted bugs", () => {
  it("are many, each with a name of its own", () => {
    assert.isAtLeast(mutants.length, 36)
    assert.strictEqual(new Set(mutants.map(({ id }) => id)).size, mutants.length)
  })

  it("are patches of what runs in production, at exactly one place of a file that is there", () => {
    assert.deepStrictEqual(unfit(({ file }) => !/^src\/(domain|services)\/\w+\.ts$/.test(file)), [])
    assert.deepStrictEqual(unfit((mutant) => patched(readFileSync(new URL(mutant.file, root), "utf8"), mutant) === null), [])
  })

  it("differ from each other", () => {
    const patches = mutants.map(({ blind, engine, file, find, replace }) => JSON.stringify([file, find, replace, engine, blind]))
    assert.strictEqual(new Set(patches).size, patches.length)
  })

  it("name invariants that are looked at", () => {
    const unheardOf = mutants.flatMap(({ blind = [], id, invariants = [] }) =>
      [...blind, ...invariants].filter((name) => !known.has(name)).map((name) => `${id}: ${name}`))
    assert.deepStrictEqual(unheardOf, [])
  })

  it("say in one sentence what they break", () => {
    assert.deepStrictEqual(unfit(({ breaks }) => !/^[A-Z].+[^.]\.$/.test(breaks) || /[.] [A-Z]/.test(breaks)), [])
  })

  it("are expected to be found, all but a few, and those for a reason", () => {
    const excused = mutants.filter(({ blind, verdict }) => verdict !== undefined && blind === undefined)
    assert.isAtMost(excused.length, Math.floor(mutants.length / 10))
    assert.deepStrictEqual(excused.filter(({ verdict }) => verdict!.why.length < 40).map(({ id }) => id), [])
  })

  it("show once what nobody sees when nobody looks", () => {
    assert.isAtLeast(mutants.filter(({ blind }) => blind !== undefined).length, 1)
  })
})

describe("plans that are kept", () => {
  const folders = { scenarios: new URL("src/sim/scenarios/", root), corpus: new URL("src/sim/corpus/", root) }

  for (const shelf of shelves) {
    it(`of the ${shelf} each name the planted bug that turns them red, and what it breaks`, async () => {
      const plans = await Effect.runPromise(readPlans(folders, shelf, harness))
      assert.isAtLeast(plans.length, 3)
      const engine = shelf === "corpus" ? "corpus" : "scenario"
      const waiting = plans.map(({ breaks, bug, name }) => ({ name, breaks, mutant: mutants.find(({ id }) => id === bug) }))
      assert.deepStrictEqual(waiting.filter(({ mutant }) => mutant?.engine !== engine).map(({ name }) => name), [])
      const others = waiting.filter(({ breaks, mutant }) => breaks === undefined || !mutant!.invariants!.includes(breaks))
      assert.deepStrictEqual(others.map(({ name }) => name), [])
    })
  }
})
