/** A burst into empty tables is served at full speed: the planner hears of it from us, not a minute later. */
import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as PgStatistics from "../../src/adapters/PgStatistics.ts"
import { PgTest } from "../postgres.ts"

layer(PgTest.layer)("statistics", (it) => {
  it.effect("a table that has doubled is measured once, and statements on it are planned anew", () =>
    Effect.gen(function*() {
      const sql = yield* PgClient.PgClient
      // A connection of its own, so that the plan that is cached in it is the one that is looked at.
      yield* sql.withTransaction(Effect.gen(function*() {
        yield* sql`alter table outbox set (autovacuum_enabled = false)`
        yield* sql`prepare lookup as select count(*) from outbox o join generate_series(1, 100) n on o.seq = n`
        const plan = Effect.map(sql`explain execute lookup`, (rows) => JSON.stringify(rows))
        yield* sql`insert into outbox (workspace_id, operation_id, state)
          select 'w', gen_random_uuid(), 'pending' from generate_series(1, 50000)`
        const before = yield* plan
        assert.include(yield* PgStatistics.refresh, "outbox")
        assert.notStrictEqual(yield* plan, before)
        assert.notInclude(yield* PgStatistics.refresh, "outbox")
      }))
    }))
})
