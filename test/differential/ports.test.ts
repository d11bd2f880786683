/** The simulated ports and those on Postgres come to the same, call by call, whoever gets in whose way. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Campaign from "../../differential/campaign.ts"
import { readKept } from "../../differential/kept.ts"
import { generate } from "../../differential/ports/generate.ts"
import { ports } from "../../differential/ports/kind.ts"
import { counterexample } from "../../differential/words.ts"
import { PgTest } from "../postgres.ts"
import { type Planted, suite } from "./planted.ts"

/** What a comparison has to have met, or its silence proves nothing. */
const met = [
  "waits", "two wait", "answers after a wait: call operations.lockLanes", "answers after a wait: call ledger.lock",
  "answers after a wait: call operations.lock", "call operations.claimable", "call operations.renew", "call commit",
  "call rollback", "error 23505 operation_inputs_pkey", "refused NotFound"
]

describe("the simulated ports", () => {
  it.effect("come to the same as Postgres in 40 sequences and in those that were kept", () =>
    Effect.gen(function*() {
      const { url } = yield* PgTest
      const kept = (yield* readKept).filter((one) => one.kind === "ports")
      const outcome = yield* Campaign.run({ kind: ports, url, seed: "test", sequences: 40, kept, lanes: 3, most: 1, tries: 400 })
      assert.deepStrictEqual(outcome.found.map(({ difference }) => counterexample(difference)), [])
      assert.strictEqual(outcome.sequences, 40)
      assert.isAbove(outcome.kept, 3)
      assert.deepStrictEqual(met.filter((name) => !((outcome.counts[name] ?? 0) > 0)), [])
    }).pipe(Effect.provide(PgTest.empty)), 300_000)

  it("are given the same sequence by the same seed", () => {
    assert.deepStrictEqual(generate("one", 7), generate("one", 7))
    assert.notDeepEqual(generate("one", 7).steps, generate("two", 7).steps)
  })
})

/** Errors of simulated ports that are easily made. */
const errors: ReadonlyArray<Planted> = [
  {
    id: "lanes are locked by nobody",
    seed: "planted10",
    steps: 12,
    file: "src/sim/ports/SimOperationStore.ts",
    find: "yield* tx.lock(laneLock(key))",
    replace: "laneLock(key)"
  },
  {
    id: "an operation is saved as it was read, whatever became of it while it was waited for",
    seed: "planted43",
    file: "src/sim/ports/SimOperationStore.ts",
    find: "    if (!isAsRead(row, from)) continue\n    yield* operations.update(tx, slot, row === seen ? next : merged(row, to))\n" +
      "    written.push({ workspaceId: row.workspaceId, id: row.id })",
    replace: "    yield* operations.update(tx, slot, merged(row!, to))\n" +
      "    written.push({ workspaceId: row!.workspaceId, id: row!.id })"
  },
  {
    id: "whoever freezes a plan is told that his own is in force",
    seed: "planted30",
    file: "src/sim/ports/SimOperationStore.ts",
    find: "if ((yield* tables.plans.insertUnlessTaken(tx, { workspaceId, id, plan })) !== null) count++",
    replace: "yield* tables.plans.insertUnlessTaken(tx, { workspaceId, id, plan })\n          count++"
  },
  {
    id: "a lane that has a head is handed on",
    seed: "planted32",
    file: "src/sim/ports/SimOperationStore.ts",
    find: "    if (heads.rows(tx, key).length > 0) continue\n",
    replace: ""
  }
]

suite("ports", errors)
