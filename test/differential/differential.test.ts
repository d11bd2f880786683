/** The simulated database and Postgres come to the same, and an error in the model is noticed and made small. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { PgClient } from "@effect/sql-pg"
import * as Campaign from "../../differential/campaign.ts"
import { statements } from "../../differential/statements/kind.ts"
import { generate } from "../../differential/statements/generate.ts"
import { readKept } from "../../differential/kept.ts"
import { counterexample } from "../../differential/words.ts"
import { PgTest } from "../postgres.ts"
import { type Planted, suite } from "./planted.ts"

/** What a comparison has to have met, or its silence proves nothing. */
const met = [
  "ON CONFLICT has waited for what was in flight", "SKIP LOCKED has passed over a row",
  "a second look has found another row than the first", "now() is before a row that is there",
  "waits", "two wait", "answers after a wait", "do skip", "do times", "error 23503 things_home_fkey", "error 23505 things_code",
  "error 23505 things_pkey", "error 25P02", "error 40P01", "error 55P03", "error 57014"
]

describe("the simulated database", () => {
  it.effect("comes to the same as Postgres in 400 sequences and in those that were kept", () =>
    Effect.gen(function*() {
      const { url } = yield* PgTest
      const kept = (yield* readKept).filter((one) => one.kind === "statements")
      const outcome = yield* Campaign.run({ kind: statements, url, seed: "test", sequences: 400, kept, lanes: 3, most: 1, tries: 400 })
      assert.deepStrictEqual(outcome.found.map(({ difference }) => counterexample(difference)), [])
      assert.strictEqual(outcome.sequences, 400)
      assert.isAbove(outcome.kept, 3)
      assert.deepStrictEqual(met.filter((name) => !((outcome.counts[name] ?? 0) > 0)), [])
    }).pipe(Effect.provide(PgTest.empty)), 300_000)

  it.effect("knows no constraint that is looked at later than its statement, as the schema has none", () =>
    Effect.gen(function*() {
      const sql = yield* PgClient.PgClient
      const rows = yield* sql<{ readonly n: number }>`
        select count(*) filter (where not condeferrable)::int4 as n from pg_constraint union all
        select count(*) filter (where condeferrable)::int4 from pg_constraint`
      assert.isAbove(rows[0]!.n, 20)
      assert.strictEqual(rows[1]!.n, 0)
    }).pipe(Effect.provide(Layer.fresh(PgTest.layer))))

  it("is given the same sequence by the same seed", () => {
    assert.deepStrictEqual(generate("one", 7), generate("one", 7))
    assert.notDeepEqual(generate("one", 7).steps, generate("two", 7).steps)
  })
})

/** Errors of a model that are easily made. */
const errors: ReadonlyArray<Planted> = [
  {
    id: "a row that somebody has locked is waited for, not skipped",
    seed: "planted51",
    steps: 5,
    file: "differential/statements/model.ts",
    find: "        return this.skip(tx, act)",
    replace: "        const due = this.there(tx, (row) => isLow(row) && (!act.due || row.at <= tx.startedAt)).slice(0, act.limit)\n" +
      "        for (const slot of due) yield* tx.lock(slot)\n        return due.map(({ key }) => key)"
  },
  {
    id: "a row is not looked at again after a wait",
    file: "differential/statements/model.ts",
    find: "      if (row !== null && isLow(row)) found",
    replace: "      if (row !== null) found"
  },
  {
    id: "an insert in flight is nobody's business",
    seed: "planted57",
    file: "src/sim/database/Table.ts",
    find: "          yield follow(tx, rival.writer)\n        }\n      }\n      if",
    replace: "          return null\n        }\n      }\n      if"
  },
  {
    id: "a circle is nobody's fault: all in it fail",
    seed: "planted56",
    steps: 6,
    file: "src/sim/database/Engine.ts",
    find: "      if (first.by.wait === first && circle(first) !== null) this.interrupt(first.by as Tx, deadlockDetected)",
    replace: "      for (const { by } of waits) if (by.wait !== null) this.interrupt(by as Tx, deadlockDetected)"
  },
  {
    id: "a rollback undoes nothing",
    seed: "planted27",
    file: "src/sim/database/Table.ts",
    find: "    this.settle(slot, slot.committed)\n",
    replace: "    this.settle(slot, slot.pending)\n"
  },
  {
    id: "now() is the time of the statement",
    seed: "planted35",
    file: "src/sim/database/Tx.ts",
    find: "    this.statementAt = now\n    this.sentAt = sentAt\n    this.key = key\n    this.statement++",
    replace: "    ;(this as { startedAt: number }).startedAt = this.statementAt = now\n    this.key = key\n    this.statement++"
  }
]

suite("statements", errors)
