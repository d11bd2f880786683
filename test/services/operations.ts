/** Operations as programs accept and change them, for tests that need some, and an empty workspace to keep them in. */
import { Effect, type Scope } from "effect"
import { Timestamp, type WorkspaceId } from "../../src/domain/Ids.ts"
import { type Event, evolve, type Operation } from "../../src/domain/Operation.ts"
import type { Plan } from "../../src/domain/Plan.ts"
import { laneOf } from "../../src/domain/Scope.ts"
import { blankOperation } from "../../src/services/Acceptance.ts"
import type { NewOperation } from "../../src/services/OperationStore.ts"
import { Store } from "../../src/services/Store.ts"
import { Transaction } from "../../src/services/Transaction.ts"
import { hash } from "../domain/samples.ts"
import { at, operationId, workspaceOf } from "./records.ts"

export { at } from "./records.ts"

/** Longer than any test. */
export const hour = 3_600_000
/** More than any test has. */
export const many = 1_000

/** Text that breaks whatever pastes it where it does not belong. */
export const hostile = "Ana 🦜 said \"tea\",\n<b>'green'</b> \\ é\\u0000 %_ $1"

/** Makes a workspace and its account, where they have to exist before anything else does. */
export type Open<R> = (workspaceId: WorkspaceId) => Effect.Effect<unknown, unknown, R>

/** Pending, in a scope of its own and so the head of a lane of its own, unless said otherwise. */
export const accepted = (workspaceId: WorkspaceId, fields: Partial<Operation> = {}): Operation => {
  const id = operationId()
  const scope = fields.scope ?? { user_id: id }
  return {
    ...blankOperation(at(0)),
    workspaceId,
    id,
    kind: "memory.infer",
    scope,
    lane: laneOf(scope),
    ready: true,
    authorizationNo: 1,
    evidence: {
      commandVersion: 1,
      commandHash: hash,
      messages: 1,
      inputBytes: 3,
      model: null,
      planDigest: null,
      offered: 0,
      stored: 0
    },
    ...fields
  }
}

/** Finished when it was accepted. */
export const done = (workspaceId: WorkspaceId, fields: Partial<Operation> = {}): Operation =>
  accepted(workspaceId, {
    kind: "memory.add",
    state: "succeeded",
    ready: false,
    outcome: "stored",
    completedAt: at(0),
    ...fields
  })

/** A row to insert, without a key and an input unless said otherwise. */
export const bare = (operation: Operation, rest: Partial<NewOperation> = {}): NewOperation => ({
  operation,
  key: null,
  input: null,
  ...rest
})

export const said = (content: string): NonNullable<NewOperation["input"]> => ({
  messages: [{ role: "user", content }],
  metadata: {},
  eventDate: null,
  instructions: null
})

export const planOf = (model: string, fields: Partial<Plan> = {}): Plan => ({
  version: 1,
  steps: [],
  scope: { user_id: "ana" },
  metadata: {},
  eventDate: null,
  model,
  ...fields
})

export const claimed = (leaseExpiresAt: number, owner = "worker"): Event => ({
  _tag: "Claimed",
  owner,
  leaseExpiresAt,
  at: leaseExpiresAt
})

export const failed = (completedAt: number): Event =>
  ({ _tag: "Failed", failure: "provider_rejected", at: completedAt })

export const postponed = (nextAttemptAt: number): Event => ({
  _tag: "AttemptFailed",
  failure: "provider_timeout",
  nextAttemptAt,
  attemptGivenBack: false
})

export const ids = (rows: ReadonlyArray<{ readonly id: string }>): ReadonlyArray<string> => rows.map(({ id }) => id)

/**
 * The store, and a workspace with nothing in it. Claims and sweeps look at every workspace: when the test is over,
 * nothing of this one is left for them.
 */
export const begin = Effect.fnUntraced(function*<R>(test: string, open: Open<R>) {
  const workspaceId = workspaceOf(test)
  yield* open(workspaceId)
  const { operations } = yield* Store
  const { run } = yield* Transaction

  /** Inserts operations, and returns them as the store has them. */
  const insert = Effect.fnUntraced(function*(...rows: ReadonlyArray<Operation>) {
    yield* operations.insert(rows.map((row) => bare(row)))
    return yield* Effect.forEach(rows, (row) => Effect.map(operations.get(row), (stored) => stored!))
  })

  /** Saves what these events make of an operation, one after the other, and returns it. */
  const become = Effect.fnUntraced(function*(operation: Operation, ...events: ReadonlyArray<Event>) {
    let current = operation
    for (const event of events) {
      const next = evolve(current, event)
      yield* operations.save([{ from: current, to: next }])
      current = next
    }
    return current
  })

  const all = (state: Operation["state"]) =>
    operations.list({ workspaceId, state, kind: null, scope: {}, before: null, limit: many })

  const sweep = Effect.gen(function*() {
    for (const state of ["pending", "running"] as const) {
      const rows = yield* all(state)
      yield* operations.save(rows.map((from) => ({ from, to: evolve(from, failed(at(0))) })))
    }
    yield* operations.redact(yield* all("failed"))
    yield* operations.pruneAnnouncements(-1, many)
  })
  yield* Effect.addFinalizer(() => Effect.orDie(sweep))

  return { operations, run, workspaceId, insert, become }
})

/** What `begin` needs. */
export type Ports = Store | Transaction | Scope.Scope

/** A time before or after the store's present. */
export const fromNow = (ms: number) =>
  Effect.flatMap(Store, ({ operations }) => Effect.map(operations.now, (now) => Timestamp.make(now + ms)))
