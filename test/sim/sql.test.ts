/** The simulated world on real SQL: one history a seed, every commit seen, and the same promises. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { refKey } from "../../src/domain/Ids.ts"
import { Store } from "../../src/services/Store.ts"
import * as Pool from "../../src/sim/cli/Pool.ts"
import type { Database, OpenDatabase } from "../../src/sim/Database.ts"
import type { Spec } from "../../src/sim/Run.ts"
import { simulateOn } from "../../src/sim/Simulation.ts"
import { labelOf } from "../../src/sim/sql/labels.ts"
import { Pglite } from "../../src/sim/sql/Pglite.ts"
import { keyOf, sources } from "../../src/sim/sql/Sources.ts"
import { openOn } from "../../src/sim/sql/SqlDatabase.ts"

// One server for all of them: it takes seconds to start.
const server = await Pglite.start()
const open = openOn(server)
const simulate = simulateOn(open)

const swarm = (number: number): Spec => ({ seed: `sql/swarm/${number}`, engine: "swarm" })

/** One operation of one client, with nothing that goes wrong but this. */
const quiet: Spec = {
  seed: "quiet",
  engine: "scenario",
  shape: { workers: 1, apis: 1, workspaces: 1, lanes: 1, operations: 1, leaseMs: 3_000, providerMs: 1_000, chaosMs: 20_000, budget: 0 },
  faults: []
}

/** A world whose store forgets to redact. */
const forgetful: OpenDatabase = (options) => {
  const database = open(options)
  return {
    ...database,
    get now() {
      return database.now
    },
    ports: (others) =>
      Layer.effectContext(Effect.map(Layer.build(database.ports(others)), (ports) => {
        const { memories, operations } = Context.get(ports, Store)
        return Context.add(ports, Store, Store.of({ memories, operations: { ...operations, redact: () => Effect.void } }))
      }))
  }
}

describe("the same seed on real SQL", () => {
  it("keeps every promise, in worlds in which things go wrong", () => {
    for (const number of [0, 1]) {
      const run = simulate(swarm(number))
      assert.deepStrictEqual(run.violations, [])
      assert.isAbove(Object.values(run.outcomes).reduce((a, b) => a + b, 0), 0)
      assert.isAbove(run.fired.length, 0)
    }
  })

  it.effect("has one history, whatever its server did before, and in any thread", () =>
    Effect.gen(function*() {
      const pool = yield* Pool.make(new URL("../../src/sim/sql/harness.ts", import.meta.url), 1)
      const [elsewhere] = yield* pool.each([{ _tag: "Run", spec: swarm(5), keep: {} } as const])
      const first = simulate(swarm(5))
      simulate(swarm(6))
      assert.strictEqual(simulate(swarm(5)).hash, first.hash)
      assert.strictEqual(elsewhere?.hash, first.hash)
    }).pipe(Effect.scoped), 60_000)

  it("has that history also after a run that ended in the middle of a transaction", () => {
    // Its first transaction is rolled back: with it would go what was done before, if that were in no other.
    const rolledBack: Spec = { ...quiet, faults: [{ kind: "serialization_failure", actor: "worker-1#1", label: "commit", index: 0 }] }
    const { hash, unused } = simulate(rolledBack)
    assert.deepStrictEqual(unused.faults, [])
    const endsInside = (forMs: number): boolean => {
      simulate(quiet, { forMs })
      return server.must("select pg_current_xact_id_if_assigned() is not null as inside")[0]!.inside === true
    }
    // Not in its first transactions, before which it was as the next run is.
    assert.isTrue(Array.from({ length: 100 }, (_, n) => 100 + 5 * n).some(endsInside))
    assert.strictEqual(simulate(rolledBack).hash, hash)
  })

  it("shows oracles every row of every table as it is committed", () => {
    let database: Database | null = null
    const run = simulateOn((options) => database = open(options))(swarm(7))
    assert.deepStrictEqual(run.violations, [])
    const { committed } = database!
    for (const source of sources) {
      const rows = server.must(`select ${keyOf(source, "t")} as key from ${source.table} t`).map(({ key }) => key as string)
      assert.deepStrictEqual([...committed[source.name].keys()].toSorted(), rows.toSorted(), source.name)
    }
    assert.isAbove(committed.operations.size, 0)
    for (const operation of committed.operations.values()) {
      const [row] = server.must("select state, epoch from operations where workspace_id || '/' || id = $1", [refKey(operation)])
      assert.deepStrictEqual(row, { state: operation.state, epoch: operation.epoch })
    }
  })

  it("is watched by the same oracles: a store that does not redact is noticed", () => {
    const run = simulateOn(forgetful)(quiet)
    assert.include(run.violations.map(({ invariant }) => invariant), "success-is-redacted")
    assert.deepStrictEqual(simulate(quiet).violations, [])
  })

  it("loses the acknowledgement of a commit that is there, and finds it done", () => {
    // The first commit of a process binds the index to its model.
    const run = simulate({ ...quiet, faults: [{ kind: "lost_acknowledgement", actor: "api-1#1", label: "commit", index: 1 }] })
    assert.deepStrictEqual(run.violations, [])
    assert.deepStrictEqual(run.unused.faults, [])
    assert.include(run.reached, "lost acknowledgement then retry finds it done")
    assert.deepStrictEqual(run.outcomes, { stored: 1 })
  })
})

describe("statements are called", () => {
  const names: ReadonlyArray<readonly [sql: string, label: string]> = [
    ["select value from fair_clock", "sql.select.fair_clock"],
    ["with due as materialized (select * from operations for no key update skip locked) select * from due", "sql.select.operations"],
    ["with a as (select 1) update operations o set ready = true", "sql.update.operations"],
    ["insert into transfers (kind) values ('grant')", "sql.insert.transfers"],
    ["with gone as (select 1 from x) delete from projections p using gone", "sql.delete.projections"],
    ["select nextval('operation_seq') as seq", "sql.select"],
    ["select pg_advisory_xact_lock(key) from unnest($1::bigint[]) as key order by key", "sql.select"]
  ]
  for (const [sql, label] of names) it(`${label}: ${sql}`, () => assert.strictEqual(labelOf(sql), label))
})
