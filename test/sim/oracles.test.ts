/** A history that holds breaks no promise, and the smallest thing that breaks one is noticed by its name. */
import { assert, describe, it } from "@effect/vitest"
import { catalogue } from "../../src/sim/oracles/Oracles.ts"
import { busy, commitBreaches, passing } from "./oraclesCommitBreaches.ts"
import { candour, endBreaches, farewell, innocence, remembered } from "./oraclesEndBreaches.ts"
import { History } from "./oraclesHistory.ts"
import { other } from "./oraclesRows.ts"
import { ended, story } from "./oraclesStory.ts"
import { planBreaches } from "./oraclesPlanBreaches.ts"
import { readBreaches } from "./oraclesReadBreaches.ts"
import { toldBreaches, truth } from "./oraclesToldBreaches.ts"

const breaches = [...commitBreaches, ...planBreaches, ...toldBreaches, ...readBreaches, ...endBreaches]

describe("a history that holds", () => {
  it("breaks no promise, at any commit or in the whole", () => {
    assert.deepStrictEqual(story().oracles.violations, [])
  })

  it("breaks none when it has come to its end", () => {
    const history = ended(story())
    assert.deepStrictEqual(history.oracles.atEnd(history.tables), [])
  })

  it("is told truly", () => {
    const history = truth()
    assert.deepStrictEqual(history.oracles.violations, [])
    assert.deepStrictEqual(history.oracles.atEnd(history.tables), [])
  })
})

describe("what is no breach", () => {
  it("a question to the model about an operation that was claimed, by a clock that stood still", () => {
    assert.deepStrictEqual(innocence().oracles.violations, [])
  })

  it("a process that gives back what it has stopped, or that could not", () => {
    assert.deepStrictEqual(farewell().oracles.violations, [])
  })

  it("a vector, a plan and a wait that are what they should be", () => {
    const history = candour()
    assert.deepStrictEqual(history.oracles.atEnd(history.tables), [])
  })

  it("an operation that is passed by while somebody has it locked", () => {
    assert.deepStrictEqual(passing(new History({ locked: (ref) => ref.workspaceId === other })).oracles.violations, [])
  })

  it("work that waits for who is still in an attempt of it that was cancelled", () => {
    assert.deepStrictEqual(busy().oracles.violations, [])
  })

  it("a text that was said, in what is remembered of it", () => {
    const history = remembered()
    assert.deepStrictEqual(history.oracles.atEnd(history.tables), [])
  })
})

describe("a breach", () => {
  breaches.forEach(([name, make], index) => {
    it(`of ${name} is noticed: case ${index}`, () => {
      const { broken } = make()
      assert.include(broken, name)
      // Both ways of looking see the same, unless something is hidden from one of them.
      if (!broken.includes("commits-tell-everything")) assert.notInclude(broken, "found-on-the-way")
    })
  })

  it("says where, and never what: no detail holds a text that somebody said", () => {
    for (const [, make] of breaches) {
      for (const { detail, id } of make().oracles.violations) {
        assert.notMatch(detail, /canary|fact \d|secret|edited|made up/)
        assert.isNotEmpty(id)
      }
    }
  })

  it("is not noticed by those who are told to be blind to it", () => {
    const blind = ["every-operation-ends", "every-lane-empties", "nothing-stays-reserved", "every-hold-ends", "only-the-holder-writes"]
    const history = new History({ blind }).run("api-1#1", (tx) => tx.accept(1)).run("worker-1#1", (tx) => tx.claim(1))
    history.run("worker-2#1", (tx) => tx.renew(1))
    assert.deepStrictEqual(history.oracles.atEnd(history.tables), [])
  })

  it("of every promise is among these", () => {
    const names = catalogue.map((promise) => promise.name)
    assert.strictEqual(new Set(names).size, names.length)
    assert.deepStrictEqual(names.filter((name) => !breaches.some(([broken]) => broken === name)), [])
    for (const { promise } of catalogue) assert.match(promise, /^[A-Z].*\.$/)
  })
})
