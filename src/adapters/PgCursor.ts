/** Queries that are read side by side, a page at a time, in the order of a key that they share. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"

/** A row with the key that it is ordered by. */
export interface Keyed {
  readonly key: string
}

interface Source {
  readonly name: string
  rows: Array<Keyed & object>
  done: boolean
}

/**
 * Opens a cursor for each query in the surrounding transaction, and hands over their rows in portions: all rows of one
 * key are in one portion, and a portion has about `pageSize` rows of each query. Each query yields `key`, ascending in
 * byte order. `see` is called until all are read.
 */
export const sideBySide = Effect.fnUntraced(function*<Name extends string, E, R>(
  sql: PgClient.PgClient,
  queries: Record<Name, Fragment>,
  pageSize: number,
  see: (portion: Record<Name, ReadonlyArray<object>>) => Effect.Effect<void, E, R>
): Effect.fn.Return<void, E | SqlError, R> {
  const names = Object.keys(queries) as Array<Name>
  const sources = new Map<Name, Source>()
  for (const name of names) {
    yield* sql`declare ${sql(`audit_${name}`)} no scroll cursor for ${queries[name]}`.unprepared
    sources.set(name, { name, rows: [], done: false })
  }
  const fill = Effect.fnUntraced(function*(source: Source) {
    const page = yield* sql<Keyed>`fetch ${sql.literal(String(pageSize))} from ${sql(`audit_${source.name}`)}`.unprepared
    source.rows.push(...page)
    source.done = page.length < pageSize
  })

  const all = [...sources.values()]
  while (true) {
    for (const source of all) {
      if (!source.done && source.rows.length === 0) yield* fill(source)
    }
    if (all.every((source) => source.done && source.rows.length === 0)) break
    const before = boundary(all)
    const taken = all.map((source) => take(source, before))
    // A page of one key only: its rest may be on the next.
    if (taken.every((rows) => rows.length === 0)) {
      for (const source of all) {
        if (!source.done && source.rows.at(-1)?.key === before) yield* fill(source)
      }
      continue
    }
    yield* see(Object.fromEntries(names.map((name, index) => [name, taken[index]!])) as Record<Name, ReadonlyArray<object>>)
  }
  for (const name of names) yield* sql`close ${sql(`audit_${name}`)}`.unprepared
})

/** The first key of which not every row may be here; null when all are. */
const boundary = (sources: ReadonlyArray<Source>): string | null => {
  const open = sources.flatMap(({ done, rows }) => done ? [] : [rows.at(-1)!.key])
  return open.length === 0 ? null : open.reduce((a, b) => a < b ? a : b)
}

const take = (source: Source, before: string | null): ReadonlyArray<object> => {
  const index = before === null ? -1 : source.rows.findIndex(({ key }) => key >= before)
  const count = index < 0 ? source.rows.length : index
  return source.rows.splice(0, count)
}
