/** A history that holds breaks no promise, and the smallest thing that breaks one is noticed by its name. */
import { assert, describe, it } from "@effect/vitest"
import { commitBreaches } from "./oraclesCommitBreaches.ts"
import { ended, story } from "./oraclesStory.ts"

const breaches = [...commitBreaches]

describe("a history that holds", () => {
  it("breaks no promise, at any commit or in the whole", () => {
    assert.deepStrictEqual(story().oracles.violations, [])
  })

  it("breaks none when it has come to its end", () => {
    const history = ended(story())
    assert.deepStrictEqual(history.oracles.atEnd(history.tables), [])
  })
})

describe("a breach", () => {
  breaches.forEach(([name, make], index) => {
    it(`of ${name} is noticed: case ${index}`, () => {
      assert.include(make().broken, name)
    })
  })
})
