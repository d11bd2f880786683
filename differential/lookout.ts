/** Somebody who looks on while connections of Postgres are busy, and says who waits for whom once everybody does. */
import { PgClient } from "@effect/sql-pg"
import { Effect, type Redacted } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import type { Connection } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import { session } from "../src/adapters/PgDatabase.ts"
import { isCircular } from "./history.ts"
import type { Wait } from "./kind.ts"

/** One who is looked at. */
export interface Watched {
  readonly on: number
  /** Of its connections: the process of the server. */
  readonly pids: ReadonlyArray<number>
  /** It has been asked for something, and has not answered. */
  readonly busy: boolean
}

/** How often somebody looks before he says that Postgres never comes to rest. */
const looks = 200_000

/** What every connection of a lane is opened with. Whoever waits in a circle finds out at once, and nobody gives up before he is told to. */
export const options = (url: Redacted.Redacted, name: string) => {
  const production = session(url, `differential ${name}`)
  return {
    ...production,
    startupParameters: {
      ...production.startupParameters,
      search_path: name,
      deadlock_timeout: "1ms",
      lock_timeout: "0",
      statement_timeout: "0",
      idle_in_transaction_session_timeout: "0"
    }
  }
}

/** A connection that stays the same until the scope closes. */
export const connect = Effect.fnUntraced(
  function*(url: Redacted.Redacted, name: string) {
    const sql = yield* PgClient.make({ ...options(url, name), maxConnections: 1 })
    return yield* sql.reserve
  },
  Effect.provide(Reactivity.layer)
)

export const pidOf = (connection: Connection): Effect.Effect<number, SqlError> =>
  Effect.map(connection.execute("select pg_backend_pid() as pid", [], undefined), (rows) => Number(rows[0].pid))

/** A schema of this name, empty, and gone when the scope closes. Nobody else's may have it. */
export const schema = (observer: Connection, name: string) =>
  Effect.acquireRelease(
    Effect.andThen(
      observer.executeUnprepared(`drop schema if exists ${name} cascade`, [], undefined),
      observer.executeUnprepared(`create schema ${name}`, [], undefined)
    ),
    () => Effect.ignore(observer.executeUnprepared(`drop schema if exists ${name} cascade`, [], undefined))
  )

/** Returns who waits once everybody who is busy does, and nobody for himself, unless it is too early. */
export const settled = Effect.fnUntraced(function*(
  observer: Connection,
  members: ReadonlyArray<Watched>,
  isEarly: (waits: ReadonlyArray<Wait>) => boolean = () => false
) {
  for (let times = 0; times < looks; times++) {
    const waits = yield* look(observer, members)
    if (waits !== null && !isEarly(waits)) return waits
  }
  return yield* Effect.die(new Error("Postgres does not come to rest"))
})

/**
 * Null: something is still happening. One look at all locks says who waits at that moment; if everybody does, nobody
 * changes that but who is in a circle.
 */
const look = Effect.fnUntraced(function*(observer: Connection, members: ReadonlyArray<Watched>) {
  const busy = members.filter(({ busy }) => busy)
  if (busy.length === 0) return []
  const rows: ReadonlyArray<{ readonly pid: number; readonly blocker: number }> = yield* observer.execute(
    `with waiting as materialized (select distinct pid from pg_locks where not granted and pid = any($1::int4[]))
     select pid, blocker from waiting, unnest(pg_blocking_pids(pid)) as blocker`,
    [`{${busy.flatMap(({ pids }) => pids).join()}}`],
    undefined
  )
  const still = members.filter(({ busy }) => busy)
  const waits = still.map(({ on, pids }): Wait => ({
    on,
    for: rows.filter(({ pid }) => pids.includes(pid)).map(({ blocker }) =>
      members.find(({ pids }) => pids.includes(blocker))?.on ?? stranger)
  }))
  if (still.length !== busy.length) return still.length === 0 ? [] : null
  return waits.some((wait) => wait.for.length === 0) || isCircular(waits) ? null : waits
})

/** Nobody of the lane. No model knows of such a one. */
const stranger = -1
