/** The schema arrives once, whoever starts first, and a release never runs on a database that is not its own. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { PGliteTest, PgTest } from "../postgres.ts"

layer(PgTest.layer)("the migrated database", (it) => {
  it.effect("has the tables", () => Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    assert.deepStrictEqual(yield* sql`select count(*) as n from operations`, [{ n: 0n }])
  }))
})
layer(PGliteTest.layer)("the migrated pglite", (it) => {
  it.effect("has the tables", () => Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    yield* sql`create extension vector`
    assert.deepStrictEqual(yield* sql`select count(*) as n from operations`, [{ n: 0n }])
    assert.deepStrictEqual(yield* sql`select ('[1,2]'::vector <-> '[1,3]')::float8 as n`, [{ n: 1 }])
  }))
})
