/**
 * Mends what an audit found and is safe to mend: derived rows, lost hand-overs, texts that should be gone. Every mending
 * looks again under its locks, so that a repeat mends nothing; none of them touches money, or makes or changes a record.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { inLockOrder, Lane, MemoryId, OperationId, refKey, WorkspaceId } from "../domain/Ids.ts"
import type { Violation } from "../domain/Invariant.ts"
import { Queue } from "../services/Queue.ts"
import { Repair } from "../services/Repair.ts"
import type { OutcomeUnknown } from "../services/Transaction.ts"
import { refRows } from "./PgMemoryRows.ts"
import * as PgVectorTable from "./PgVectorTable.ts"

/** One thing that was done. */
export interface Mended {
  readonly workspaceId: WorkspaceId
  /** The operation, memory or lane. */
  readonly id: string
  readonly did: string
}

/** Which mending an invariant that is broken asks for. The others are for a person to look at. */
const mendings: Record<string, "projection" | "oblivion" | "lane" | "redaction" | "wake-up"> = {
  "projected-or-waiting": "projection",
  "projection-never-ahead": "projection",
  "nothing-without-its-memory": "projection",
  "deleted-is-forgotten": "oblivion",
  "lanes-have-a-head": "lane",
  "success-is-redacted": "redaction",
  "failed-input-expires": "redaction",
  "leases-are-taken-over": "wake-up",
  "retries-start": "wake-up",
  "work-starts": "wake-up",
  "projections-advance": "wake-up"
}

/** Whether this is one that `mend` does something about. */
export const isMendable = ({ invariant }: Violation): boolean => invariant in mendings

const decodeMended = Schema.decodeUnknownSync(
  Schema.Array(Schema.Struct({ workspaceId: WorkspaceId, id: MemoryId, did: Schema.String }))
)
const decodeOperations = Schema.decodeUnknownSync(
  Schema.Array(Schema.Struct({ workspaceId: WorkspaceId, id: OperationId }))
)

/** Rows of one statement. */
const batchSize = 500

export const mend = Effect.fn("PgMend.mend")(function*(
  found: ReadonlyArray<Violation>
): Effect.fn.Return<
  ReadonlyArray<Mended>,
  SqlError | OutcomeUnknown,
  PgClient.PgClient | Repair | Queue
> {
  const queue = yield* Queue
  const of = (mending: string) => {
    const refs = found.filter(({ invariant }) => mendings[invariant] === mending)
    return inLockOrder([...new Map(refs.map((ref) => [refKey(ref), ref])).values()])
  }
  const projections = yield* inBatches(of("projection"), project)
  const texts = yield* inBatches(of("oblivion"), forget)
  const lanes = yield* Effect.forEach(of("lane"), mendLane)
  const redacted = yield* inBatches(of("redaction"), redact)
  const waiting = of("wake-up")
  // One hint is enough: whoever hears it looks at everything.
  yield* queue.send([{ _tag: "Work" }, { _tag: "Projection" }])
  return [
    ...projections,
    ...texts,
    ...lanes.flat(),
    ...redacted,
    ...waiting.map(({ id, workspaceId }) => ({ workspaceId, id, did: "told the workers to look" }))
  ]
})

const inBatches = <A, E, R>(
  refs: ReadonlyArray<Violation>,
  run: (batch: ReadonlyArray<Violation>) => Effect.Effect<ReadonlyArray<A>, E, R>
): Effect.Effect<ReadonlyArray<A>, E, R> =>
  Effect.map(
    Effect.forEach(
      Array.from({ length: Math.ceil(refs.length / batchSize) }, (_, n) => refs.slice(n * batchSize, (n + 1) * batchSize)),
      run
    ),
    (batches) => batches.flat()
  )

/**
 * Takes away what is ahead of the record or of no record, and queues the version that is missing. The memories are locked
 * meanwhile, so that none gets a version of which this does not know; the projector does the rest.
 */
const project = Effect.fnUntraced(function*(refs: ReadonlyArray<Violation>) {
  const sql = yield* PgClient.PgClient
  const bound = yield* PgVectorTable.bound
  const vectors = sql(bound?.kind === "hnsw" ? "memory_vectors_hnsw" : "memory_vectors")
  const ids = refs.filter(({ id }) => Schema.is(MemoryId)(id))
  return decodeMended(yield* sql`with refs as materialized (select * from ${refRows(sql, ids)}), held as materialized (
      select m.workspace_id, m.id, m.version, m.operation_id, m.deleted from memories m
      join refs r on m.workspace_id = r.workspace_id and m.id = r.id
      order by m.workspace_id, m.id for no key update of m
    ), found as materialized (
      select r.workspace_id, r.id, coalesce(h.version, 0) as version, h.operation_id, h.deleted from refs r
      left join held h on h.workspace_id = r.workspace_id and h.id = r.id
    ), misplaced as (
      delete from ${vectors} v using found f
      where v.workspace_id = f.workspace_id and v.memory_id = f.id and v.version > f.version
      returning v.workspace_id, v.memory_id, 'removed the vector of version ' || v.version as did
    ), early as (
      delete from projections p using found f
      where p.workspace_id = f.workspace_id and p.memory_id = f.id and p.version > f.version
      returning p.workspace_id, p.memory_id, 'removed the projection of version ' || p.version as did
    ), queued as (
      insert into projections (workspace_id, memory_id, version, operation_id, next_attempt_at)
      select f.workspace_id, f.id, f.version, f.operation_id, now() from found f
      left join ${vectors} v on v.workspace_id = f.workspace_id and v.memory_id = f.id
      where f.version > 0 and case when f.deleted then v.version <= f.version else v.version is distinct from f.version end
        and ${bound !== null}
      on conflict do nothing
      returning workspace_id, memory_id, 'queued version ' || version || ' for projection' as did
    )
    select workspace_id as "workspaceId", memory_id as id, did
    from (select * from misplaced union all select * from early union all select * from queued) mended`)
})

/** Erases what the history still knows of deleted memories. */
const forget = Effect.fnUntraced(function*(refs: ReadonlyArray<Violation>) {
  const sql = yield* PgClient.PgClient
  return decodeMended(yield* sql`update memory_history h set text = null from memories m
    join ${refRows(sql, refs)} on m.workspace_id = r.workspace_id and m.id = r.id
    where m.deleted and h.workspace_id = m.workspace_id and h.memory_id = m.id and h.text is not null
    returning h.workspace_id as "workspaceId", h.memory_id as id, 'erased the text of version ' || h.version as did`)
})

/** The hand-over that was lost. */
const mendLane = Effect.fnUntraced(function*({ id, workspaceId }: Violation) {
  const mended = yield* (yield* Repair).handOver([{ workspaceId, lane: Lane.make(id) }])
  return mended > 0 ? [{ workspaceId, id, did: "made its first operation ready" }] : []
})

/** Inputs and plans that nobody needs any more. */
const redact = Effect.fnUntraced(function*(found: ReadonlyArray<Violation>) {
  const sql = yield* PgClient.PgClient
  const kept = decodeOperations(yield* sql`select r.workspace_id as "workspaceId", r.id from ${refRows(sql, found)}
    where (r.workspace_id, r.id) in (
      select workspace_id, operation_id from operation_inputs union select workspace_id, operation_id from operation_plans
    )`)
  const forgotten = yield* (yield* Repair).forgetInputs(kept)
  return forgotten.map(({ id, workspaceId }): Mended => ({ workspaceId, id, did: "removed its input and its plan" }))
})
