/** A database with one of everything that can be wrong, planted past every rule that would have prevented it. */
import { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import { derivedMemoryId } from "../src/domain/Digest.ts"
import type { MemoryId, OperationId } from "../src/domain/Ids.ts"
import { WorkspaceId } from "../src/domain/Ids.ts"
import { Commands } from "../src/services/Commands.ts"
import { Retries } from "../src/services/Retries.ts"
import * as World from "./world.ts"

/** What is in every planted text, so that it can be looked for in what an audit says. */
export const canary = "a canary in a coal mine"

/** Finished operations of a lane each, with their one memory, in the index; and one of which it is deleted. No worker is left. */
const finished = Effect.fnUntraced(function*(names: ReadonlyArray<string>) {
  const commands = yield* Commands
  const worker = yield* World.startWorker()
  const made = yield* Effect.forEach(names, (name) =>
    Effect.gen(function*() {
      const { eventId } = yield* World.accept(name, World.body(`${canary}: ${name}`, name))
      yield* World.projected(eventId)
      return [name, { id: eventId, memory: derivedMemoryId(eventId, 0) }] as const
    }), { concurrency: 4 })
  const { event } = yield* commands.delete(World.workspace, null, {
    kind: "memory.delete",
    memoryId: made.at(-1)![1].memory,
    expectedVersion: null
  })
  yield* World.projected(event.id)
  yield* worker.stop
  return new Map<string, { readonly id: OperationId; readonly memory: MemoryId }>(made)
})

/** A rule, the id it is broken for, and the statements that break it. */
export interface Plant {
  readonly invariant: string
  readonly workspaceId: WorkspaceId
  readonly id: string
  readonly statements: ReadonlyArray<string>
}

const nobody = "00000000-0000-7000-8000-00000000dead"

const rules = [
  "alter table operations drop constraint running_holds_a_lease, drop constraint terminal_is_not_ready",
  "alter table operations drop constraint terminal_is_completed, drop constraint running_is_the_head",
  "alter table operations drop constraint success_has_an_outcome, drop constraint failure_has_a_class",
  "drop index operations_lane_head",
  "alter table idempotency_keys drop constraint idempotency_keys_pkey",
  "alter table accounts drop constraint conserved, drop constraint accounts_available_check",
  "alter table accounts drop constraint accounts_reserved_check"
]

/** What is done to an operation that has succeeded; below, to a memory, to what waits, to a lane of two, to an account. */
const onSuccess: Record<string, (id: OperationId) => ReadonlyArray<string>> = {
  "records-equal-results": (id) => [`update operations set outcome = 'no_memory' where id = '${id}'`],
  "ids-are-derived": (id) => [
    `update operations set results = jsonb_set(results, '{0,id}', '"${nobody}"') where id = '${id}'`
  ],
  "lease-follows-state": (id) => [`update operations set lease_owner = 'x', lease_expires_at = now() where id = '${id}'`],
  "terminal-is-finished": (id) => [`update operations set next_attempt_at = now() where id = '${id}'`],
  "success-is-redacted": (id) => [
    `insert into operation_inputs values ('tests', '${id}', '{"content": "${canary}"}')`,
    `insert into operation_plans values ('tests', '${id}', '{"text": "${canary}"}')`
  ],
  "attempts-are-claims": (id) => [`update operations set attempts = 9 where id = '${id}'`],
  "money-follows-state": (id) => [`update authorizations set state = 'open', charged = 0 where operation_id = '${id}'`],
  "charged-by-the-price": (id) => [
    `update authorizations set price = jsonb_set(price, '{stored}', '1') where operation_id = '${id}'`
  ],
  "authorization-ends-once": (id) => [`delete from transfers where operation_id = '${id}' and kind = 'charge'`],
  "rows-are-readable": (id) => [`update operations set failure = 'of another release' where id = '${id}'`]
}

const onMemory: Record<string, (memory: MemoryId) => ReadonlyArray<string>> = {
  "versions-are-contiguous": (memory) => [`update memory_history set version = 3 where memory_id = '${memory}'`],
  "record-equals-history": (memory) => [`update memories set text = '${canary}, and another' where id = '${memory}'`],
  "deleted-is-forgotten": (memory) => [
    `update memories set text = null, deleted = true, version = 2 where id = '${memory}'`,
    `insert into memory_history select workspace_id, memory_id, 2, 'delete', null, operation_id, at from memory_history
      where memory_id = '${memory}'`,
    `delete from memory_vectors where memory_id = '${memory}'`
  ],
  "projection-never-ahead": (memory) => [`update memory_vectors set version = 9 where memory_id = '${memory}'`],
  "projected-or-waiting": (memory) => [`delete from memory_vectors where memory_id = '${memory}'`],
  "projections-advance": (memory) => [
    `insert into projections select workspace_id, id, version, operation_id, 0, now() - interval '1 day' from memories
      where id = '${memory}'`
  ]
}

const onPending: Record<string, (id: OperationId) => ReadonlyArray<string>> = {
  "leases-are-taken-over": (id) => [
    `update operations set state = 'running', epoch = 1, attempts = 1, lease_owner = 'x',
      lease_expires_at = now() - interval '1 day' where id = '${id}'`
  ],
  "waits-for-what-may-pass": (id) => [`update operations set failure = 'cancelled' where id = '${id}'`],
  "retries-start": (id) => [`update operations set next_attempt_at = now() - interval '1 day' where id = '${id}'`],
  "work-starts": (id) => [
    `update operations set created_at = created_at - interval '1 day', window_started_at = created_at - interval '1 day'
      where id = '${id}'`
  ]
}

const onLane: Record<string, (lane: string) => ReadonlyArray<string>> = {
  "one-head": (lane) => [`update operations set ready = true where lane = '${lane}'`],
  "one-runner": (lane) => [
    `update operations set state = 'running', ready = true, epoch = 1, attempts = 1, lease_owner = 'x',
      lease_expires_at = now() + interval '1 hour' where lane = '${lane}'`
  ],
  "lanes-have-a-head": (lane) => [`update operations set ready = false where lane = '${lane}'`]
}

const onWorkspace: Record<string, ReadonlyArray<string>> = {
  "never-overdrawn": ["available = available - 1000, issued = issued - 1000"],
  "credits-are-conserved": ["issued = issued + 1"],
  "balances-equal-transfers": ["available = available + 1, issued = issued + 1"],
  "reserved-equals-holds": ["reserved = reserved + 1, available = available - 1"]
}

/** Makes the database that is healthy so far, and says how to break it. */
export const prepare = Effect.gen(function*() {
  const sql = yield* PgClient.PgClient
  yield* World.open(1_000n)
  const done = yield* finished([...Object.keys(onSuccess), ...Object.keys(onMemory), "forgotten"])

  const pending = (name: string, user = name) => World.accept(name, World.body(canary, user))
  const plants: Array<Plant> = []
  const plant = (invariant: string, id: string, statements: ReadonlyArray<string>, workspaceId = World.workspace) =>
    plants.push({ invariant, workspaceId, id, statements })
  for (const [name, statements] of Object.entries(onSuccess)) {
    const { id } = done.get(name)!
    plant(name, id, statements(id))
  }
  for (const [name, statements] of Object.entries(onMemory)) {
    const { memory } = done.get(name)!
    plant(name, memory, statements(memory))
  }
  for (const [name, statements] of Object.entries(onPending)) {
    const { eventId } = yield* pending(name)
    plant(name, eventId, statements(eventId))
  }
  for (const [name, statements] of Object.entries(onLane)) {
    const { eventId } = yield* pending(`${name}-1`, name)
    yield* pending(`${name}-2`, name)
    const [row] = yield* sql<{ lane: string }>`select lane from operations where id = ${eventId}::uuid`
    plant(name, row!.lane, statements(row!.lane))
  }
  for (const [index, [name, changes]] of Object.entries(onWorkspace).entries()) {
    const id = yield* World.open(100n, WorkspaceId.make(`workspace-${index}`))
    plant(name, id, [`update accounts set ${changes.join()} where workspace_id = '${id}'`], id)
  }
  const { eventId } = yield* pending("failed-input-expires")
  yield* (yield* Retries).cancel({ workspaceId: World.workspace, id: eventId })
  plant("failed-input-expires", eventId, [`update operations set completed_at = now() - interval '30 days' where id = '${eventId}'`])
  plant("nothing-without-its-operation", nobody, [`insert into operation_inputs values ('tests', '${nobody}', '{}')`])
  plant("nothing-without-its-memory", nobody, [`insert into memory_vectors values ('tests', '${nobody}', 1, '')`])
  plant("one-operation-per-key", "tests", [
    "insert into idempotency_keys select * from idempotency_keys order by key_hash limit 1"
  ])
  return plants
})

/** Writes past constraints and triggers. */
export const sow = Effect.fnUntraced(function*(plants: ReadonlyArray<Plant>) {
  const sql = yield* PgClient.PgClient
  yield* sql.withTransaction(Effect.gen(function*() {
    yield* sql.unsafe("set local session_replication_role = replica")
    yield* Effect.forEach([...rules, ...plants.flatMap(({ statements }) => statements)], (statement) => sql.unsafe(statement))
  }))
}, Effect.orDie)
