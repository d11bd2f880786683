/** The statements of sequences in SQL, in the forms that the adapters use. */
import { enough, type Statement } from "./sequence.ts"

type Row = Readonly<Record<string, unknown>>

/** A text, its parameters, and what its rows say. */
export type Query = readonly [string, ReadonlyArray<unknown>, (rows: ReadonlyArray<Row>) => unknown]

const one = () => 1
const all = (rows: ReadonlyArray<Row>) => rows
const number = (rows: ReadonlyArray<Row>) => rows[0]?.["n"] ?? null
const howMany = (rows: ReadonlyArray<Row>) => rows.length

const arbiters = {
  any: "on conflict do nothing",
  id: "on conflict (id) do nothing",
  code: "on conflict (code) where code is not null do nothing"
}
const modes = { exclusive: "for no key update", share: "for share" }
const insert = "insert into things (id, code, n, at, home) values ($1, $2, 0, now(), $3)"
const array = (items: ReadonlyArray<string>): string => `{${items.join()}}`

/** Names are locked for the whole server, so that each lane has its own. */
export const queryOf = (act: Statement, lane: number): Query => {
  switch (act.do) {
    case "insert":
      return [insert, [act.id, act.code, act.home], one]
    case "offer":
      return [`${insert} ${arbiters[act.arbiter]} returning 1`, [act.id, act.code, null], howMany]
    case "upsert":
      return [
        `insert into things as t (id, n, at) values ($1, 0, now())
         on conflict (id) do update set n = t.n + 1, at = now() where t.n < ${enough} returning n`,
        [act.id],
        number
      ]
    case "count":
      return [`update things set n = n + 1, at = now() where id = $1 and n < ${enough} returning n`, [act.id], number]
    case "recode":
      return ["update things set code = $2 where id = $1 returning n", [act.id, act.code], number]
    case "delete":
      return [
        `with locked as materialized (select id from things where id = any($1::text[]) order by id for update)
         delete from things t using locked l where t.id = l.id returning 1`,
        [array(act.ids)],
        howMany
      ]
    case "lock":
      return [
        `select id, n from things where id = any($1::text[]) and n < ${enough} order by id ${modes[act.mode]}`,
        [array(act.ids)],
        all
      ]
    case "skip":
      return [
        `select id from things where n < ${enough} and (at <= now() or not $2::boolean)
         order by id limit $1::int4 for no key update skip locked`,
        [act.limit, act.due],
        (rows) => rows.map(({ id }) => id)
      ]
    case "read":
      return ["select id, code, n, home from things order by id", [], all]
    case "name":
      return [
        "select pg_advisory_xact_lock($1::int4, key) from (select ascii(unnest($2::text[])) as key order by key) keys",
        [lane, array(act.names)],
        howMany
      ]
    case "times":
      return ["select now() < statement_timestamp() as later", [], (rows) => [rows[0]?.["later"]]]
    case "home":
      return ["insert into homes values ($1)", [act.home], one]
    case "family":
      return [
        "with thing as (insert into things (id, n, at, home) values ($1, 0, now(), $2)) insert into homes values ($2)",
        [act.id, act.home],
        one
      ]
  }
}
