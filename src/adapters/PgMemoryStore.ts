/** `MemoryStore` on Postgres: each write is one guarded statement, and rows are locked by workspace and id. */
import { PgClient } from "@effect/sql-pg"
import { Effect, Schema, type Scope } from "effect"
import { MemoryId, OperationId, refKey, WorkspaceId } from "../domain/Ids.ts"
import { Memory } from "../domain/Memory.ts"
import type { MemoryWrite } from "../domain/Plan.ts"
import { scopeKeys } from "../domain/Scope.ts"
import type { MemoryStore, Projection } from "../services/MemoryStore.ts"
import { makeReads } from "./PgMemoryReads.ts"
import { decodeMemories, memoryColumns, refRows } from "./PgMemoryRows.ts"
import * as PgRecentMemories from "./PgRecentMemories.ts"
import { rowsOf } from "./PgRows.ts"
import { type Columns, table } from "./PgTable.ts"
import { outcome } from "./PgTransaction.ts"

const decodeRefs = rowsOf(Schema.Struct({ workspaceId: WorkspaceId, id: MemoryId }))
const decodeClaimed = rowsOf(Schema.Struct({
  projection: Schema.Struct({
    workspaceId: WorkspaceId,
    id: MemoryId,
    version: Schema.Int,
    operationId: OperationId,
    attempts: Schema.Int
  }),
  memory: Schema.NullOr(Memory)
}))

export const make: Effect.Effect<MemoryStore, never, PgClient.PgClient | Scope.Scope> = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const columns = sql.literal(memoryColumns)
  const scope = sql.literal(scopeKeys.join(", "))

  const recent = yield* PgRecentMemories.make

  const store: Omit<MemoryStore, keyof ReturnType<typeof makeReads> | "recent"> = {
    lock: (refs) =>
      refs.length === 0
        ? Effect.succeed([])
        : outcome(sql`select ${columns} from memories m
          join ${refRows(sql, refs)} on m.workspace_id = r.workspace_id and m.id = r.id
          order by m.workspace_id, m.id for no key update of m`).pipe(Effect.map(decodeMemories)),

    // The guards stand on the rows as they are written: whoever came first has already moved the version on.
    write: (writes) =>
      writes.length === 0
        ? Effect.succeed([])
        : outcome(sql`with rows as materialized (
            select * from ${table(sql, firstOfEach(writes), writeColumns)}
          ), added as (
            insert into memories
              (workspace_id, id, version, text, ${scope}, metadata, event_date, operation_id, created_at, updated_at)
            select workspace_id, id, version, text, ${scope}, metadata, event_date, operation_id, created_at, updated_at
            from rows where change = 'add' order by workspace_id, id
            on conflict do nothing
            returning workspace_id, id
          ), behind as materialized (
            select m.workspace_id, m.id from memories m join rows r on m.workspace_id = r.workspace_id and m.id = r.id
            where r.change <> 'add' order by m.workspace_id, m.id for no key update of m
          ), changed as (
            update memories m set version = r.version, text = r.text, metadata = r.metadata, event_date = r.event_date,
              operation_id = r.operation_id, updated_at = r.updated_at, deleted = r.change = 'delete'
            from behind b join rows r on b.workspace_id = r.workspace_id and b.id = r.id
            where m.workspace_id = b.workspace_id and m.id = b.id and r.change <> 'add'
              and m.version = r.version - 1 and not m.deleted
            returning m.workspace_id, m.id
          ), written as materialized (
            select r.* from rows r
            join (select * from added union all select * from changed) w on w.workspace_id = r.workspace_id and w.id = r.id
          ), remembered as (
            insert into memory_history (workspace_id, memory_id, version, change, text, operation_id, at)
            select workspace_id, id, version, change, text, operation_id, updated_at from written
          ), erased as (
            update memory_history h set text = null from written w
            where w.change = 'delete' and h.workspace_id = w.workspace_id and h.memory_id = w.id and h.text is not null
          ), projected as (
            insert into projections (workspace_id, memory_id, version, operation_id, next_attempt_at)
            select workspace_id, id, version, operation_id, now() from written
          )
          select workspace_id as "workspaceId", id from written`).pipe(Effect.map(decodeRefs)),

    claimProjections: (limit, leaseMs) =>
      outcome(sql`with due as materialized (
          select workspace_id, memory_id, version from projections
          where next_attempt_at <= now() order by next_attempt_at limit ${limit} for update skip locked
        ), claimed as (
          update projections p set attempts = p.attempts + 1,
            next_attempt_at = now() + ${leaseMs}::float8 * interval '1 millisecond'
          from due d where p.workspace_id = d.workspace_id and p.memory_id = d.memory_id and p.version = d.version
          returning p.*
        )
        select jsonb_build_object('workspaceId', c.workspace_id, 'id', c.memory_id, 'version', c.version,
            'operationId', c.operation_id, 'attempts', c.attempts) as projection,
          (select to_jsonb(live) from (select ${columns} from memories m
            where m.workspace_id = c.workspace_id and m.id = c.memory_id and m.version = c.version) live) as memory
        from claimed c`).pipe(Effect.map(decodeClaimed)),

    finishProjections: Effect.fnUntraced(function*(done) {
      if (done.length === 0) return
      yield* outcome(sql`with locked as materialized (
          select p.workspace_id, p.memory_id, p.version from projections p
          join ${table(sql, done, projectionColumns)} using (workspace_id, memory_id, version)
          order by p.workspace_id, p.memory_id, p.version for update of p
        )
        delete from projections p using locked l
        where p.workspace_id = l.workspace_id and p.memory_id = l.memory_id and p.version = l.version`)
    }),

    // Only by whoever claimed it last: the delay of a projector that lost its claim would end the next one's.
    postponeProjections: Effect.fnUntraced(function*(rows) {
      if (rows.length === 0) return
      const delayed = rows.map(({ projection, delayMs }) => ({ ...projection, delayMs }))
      yield* outcome(sql`with locked as materialized (
          select p.workspace_id, p.memory_id, p.version, r.delay_ms from projections p
          join ${table(sql, delayed, delayColumns)} using (workspace_id, memory_id, version, attempts)
          order by p.workspace_id, p.memory_id, p.version for update of p
        )
        update projections p set next_attempt_at = now() + l.delay_ms * interval '1 millisecond'
        from locked l
        where p.workspace_id = l.workspace_id and p.memory_id = l.memory_id and p.version = l.version`)
    })
  }
  return { ...store, ...makeReads(sql), recent }
})

