/** `OperationStore` on Postgres: set-based statements, leases by the database clock, every wait in one lock order. */
import { PgClient } from "@effect/sql-pg"
import { Effect, Option, Random, Schema } from "effect"
import { InferInput } from "../domain/Command.ts"
import { type LaneRef, OperationId, type OperationRef, WorkspaceId } from "../domain/Ids.ts"
import { type Lease, Operation } from "../domain/Operation.ts"
import { Plan } from "../domain/Plan.ts"
import { pickScope } from "../domain/Scope.ts"
import type { Frozen, KeyRow, NewOperation, OperationStore, SavedOperation } from "../services/OperationStore.ts"
import { LeasePool } from "./PgDatabase.ts"
import { makeReads } from "./PgOperationReads.ts"
import { milliseconds, operationColumns, rowOf, rowsOf } from "./PgRows.ts"
import { type Column, type Columns, refColumns, table } from "./PgTable.ts"
import { outcome } from "./PgTransaction.ts"

const decodeOperations = rowsOf(Operation)
const decodeOperation = rowOf(Operation)
const NowRow = Schema.Tuple([Schema.Struct({ now: Schema.Finite })])
const Work = Schema.Struct({
  workspaceId: WorkspaceId,
  id: OperationId,
  input: Schema.NullOr(InferInput),
  plan: Schema.NullOr(Plan)
})

const decodeWork = rowOf(Work)

const clock = milliseconds("clock_timestamp()")

