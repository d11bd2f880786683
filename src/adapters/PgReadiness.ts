/** `Readiness` by Postgres: ready means that the database answers within two seconds. */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer } from "effect"
import { Readiness } from "../services/Readiness.ts"

export const layer = Layer.effect(
  Readiness,
  Effect.map(PgClient.PgClient, (sql) =>
    Readiness.of({
      check: sql`select 1`.pipe(
        Effect.timeout("2 seconds"),
        Effect.isSuccess,
        Effect.map((answers) => ({ ready: answers, checks: { database: answers ? "ok" as const : "failing" as const } }))
      )
    }))
)