/** Of several writes of one memory in a batch, the first counts: the others are not one version ahead of what is there. */
const firstOfEach = (writes: ReadonlyArray<MemoryWrite>): ReadonlyArray<MemoryWrite> => {
  const first = new Map<string, MemoryWrite>()
  for (const write of writes) {
    const key = refKey(write.memory)
    if (!first.has(key)) first.set(key, write)
  }
  return [...first.values()]
}

const writeColumns: Columns<MemoryWrite> = {
  change: ["text", (r) => r.change],
  workspace_id: ["text", (r) => r.memory.workspaceId],
  id: ["uuid", (r) => r.memory.id],
  version: ["int", (r) => r.memory.version],
  text: ["text", (r) => r.memory.text],
  ...Object.fromEntries(scopeKeys.map((key) => [key, ["text", (r: MemoryWrite) => r.memory.scope[key]] as const])),
  metadata: ["jsonb", (r) => r.memory.metadata],
  event_date: ["text", (r) => r.memory.eventDate],
  operation_id: ["uuid", (r) => r.memory.operationId],
  created_at: ["timestamptz", (r) => r.memory.createdAt],
  updated_at: ["timestamptz", (r) => r.memory.updatedAt]
}

const projectionColumns: Columns<Projection> = {
  workspace_id: ["text", (r) => r.workspaceId],
  memory_id: ["uuid", (r) => r.id],
  version: ["int", (r) => r.version]
}

const delayColumns: Columns<Projection & { readonly delayMs: number }> = {
  ...projectionColumns,
  attempts: ["int", (r) => r.attempts],
  delay_ms: ["float8", (r) => r.delayMs]
}