export const make = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const leasePool = yield* LeasePool
  const columns = sql.literal(operationColumns)
  const dbNow = sql.literal(clock)
  const refs = (rows: ReadonlyArray<OperationRef>) => table(sql, rows, refColumns)
  const lanes = (rows: ReadonlyArray<LaneRef>) => table(sql, rows, laneColumns)
  /** Splits rows that carry the clock beside each operation. */
  const locked = (rows: ReadonlyArray<object>) => ({ now: nowOf(rows), operations: decodeOperations(rows) })
  /** The same of the rows that this release can read: what another has written keeps no worker from the rest. */
  const offered = Effect.fnUntraced(function*(rows: ReadonlyArray<object>) {
    const operations = rows.flatMap((row) => Option.toArray(decodeOperation(row)))
    const unreadable = rows.length - operations.length
    if (unreadable > 0) {
      yield* Effect.logError("Operations cannot be read by this release").pipe(Effect.annotateLogs({ unreadable }))
    }
    return { now: nowOf(rows), operations }
  })

  const store: Omit<OperationStore, keyof ReturnType<typeof makeReads>> = {
    now: outcome(sql`select ${dbNow} as now`).pipe(
      Effect.map((rows) => Schema.decodeUnknownSync(NowRow)(rows)[0].now)
    ),

    lockLanes: Effect.fnUntraced(function*(laneRefs) {
      if (laneRefs.length === 0) return
      yield* outcome(sql`select pg_advisory_xact_lock(key) from (
        select distinct hashtextextended(workspace_id || '/' || lane, 0) as key from ${lanes(laneRefs)} order by key
      ) keys`)
    }),

    occupiedLanes: (laneRefs) =>
      outcome(sql<{ workspaceId: WorkspaceId; lane: LaneRef["lane"] }>`
        select r.workspace_id as "workspaceId", r.lane from ${lanes(laneRefs)}
        where exists (select from operations o where o.workspace_id = r.workspace_id and o.lane = r.lane
          and o.state in ('pending', 'running'))`),

    insertKeys: Effect.fnUntraced(function*(keys) {
      if (keys.length === 0) return
      yield* outcome(sql`insert into idempotency_keys (workspace_id, key_hash, command_version, command_hash, operation_id)
        select * from ${table(sql, keys, keyColumns)}`)
    }),

    insert: Effect.fnUntraced(function*(rows) {
      if (rows.length === 0) return
      const inputs = rows.filter(({ input }) => input !== null)
      const keys = rows.flatMap(({ key }) => key === null ? [] : [key])
      yield* outcome(sql`with ops as (
          insert into operations (workspace_id, id, kind, state, scope, lane, seq, ready, fair_tag, epoch, attempts,
            window_started_at, authorization_no, outcome, results, evidence, created_at, completed_at)
          select workspace_id, id, kind, state, scope, lane, nextval('operation_seq'), ready, fair_tag, 0, 0,
            created_at, authorization_no, outcome, results, evidence, created_at, completed_at
          from ${table(sql, rows, newColumns)}
          order by n
        ), inputs as (
          insert into operation_inputs (workspace_id, operation_id, input) select * from ${table(sql, inputs, inputColumns)}
        )
        insert into idempotency_keys (workspace_id, key_hash, command_version, command_hash, operation_id)
        select * from ${table(sql, keys, keyColumns)}`)
    }),

    fairClock: outcome(sql<{ clock: number; now: number }>`select value::float8 as clock, ${dbNow} as now from fair_clock`)
      .pipe(Effect.map((rows) => rows[0] ?? { clock: 0, now: 0 })),

    advanceFairClock: (to) =>
      outcome(sql`update fair_clock set value = ${to}::bigint where value < ${to}::bigint`).pipe(Effect.asVoid),

    // A retry that is due goes before fresh work, but takes at most half of a batch, and of an odd one a coin has the
    // last place: neither can starve the other, not even where a busy worker asks for one at a time.
    claimable: Effect.fnUntraced(function*(limit) {
      const half = Math.floor(limit / 2)
      const last = limit % 2 === 0 ? 0 : 1
      const toFresh = yield* Random.nextBoolean
      return yield* outcome(sql`with due as materialized (
          select * from operations where state = 'pending' and ready and next_attempt_at is not null
            and next_attempt_at <= statement_timestamp()
          order by next_attempt_at limit ${half}::bigint + case when ${toFresh}::boolean and (
            select true from operations where state = 'pending' and ready and next_attempt_at is null
            order by fair_tag, seq limit 1
          ) then 0 else ${last}::bigint end for no key update skip locked
        ), fresh as materialized (
          select * from operations where state = 'pending' and ready and next_attempt_at is null
          order by fair_tag, seq limit greatest(${limit}::bigint - (select count(*) from due), 0)
          for no key update skip locked
        )
        select ${columns}, ${dbNow} as now from (select * from due union all select * from fresh) o`).pipe(
        Effect.flatMap(offered)
      )
    }),

    expired: (limit) =>
      outcome(sql`select ${columns}, ${dbNow} as now from operations o
        where state = 'running' and lease_expires_at < statement_timestamp()
        order by id limit ${limit} for no key update skip locked`).pipe(Effect.flatMap(offered)),

    lock: (rows) =>
      rows.length === 0
        ? Effect.succeed({ now: 0, operations: [] })
        : outcome(sql`with rows as materialized (
            select o.* from operations o join ${refs(rows)} on o.workspace_id = r.workspace_id and o.id = r.id
            order by o.workspace_id, o.id for no key update of o
          ) select ${columns}, ${dbNow} as now from rows o`).pipe(Effect.map(locked)),

    // Only what changed is sent: a claim moves a lease, and few things move a place in a lane.
    save: Effect.fnUntraced(function*(rows) {
      if (rows.length === 0) return []
      const changed = Object.entries(savedColumns).filter(([, [field]]) =>
        rows.some(({ from, to }) => from[field] !== to[field]))
      const columns = Object.fromEntries(changed.map(([name, [field, type]]) =>
        [name, [type, ({ to }: SavedOperation) => to[field]] satisfies Column<SavedOperation>]))
      const set = sql.literal(["state = r.state", ...changed.map(([name]) => `${name} = r.${name}`)].join(", "))
      return yield* outcome(sql<OperationRef>`update operations o set ${set}
        from ${table(sql, rows, { ...fenceColumns, ...columns })}
        where o.workspace_id = r.workspace_id and o.id = r.id and o.state = r.from_state and o.epoch = r.from_epoch
        returning o.workspace_id as "workspaceId", o.id`)
    }),

    renew: (leases, leaseMs) =>
      leases.length === 0
        ? Effect.succeed([])
        : outcome(leasePool<{ workspaceId: WorkspaceId; id: OperationId; epoch: number }>`with mine as materialized (
            select o.workspace_id, o.id from operations o
            join ${table(sql, leases, leaseColumns)}
              on o.workspace_id = r.workspace_id and o.id = r.id and o.epoch = r.epoch
            where o.state = 'running' for no key update of o skip locked
          )
          update operations o set lease_expires_at = clock_timestamp() + ${leaseMs}::float8 * interval '1 millisecond'
          from mine where o.workspace_id = mine.workspace_id and o.id = mine.id and o.state = 'running'
          returning o.workspace_id as "workspaceId", o.id, o.epoch`),

    work: (rows) =>
      outcome(sql`select r.workspace_id as "workspaceId", r.id, i.input, p.plan from ${refs(rows)}
        left join operation_inputs i on i.workspace_id = r.workspace_id and i.operation_id = r.id
        left join operation_plans p on p.workspace_id = r.workspace_id and p.operation_id = r.id`).pipe(
        Effect.map((found) => found.flatMap((row) => Option.toArray(decodeWork(row))))
      ),

    // What was written is in force. Only where something was not, an older plan has to be read.
    freeze: Effect.fnUntraced(function*(rows) {
      if (rows.length === 0) return []
      const written = yield* outcome(sql`insert into operation_plans (workspace_id, operation_id, plan)
        select * from ${table(sql, rows, planColumns)} on conflict do nothing returning 1`)
      if (written.length === rows.length) return rows
      const inForce = yield* store.work(rows)
      return inForce.flatMap(({ workspaceId, id, plan }) => plan === null ? [] : [{ workspaceId, id, plan }])
    }),

    redact: Effect.fnUntraced(function*(rows) {
      if (rows.length === 0) return
      yield* outcome(sql`with ended as materialized (select workspace_id, id from ${refs(rows)}), plans as (
          delete from operation_plans p using ended e where p.workspace_id = e.workspace_id and p.operation_id = e.id
        )
        delete from operation_inputs i using ended e where i.workspace_id = e.workspace_id and i.operation_id = e.id`)
    }),

    announce: Effect.fnUntraced(function*(rows) {
      if (rows.length === 0) return
      yield* outcome(sql`insert into outbox (workspace_id, operation_id, state)
        select * from ${table(sql, rows, announcementColumns)}`)
    }),

    readyNext: (laneRefs) =>
      laneRefs.length === 0
        ? Effect.succeed(0)
        : outcome(sql`update operations o set ready = true, fair_tag = greatest(o.fair_tag, next.clock + next.place) from (
            select n.workspace_id, n.id, row_number() over (partition by n.workspace_id order by n.seq) as place,
              (select value from fair_clock) as clock
            from (select distinct workspace_id, lane from ${lanes(laneRefs)}) l
            cross join lateral (
              select o.workspace_id, o.lane, o.id, o.seq, o.ready from operations o
              where o.workspace_id = l.workspace_id and o.lane = l.lane and o.state in ('pending', 'running')
              order by o.seq limit 1
            ) n
            where not n.ready and not exists (
              select from operations h where h.workspace_id = n.workspace_id and h.lane = n.lane and h.ready)
          ) next
          where o.workspace_id = next.workspace_id and o.id = next.id
          returning 1`).pipe(Effect.map((rows) => rows.length)),

    nextSeq: outcome(sql<{ seq: bigint }>`select nextval('operation_seq') as seq`).pipe(
      Effect.map((rows) => Number(rows[0]?.seq))
    )
  }
  return { ...store, ...makeReads(sql) } satisfies OperationStore
})

