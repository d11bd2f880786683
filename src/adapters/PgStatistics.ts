/**
 * Keeps what Postgres believes about the size of our tables near the truth. Autovacuum looks once a minute; until then
 * a table that was empty when a statement was planned is read from end to end by every lookup.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Schedule } from "effect"
import { outcome } from "./PgTransaction.ts"

/** A table is looked at again when it has doubled, from this many pages on. */
const smallestPages = 8

/** Measures the tables that have doubled since they were last measured, which has their statements planned anew. */
export const refresh = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const grown = yield* outcome(sql<{ readonly name: string }>`select c.oid::regclass::text as name from pg_class c
    where c.relkind = 'r' and c.relnamespace = current_schema::regnamespace
      and pg_relation_size(c.oid) / current_setting('block_size')::bigint > 2 * greatest(c.relpages, ${smallestPages})
    order by c.oid`)
  yield* Effect.forEach(grown, ({ name }) => outcome(sql.unsafe(`analyze (skip_locked) ${name}`)), { discard: true })
  return grown.map(({ name }) => name)
})

/** Looks every two seconds, for as long as the layer lives. A look that fails is made up for by the next. */
export const layer: Layer.Layer<never, never, PgClient.PgClient> = Layer.effectDiscard(
  refresh.pipe(Effect.ignore, Effect.repeat(Schedule.spaced("2 seconds")), Effect.forkScoped)
)
