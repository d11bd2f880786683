/** The reads of `MemoryStore` on Postgres. None of them locks anything. */
import type { PgClient } from "@effect/sql-pg"
import { Effect, Schema } from "effect"
import { MemoryId, OperationId, WorkspaceId } from "../domain/Ids.ts"
import { HistoryEntry } from "../domain/Memory.ts"
import type { MemoryStore } from "../services/MemoryStore.ts"
import { decodeMemories, inScope, memoryColumns, refRows } from "./PgMemoryRows.ts"
import { milliseconds } from "./PgRows.ts"
import { outcome } from "./PgTransaction.ts"

const decodeHistory = Schema.decodeUnknownSync(Schema.Array(HistoryEntry))
const decodeIds = Schema.decodeUnknownSync(Schema.Array(Schema.Struct({ id: MemoryId })))
const decodeStanding = Schema.decodeUnknownSync(Schema.Array(Schema.Struct({
  workspaceId: WorkspaceId,
  id: OperationId,
  pending: Schema.Int,
  maxAttempts: Schema.Int
})))

/** The longest query that is looked at, in characters. */
const queryMaxLength = 1_000
/** Of more matches than this the newest are ranked. */
const rankedMax = 10_000

type Reads = Pick<MemoryStore, "get" | "list" | "history" | "lexical" | "projectionAttempts">

export const makeReads = (sql: PgClient.PgClient): Reads => {
  const columns = sql.literal(memoryColumns)

  return {
    get: (refs) =>
      refs.length === 0
        ? Effect.succeed([])
        : outcome(sql`select ${columns} from memories m
          join ${refRows(sql, refs)} on m.workspace_id = r.workspace_id and m.id = r.id`).pipe(Effect.map(decodeMemories)),

    list: (page) =>
      outcome(sql`select ${columns} from memories m
        where ${inScope(sql, page.workspaceId, page.scope)} and m.metadata @> ${sql.json(page.metadata)}
          and ${page.before === null ? sql.literal("true") : sql`m.id < ${page.before}::uuid`}
        order by m.id desc limit ${page.limit}`).pipe(Effect.map(decodeMemories)),

    history: (ref) =>
      outcome(sql`select memory_id as "memoryId", version, change, text, operation_id as "operationId",
          ${sql.literal(milliseconds("at"))} as at
        from memory_history where workspace_id = ${ref.workspaceId} and memory_id = ${ref.id}::uuid
        order by version`).pipe(Effect.map(decodeHistory)),

    lexical: (search) => {
      // Text that Postgres refuses can be in no memory either.
      const text = search.query.replaceAll("\u0000", " ").toWellFormed()
      // As written, then relaxed: every word that is not excluded is wanted, none is needed. `ts_rank` and not
      // `ts_rank_cd`, which for words joined by "or" prefers one word four times to two words that were asked for.
      const written = sql`websearch_to_tsquery('english', left(${text}, ${sql.literal(String(queryMaxLength))}))`
      const relaxed = sql`replace(querytree(${written}), ' & ', ' | ')::tsquery`
      // Not prepared: how many memories hold a word decides how it is looked for, and a plan for any word knows neither.
      return outcome(sql`select id from (
          select m.id, m.words from memories m
          where ${inScope(sql, search.workspaceId, search.scope)} and m.metadata @> ${sql.json(search.metadata)}
            and m.words @@ ${relaxed}
          order by m.id desc limit ${rankedMax}
        ) found
        order by words @@ ${written} desc, ts_rank(words, ${relaxed}) desc, id desc limit ${search.limit}`.unprepared).pipe(
        Effect.map((rows) => decodeIds(rows).map(({ id }) => id))
      )
    },

    projectionAttempts: (refs) =>
      refs.length === 0
        ? Effect.succeed([])
        : outcome(sql`select p.workspace_id as "workspaceId", p.operation_id as id, count(*)::int4 as pending,
            max(p.attempts) as "maxAttempts"
          from projections p join ${refRows(sql, refs)} on p.workspace_id = r.workspace_id and p.operation_id = r.id
          group by p.workspace_id, p.operation_id`).pipe(Effect.map(decodeStanding))
  }
}