const nowOf = (rows: ReadonlyArray<object>): number => (rows[0] as { now?: number } | undefined)?.now ?? 0

const laneColumns: Columns<LaneRef> = { workspace_id: ["text", (r) => r.workspaceId], lane: ["text", (r) => r.lane] }

const leaseColumns: Columns<Lease> = { ...refColumns, epoch: ["int", (r) => r.epoch] }

const announcementColumns: Columns<Operation> = { ...refColumns, state: ["text", (r) => r.state] }

const planColumns: Columns<Frozen> = { ...refColumns, plan: ["jsonb", (r) => r.plan] }

const keyColumns: Columns<KeyRow> = {
  workspace_id: ["text", (r) => r.workspaceId],
  key_hash: ["text", (r) => r.keyHash],
  command_version: ["int", (r) => r.commandVersion],
  command_hash: ["text", (r) => r.commandHash],
  operation_id: ["uuid", (r) => r.operationId]
}

const inputColumns: Columns<NewOperation> = {
  workspace_id: ["text", (r) => r.operation.workspaceId],
  operation_id: ["uuid", (r) => r.operation.id],
  input: ["jsonb", (r) => r.input]
}

const newColumns: Columns<NewOperation> = {
  n: ["int", (_, n) => n],
  workspace_id: ["text", (r) => r.operation.workspaceId],
  id: ["uuid", (r) => r.operation.id],
  kind: ["text", (r) => r.operation.kind],
  state: ["text", (r) => r.operation.state],
  scope: ["jsonb", (r) => pickScope(r.operation.scope)],
  lane: ["text", (r) => r.operation.lane],
  ready: ["bool", (r) => r.operation.ready],
  fair_tag: ["bigint", (r) => r.operation.fairTag],
  authorization_no: ["int", (r) => r.operation.authorizationNo],
  outcome: ["text", (r) => r.operation.outcome],
  results: ["jsonb", (r) => r.operation.results],
  evidence: ["jsonb", (r) => r.operation.evidence],
  created_at: ["timestamptz", (r) => r.operation.createdAt],
  completed_at: ["timestamptz", (r) => r.operation.completedAt]
}

/** What a saved row is found by, and its state, which hardly any save leaves as it was. */
const fenceColumns: Columns<SavedOperation> = {
  workspace_id: ["text", (r) => r.to.workspaceId],
  id: ["uuid", (r) => r.to.id],
  from_state: ["text", (r) => r.from.state],
  from_epoch: ["int", (r) => r.from.epoch],
  state: ["text", (r) => r.to.state]
}

/** What may change beside the state: the field of each column, and its type. */
const savedColumns: { readonly [name: string]: readonly [field: keyof Operation, type: Column<Operation>[0]] } = {
  seq: ["seq", "bigint"],
  ready: ["ready", "bool"],
  fair_tag: ["fairTag", "bigint"],
  next_attempt_at: ["nextAttemptAt", "timestamptz"],
  epoch: ["epoch", "int"],
  attempts: ["attempts", "int"],
  invalid_outputs: ["invalidOutputs", "int"],
  window_started_at: ["windowStartedAt", "timestamptz"],
  lease_owner: ["leaseOwner", "text"],
  lease_expires_at: ["leaseExpiresAt", "timestamptz"],
  authorization_no: ["authorizationNo", "int"],
  failure: ["failure", "text"],
  outcome: ["outcome", "text"],
  results: ["results", "jsonb"],
  evidence: ["evidence", "jsonb"],
  started_at: ["startedAt", "timestamptz"],
  completed_at: ["completedAt", "timestamptz"]
}
