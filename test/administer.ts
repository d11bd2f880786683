/** One statement on a connection of its own: a pool that has been idle opens none for a scope that is closing. */
import { PgClient } from "@effect/sql-pg"
import { Effect, type Redacted } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"

export const administer = (url: Redacted.Redacted, statement: string) =>
  PgClient.make({ url, maxConnections: 1 }).pipe(
    Effect.flatMap((sql) => sql.unsafe(statement)),
    Effect.scoped,
    Effect.provide(Reactivity.layer)
  )
