/** Planted bugs: those that chaos is tried on are there, and whatever a run found counts, by who found it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { chosen, find, findingsOf, isCaught } from "../../chaos/planted.ts"
import type { Outcome } from "../../chaos/run.ts"

const clean: Outcome = {
  faults: {},
  provider: {},
  told: {},
  operations: {},
  starts: 5,
  pids: [],
  droppedNotifications: 0,
  restMs: 0,
  unrest: [],
  audit: { code: 0, lines: ["no difference"] },
  breaches: [],
  journal: { changes: 0, plans: 0, takeovers: 0, retries: 0 },
  trespasses: [],
  mishaps: [],
  leaks: [],
  errors: {},
  defects: [],
  holds: true
}
const breach = { rule: "a-rule", workspace: "w", about: "e1", detail: "so it is" }

const caughtBy = (outcome: Partial<Outcome>) => {
  const findings = findingsOf({ ...clean, ...outcome })
  assert.strictEqual(isCaught({ id: "m", breaks: "it", findings, problem: null }), Object.keys(findings).length > 0)
  return Object.keys(findings)
}

describe("planted bugs", () => {
  it.effect("all five are there, and one that is not is said to be unknown", () =>
    Effect.gen(function*() {
      const { mutants, unknown } = yield* find([...Object.keys(chosen), "no-such-bug"])
      assert.deepStrictEqual(mutants.map(({ id }) => id), Object.keys(chosen))
      assert.deepStrictEqual(unknown, ["no-such-bug"])
    }))

  it("whatever did not hold is a finding, and a run that held has none", () => {
    assert.deepStrictEqual(caughtBy({}), [])
    assert.deepStrictEqual(caughtBy({ audit: { code: 1, lines: ["a difference"] } }), ["audit"])
    assert.deepStrictEqual(caughtBy({ breaches: [breach] }), ["history of the clients"])
    assert.deepStrictEqual(caughtBy({ trespasses: [breach] }), ["journal of the database"])
    assert.deepStrictEqual(caughtBy({ unrest: "no answer" }), ["rest"])
    assert.deepStrictEqual(caughtBy({ mishaps: ["worker-1 ended by itself with 1"] }), ["processes"])
    assert.deepStrictEqual(caughtBy({ defects: ["worker-1: a line"], leaks: ["api-1.log"] }), ["logs"])
  })
})
