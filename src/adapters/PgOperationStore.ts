/** `OperationStore` on Postgres: set-based statements, leases by the database clock, every wait in one lock order. */
import { PgClient } from "@effect/sql-pg"
import { Effect, Option, Random, Schema } from "effect"
import { InferInput } from "../domain/Command.ts"
import { type LaneRef, OperationId, type OperationRef, WorkspaceId } from "../domain/Ids.ts"
import { Operation } from "../domain/Operation.ts"
import { Plan } from "../domain/Plan.ts"
import { scopeKeys } from "../domain/Scope.ts"
import type { OperationStore } from "../services/OperationStore.ts"
import { LeasePool } from "./PgDatabase.ts"
import { makeReads } from "./PgOperationReads.ts"
import { operationColumns } from "./PgRows.ts"
import { outcome } from "./PgTransaction.ts"

const decodeOperations = Schema.decodeUnknownSync(Schema.Array(Operation))
const decodeOperation = Schema.decodeUnknownOption(Operation)
const NowRow = Schema.Tuple([Schema.Struct({ now: Schema.Finite })])
const Work = Schema.Struct({
  workspaceId: WorkspaceId,
  id: OperationId,
  input: Schema.NullOr(InferInput),
  plan: Schema.NullOr(Plan)
})

const decodeWork = Schema.decodeUnknownOption(Work)

const clock = `floor(extract(epoch from clock_timestamp()) * 1000)::float8`

