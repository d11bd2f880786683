/** A commit says what it did, by names that a filter finds again, and never says a text. */
import { assert, describe, it } from "@effect/vitest"
import { commitWords, operationName } from "../../src/sim/CommitWords.ts"
import type { Commit } from "../../src/sim/Commit.ts"
import { workloads } from "../../src/sim/Engines.ts"
import { simulate } from "../../src/sim/Simulation.ts"
import { canary } from "../../src/sim/Workload.ts"

describe("the words of a commit", () => {
  const [quick] = workloads("sweep", "words")
  const { trace } = simulate(quick!, { trace: true })
  const said = trace.filter(({ label }) => label === "committed").map(({ detail }) => detail)

  it("follow an operation from its acceptance to its end, with its plan, its memories and its money", () => {
    const [, name = ""] = /memory-\w+ added by (op-[0-9a-f]{8})/.exec(said.join("\n")) ?? []
    const life = said.filter((words) => words.includes(name)).flatMap((words) => words.split("; "))
    const mine = life.filter((words) => words.includes(name)).map((words) => words.replace(/memory-[0-9a-f]{8}/, "memory"))
    assert.includeMembers(mine.map((words) => words.replaceAll(name, "it")), [
      "it accepted as pending", "it claimed: epoch 1, attempt 1", "plan of it frozen", "it running → succeeded",
      "input of it gone", "memory added by it"
    ])
    assert.isTrue(mine.some((words) => words.startsWith("open ")) && mine.some((words) => words.startsWith("charged ")))
  })

  it("hold no text of anybody", () => {
    assert.isAbove(said.length, 20)
    assert.isFalse(said.some((words) => words.includes(canary)))
  })

  it("are the same in the trace as without: no step, no hash", () => {
    assert.strictEqual(simulate(quick!).hash, simulate(quick!, { trace: true }).hash)
  })

  it("say so when there is nothing to say", () => {
    const commit: Commit = { at: 0, by: "api-1#1", sentAt: 0, changes: [] }
    assert.strictEqual(commitWords(commit), "only house-keeping")
    assert.strictEqual(operationName("019b76db-b78a-7538-9b3c-e4e8f132362c"), "op-f132362c")
  })
})
