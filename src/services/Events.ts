/** The privacy-safe read projection of an operation: what happened, never what was said. */
import { Clock, Context, Duration, Effect, Layer } from "effect"
import { type FailureClass, failureMessage, manuallyRetryable } from "../domain/Failure.ts"
import { type MemoryId, type OperationId, type OperationRef, refKey, type WorkspaceId } from "../domain/Ids.ts"
import type { Authorization } from "../domain/Ledger.ts"
import type { Memory } from "../domain/Memory.ts"
import { isTerminal, type Operation, type OperationKind, type OperationState, type Outcome } from "../domain/Operation.ts"
import type { SkipReason } from "../domain/Plan.ts"
import { type ComeBackLater, NotFound } from "../domain/Refusal.ts"
import type { ScopeFilter } from "../domain/Scope.ts"
import { againOrLater } from "./Again.ts"
import { Ledger } from "./Ledger.ts"
import type { ProjectionStatus } from "./MemoryStore.ts"
import { Queue } from "./Queue.ts"
import { Settings } from "./Settings.ts"
import { Store } from "./Store.ts"

/** What became of one fact. `memory` is read from the live memory: null once it is deleted. */
export interface EventResult {
  readonly id: MemoryId | null
  readonly change: "add" | "update" | "delete" | "none"
  readonly version: number | null
  readonly memory: string | null
  readonly reason?: SkipReason
}

/** Times are milliseconds by the database clock; credits are whole. */
export interface Event {
  readonly id: OperationId
  readonly type: OperationKind
  readonly status: OperationState
  readonly scope: ScopeFilter
  readonly attempts: number
  readonly maxAttempts: number
  readonly nextAttemptAt: number | null
  readonly error: { readonly class: FailureClass; readonly message: string; readonly retryable: boolean } | null
  readonly outcome: Outcome | null
  readonly results: ReadonlyArray<EventResult>
  readonly projection: ProjectionStatus
  /** Over all authorizations: what was ever reserved, and how that ended. The difference is held now. */
  readonly usage: { readonly reserved: bigint; readonly charged: bigint; readonly refunded: bigint }
  /** What its accept reserved: manual retries reserve anew, and do not change what the receipt of the accept says. */
  readonly acceptReserved: bigint
  readonly createdAt: number
  readonly startedAt: number | null
  readonly completedAt: number | null
  /** The evidence that stays after the input is gone. */
  readonly evidence: Operation["evidence"]
  /** Whether the raw input is still kept. */
  readonly inputRetained: boolean
}

export interface EventPage {
  readonly workspaceId: WorkspaceId
  readonly status: OperationState | null
  readonly type: OperationKind | null
  readonly scope: ScopeFilter
  readonly before: OperationId | null
  readonly limit: number
}

export class Events extends Context.Service<Events, {
  /** The events of these operations, in their order. */
  readonly project: (operations: ReadonlyArray<Operation>) => Effect.Effect<ReadonlyArray<Event>, ComeBackLater>
  readonly get: (ref: OperationRef) => Effect.Effect<Event, NotFound | ComeBackLater>
  /** Newest first. */
  readonly list: (page: EventPage) => Effect.Effect<ReadonlyArray<Event>, ComeBackLater>
  /**
   * Returns the event as soon as it is terminal, or as it is after `seconds` (bounded by `waitMaxSeconds`). Holds no
   * database connection while it waits.
   */
  readonly wait: (ref: OperationRef, seconds: number) => Effect.Effect<Event, NotFound | ComeBackLater>
}>()("indelible/services/Events") {
  static readonly layer = Layer.effect(Events, Effect.suspend(() => make))
}