export const make = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  const leasePool = yield* LeasePool
  const columns = sql.literal(operationColumns)
  const dbNow = sql.literal(clock)
  const refs = (rows: ReadonlyArray<OperationRef>) =>
    sql`jsonb_to_recordset(${sql.json(rows.map(({ workspaceId, id }) => ({ workspace_id: workspaceId, id })))})
      as r(workspace_id text, id uuid)`
  const lanes = (rows: ReadonlyArray<LaneRef>) =>
    sql`jsonb_to_recordset(${sql.json(rows.map(({ workspaceId, lane }) => ({ workspace_id: workspaceId, lane })))})
      as r(workspace_id text, lane text)`
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
        select workspace_id, key_hash, command_version, command_hash, operation_id
        from jsonb_to_recordset(${sql.json(keys.map(keyRow))})
          as r(workspace_id text, key_hash text, command_version int, command_hash text, operation_id uuid)`)
    }),

    insert: Effect.fnUntraced(function*(rows) {
      if (rows.length === 0) return
      yield* outcome(sql`with ops as (
          insert into operations (workspace_id, id, kind, state, scope, lane, seq, ready, fair_tag, epoch, attempts,
            window_started_at, authorization_no, outcome, results, evidence, created_at, completed_at)
          select workspace_id, id, kind, state, scope, lane, nextval('operation_seq'), ready, fair_tag, 0, 0,
            to_timestamp(created_at / 1000), authorization_no, outcome, results, evidence,
            to_timestamp(created_at / 1000), to_timestamp(completed_at / 1000)
          from jsonb_to_recordset(${sql.json(rows.map(({ operation }, n) => insertRow(operation, n)))})
            as r(n int, workspace_id text, id uuid, kind text, state text, scope jsonb, lane text, ready boolean,
              fair_tag bigint, authorization_no int, outcome text, results jsonb, evidence jsonb, created_at float8,
              completed_at float8)
          order by n
        ), inputs as (
          insert into operation_inputs (workspace_id, operation_id, input)
          select workspace_id, operation_id, input
          from jsonb_to_recordset(${sql.json(rows.flatMap(inputRow))})
            as r(workspace_id text, operation_id uuid, input jsonb)
        )
        insert into idempotency_keys (workspace_id, key_hash, command_version, command_hash, operation_id)
        select workspace_id, key_hash, command_version, command_hash, operation_id
        from jsonb_to_recordset(${sql.json(rows.flatMap(({ key }) => key === null ? [] : [keyRow(key)]))})
          as r(workspace_id text, key_hash text, command_version int, command_hash text, operation_id uuid)`)
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

    save: (rows) =>
      rows.length === 0
        ? Effect.succeed([])
        : outcome(sql<OperationRef>`update operations o set
            state = r.state, seq = r.seq, ready = r.ready, fair_tag = r.fair_tag,
            next_attempt_at = to_timestamp(r.next_attempt_at / 1000), epoch = r.epoch, attempts = r.attempts,
            invalid_outputs = r.invalid_outputs, window_started_at = to_timestamp(r.window_started_at / 1000),
            lease_owner = r.lease_owner, lease_expires_at = to_timestamp(r.lease_expires_at / 1000),
            authorization_no = r.authorization_no, failure = r.failure, outcome = r.outcome, results = r.results,
            evidence = r.evidence, started_at = to_timestamp(r.started_at / 1000),
            completed_at = to_timestamp(r.completed_at / 1000)
          from jsonb_to_recordset(${sql.json(rows.map(({ from, to }) => saveRow(from, to)))})
            as r(workspace_id text, id uuid, from_state text, from_epoch int, state text, seq bigint, ready boolean,
              fair_tag bigint, next_attempt_at float8, epoch int, attempts int, invalid_outputs int,
              window_started_at float8, lease_owner text, lease_expires_at float8, authorization_no int, failure text,
              outcome text, results jsonb, evidence jsonb, started_at float8, completed_at float8)
          where o.workspace_id = r.workspace_id and o.id = r.id and o.state = r.from_state and o.epoch = r.from_epoch
          returning o.workspace_id as "workspaceId", o.id`),

    renew: (leases, leaseMs) =>
      leases.length === 0
        ? Effect.succeed([])
        : outcome(leasePool<{ workspaceId: WorkspaceId; id: OperationId; epoch: number }>`with mine as materialized (
            select o.workspace_id, o.id from operations o
            join jsonb_to_recordset(${
          sql.json(leases.map((lease) => ({ workspace_id: lease.workspaceId, id: lease.id, epoch: lease.epoch })))
        }) as r(workspace_id text, id uuid, epoch int)
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

    freeze: Effect.fnUntraced(function*(rows) {
      if (rows.length === 0) return []
      yield* outcome(sql`insert into operation_plans (workspace_id, operation_id, plan)
        select workspace_id, operation_id, plan from jsonb_to_recordset(${
        sql.json(rows.map((row) => ({ workspace_id: row.workspaceId, operation_id: row.id, plan: row.plan })))
      }) as r(workspace_id text, operation_id uuid, plan jsonb) on conflict do nothing`)
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
        select workspace_id, id, state from jsonb_to_recordset(${
        sql.json(rows.map((row) => ({ workspace_id: row.workspaceId, id: row.id, state: row.state })))
      }) as r(workspace_id text, id uuid, state text)`)
    }),

    readyNext: (laneRefs) =>
      laneRefs.length === 0
        ? Effect.succeed(0)
        : outcome(sql`update operations o set ready = true from (
            select distinct on (n.workspace_id, n.lane) n.workspace_id, n.id, n.ready
            from (select distinct workspace_id, lane from ${lanes(laneRefs)}) l
            cross join lateral (
              select o.workspace_id, o.lane, o.id, o.ready from operations o
              where o.workspace_id = l.workspace_id and o.lane = l.lane and o.state in ('pending', 'running')
              order by o.seq limit 1
            ) n
          ) next
          where o.workspace_id = next.workspace_id and o.id = next.id and not next.ready
            and not exists (select from operations h where h.workspace_id = o.workspace_id and h.lane = o.lane and h.ready)
          returning 1`).pipe(Effect.map((rows) => rows.length)),

    nextSeq: outcome(sql<{ seq: bigint }>`select nextval('operation_seq') as seq`).pipe(
      Effect.map((rows) => Number(rows[0]?.seq))
    )
  }
  return { ...store, ...makeReads(sql) } satisfies OperationStore
})

const nowOf = (rows: ReadonlyArray<object>): number => (rows[0] as { now?: number } | undefined)?.now ?? 0

const keyRow = (key: {
  readonly workspaceId: string
  readonly keyHash: string
  readonly commandVersion: number
  readonly commandHash: string
  readonly operationId: string
}) => ({
  workspace_id: key.workspaceId,
  key_hash: key.keyHash,
  command_version: key.commandVersion,
  command_hash: key.commandHash,
  operation_id: key.operationId
})

const inputRow = ({ operation, input }: { readonly operation: Operation; readonly input: InferInput | null }) =>
  input === null ? [] : [{ workspace_id: operation.workspaceId, operation_id: operation.id, input }]

const insertRow = (operation: Operation, n: number) => ({
  n,
  workspace_id: operation.workspaceId,
  id: operation.id,
  kind: operation.kind,
  state: operation.state,
  scope: Object.fromEntries(scopeKeys.flatMap((key) => operation.scope[key] === undefined ? [] : [[key, operation.scope[key]]])),
  lane: operation.lane,
  ready: operation.ready,
  fair_tag: operation.fairTag,
  authorization_no: operation.authorizationNo,
  outcome: operation.outcome,
  results: operation.results,
  evidence: operation.evidence,
  created_at: operation.createdAt,
  completed_at: operation.completedAt
})

const saveRow = (from: Operation, to: Operation) => ({
  workspace_id: to.workspaceId,
  id: to.id,
  from_state: from.state,
  from_epoch: from.epoch,
  state: to.state,
  seq: to.seq,
  ready: to.ready,
  fair_tag: to.fairTag,
  next_attempt_at: to.nextAttemptAt,
  epoch: to.epoch,
  attempts: to.attempts,
  invalid_outputs: to.invalidOutputs,
  window_started_at: to.windowStartedAt,
  lease_owner: to.leaseOwner,
  lease_expires_at: to.leaseExpiresAt,
  authorization_no: to.authorizationNo,
  failure: to.failure,
  outcome: to.outcome,
  results: to.results,
  evidence: to.evidence,
  started_at: to.startedAt,
  completed_at: to.completedAt
})
