/**
 * The newest memories of a scope, as every attempt asks for them: those who ask at the same time are answered by one
 * statement. It is no part of anybody's transaction.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Schema } from "effect"
import type { WorkspaceId } from "../domain/Ids.ts"
import { Memory } from "../domain/Memory.ts"
import { type ScopeFilter, scopeKeys } from "../domain/Scope.ts"
import * as Batcher from "../services/Batcher.ts"
import type { MemoryStore } from "../services/MemoryStore.ts"
import { memoryColumns } from "./PgMemoryRows.ts"
import { rowsOf } from "./PgRows.ts"
import { type Columns, table } from "./PgTable.ts"
import { outcome } from "./PgTransaction.ts"

interface Question {
  readonly workspaceId: WorkspaceId
  readonly scope: ScopeFilter
  readonly limit: number
}

/** Questions in one statement, and statements under way at once. */
const maxSize = 100
const loops = 2

const decode = rowsOf(Schema.Struct({ ...Memory.fields, n: Schema.Int }))

const questionColumns: Columns<Question & { readonly n: number }> = {
  n: ["int", (r) => r.n],
  workspace_id: ["text", (r) => r.workspaceId],
  ...Object.fromEntries(scopeKeys.map((key) => [key, ["text", (r: Question) => r.scope[key]] as const]))
}

export const make = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const columns = sql.literal(memoryColumns)

  /** Of one shape, so that each id is compared by an index or is null, and the plan is the same for all. */
  const ask = Effect.fnUntraced(function*(shape: string, limit: number, questions: ReadonlyArray<Question & { readonly n: number }>) {
    const given = shape.split(",")
    const same = sql.literal(
      scopeKeys.map((key) => given.includes(key) ? `m.${key} = r.${key}` : `m.${key} is null`).join(" and ")
    )
    return decode(yield* outcome(sql`select r.n, m.* from ${table(sql, questions, questionColumns)}
      cross join lateral (
        select ${columns} from memories m where m.workspace_id = r.workspace_id and not m.deleted and ${same}
        order by m.id desc limit ${limit}
      ) m`))
  })

  const run = Effect.fnUntraced(function*(questions: ReadonlyArray<Question>) {
    const answers: Array<Array<Memory>> = questions.map(() => [])
    const numbered = questions.map((question, n) => ({ ...question, n }))
    const alike = Map.groupBy(numbered, ({ limit, scope }) =>
      JSON.stringify([limit, scopeKeys.filter((key) => scope[key] !== undefined).join()]))
    for (const [key, group] of alike) {
      const [limit, shape] = JSON.parse(key) as [number, string]
      for (const { n, ...memory } of yield* ask(shape, limit, group)) answers[n]!.push(memory)
    }
    return answers.map((memories) => memories.toSorted((a, b) => a.id < b.id ? 1 : -1))
  })

  const submit = yield* Batcher.makeRoomy({ maxSize, loops, run })
  const recent: MemoryStore["recent"] = (workspaceId, scope, limit) => submit({ workspaceId, scope, limit })
  return recent
})