const make = Effect.gen(function*() {
  const { memories, operations } = yield* Store
  const ledger = yield* Ledger
  const queue = yield* Queue
  const settings = yield* Settings

  const project = Effect.fn("Events.project")(function*(rows: ReadonlyArray<Operation>) {
    if (rows.length === 0) return []
    const texts = rows.flatMap((row) =>
      row.results.flatMap(({ id }) => id === null ? [] : [{ workspaceId: row.workspaceId, id }])
    )
    const live = texts.length === 0 ? [] : yield* againOrLater(memories.get(texts))
    const authorizations = yield* againOrLater(ledger.authorizations(rows))
    const projections = yield* againOrLater(memories.projectionAttempts(rows))
    const inputs = yield* againOrLater(operations.withInput(rows))
    const view = {
      memories: new Map(live.map((memory) => [refKey(memory), memory])),
      authorizations: Map.groupBy(authorizations, (row) => refKey({ workspaceId: row.workspaceId, id: row.operationId })),
      projections: new Map(projections.map((row) => [refKey(row), row])),
      inputs: new Set(inputs.map(refKey))
    }
    return rows.map((row) => ({
      ...eventOf(row, settings.retry.maxAttempts),
      results: row.results.map((result) => ({ ...result, memory: liveText(view.memories, row.workspaceId, result.id) })),
      projection: projectionOf(row, view.projections.get(refKey(row)), settings.projectionFailingAfter),
      usage: usageOf(view.authorizations.get(refKey(row)) ?? []),
      acceptReserved: view.authorizations.get(refKey(row))?.[0]?.reserved ?? 0n,
      inputRetained: view.inputs.has(refKey(row))
    }))
  })

  const read = Effect.fnUntraced(function*(ref: OperationRef) {
    const row = yield* againOrLater(operations.get(ref))
    return row ?? (yield* new NotFound({ what: "event" }))
  })

  const only = (row: Operation) => Effect.map(project([row]), (events) => events[0]!)

  const get = Effect.fn("Events.get")((ref: OperationRef) => Effect.flatMap(read(ref), only))

  const list = Effect.fn("Events.list")((page: EventPage) =>
    againOrLater(operations.list({ ...page, state: page.status, kind: page.type })).pipe(Effect.flatMap(project))
  )

  // Listens before it looks, so that a change between the two is not missed; a lost hint costs one poll interval.
  const wait = Effect.fn("Events.wait")(function*(ref: OperationRef, seconds: number) {
    const deadline = (yield* Clock.monotonicTimeNanos) + secondsToNanos(Math.min(seconds, settings.waitMaxSeconds))
    const hints = yield* queue.subscribe
    const changed = Effect.repeat(hints, {
      until: (wakeUps) =>
        wakeUps.some((wakeUp) => wakeUp._tag === "Changed" && wakeUp.operations.some((row) => refKey(row) === refKey(ref)))
    })
    while (true) {
      const row = yield* read(ref)
      const left = deadline - (yield* Clock.monotonicTimeNanos)
      if (isTerminal(row.state) || left <= 0n) return yield* only(row)
      const pause = Math.min(Number(left / 1_000_000n) + 1, Duration.toMillis(settings.pollInterval))
      yield* Effect.timeoutOption(changed, pause)
    }
  }, Effect.scoped)

  return Events.of({ project, get, list, wait })
})

const secondsToNanos = (seconds: number): bigint => BigInt(Math.round(seconds * 1_000)) * 1_000_000n

const eventOf = (row: Operation, maxAttempts: number) => ({
  id: row.id,
  type: row.kind,
  status: row.state,
  scope: row.scope,
  attempts: row.attempts,
  maxAttempts,
  nextAttemptAt: row.nextAttemptAt,
  error: row.failure === null
    ? null
    : {
      class: row.failure,
      message: failureMessage[row.failure],
      retryable: row.state === "failed" ? manuallyRetryable(row.failure) : true
    },
  outcome: row.outcome,
  createdAt: row.createdAt,
  startedAt: row.startedAt,
  completedAt: row.completedAt,
  evidence: row.evidence
})

const liveText = (memories: ReadonlyMap<string, Memory>, workspaceId: WorkspaceId, id: MemoryId | null): string | null =>
  id === null ? null : memories.get(refKey({ workspaceId, id }))?.text ?? null

const projectionOf = (
  row: Operation,
  left: { readonly pending: number; readonly maxAttempts: number } | undefined,
  failingAfter: number
): ProjectionStatus => {
  if (!row.results.some((result) => result.change !== "none")) return "none"
  if (left === undefined || left.pending === 0) return "ready"
  return left.maxAttempts >= failingAfter ? "failing" : "pending"
}

const usageOf = (authorizations: ReadonlyArray<Authorization>): Event["usage"] => ({
  reserved: authorizations.reduce((sum, row) => sum + row.reserved, 0n),
  charged: authorizations.reduce((sum, row) => sum + row.charged, 0n),
  refunded: authorizations.reduce((sum, row) => sum + (row.state === "open" ? 0n : row.reserved - row.charged), 0n)
})
