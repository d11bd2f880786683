/** What a caller may do to an operation that exists: try it again with a new authorization, cancel it, purge its input. */
import { Context, Effect, Layer, Result } from "effect"
import { commandHash, commandVersion, type IdempotencyKey, keyHash, type RetryCommand } from "../domain/Command.ts"
import { startTags } from "../domain/Fairness.ts"
import type { OperationRef } from "../domain/Ids.ts"
import * as Money from "../domain/Ledger.ts"
import { decide, evolve, isTerminal, type Operation } from "../domain/Operation.ts"
import {
  type ComeBackLater,
  type IdempotencyConflict,
  InputGone,
  InsufficientCredit,
  NotFound,
  WrongState
} from "../domain/Refusal.ts"
import { replay } from "./Acceptance.ts"
import { againOrLater } from "./Again.ts"
import type { Receipt } from "./Commands.ts"
import { type Event, Events } from "./Events.ts"
import { Ledger } from "./Ledger.ts"
import type { KeyRow } from "./OperationStore.ts"
import { Queue } from "./Queue.ts"
import { Settings } from "./Settings.ts"
import { Settlement } from "./Settlement.ts"
import { Store } from "./Store.ts"
import { prices } from "./SyncWrites.ts"
import { Transaction } from "./Transaction.ts"

export class Retries extends Context.Service<Retries, {
  /**
   * Reserves anew and lets a failed operation run again, behind what is in its lane. A live operation is left alone, and
   * so is the key: it still names the next retry.
   */
  readonly retry: (
    ref: OperationRef,
    key: IdempotencyKey | null
  ) => Effect.Effect<Receipt, NotFound | WrongState | InputGone | InsufficientCredit | IdempotencyConflict | ComeBackLater>
  /** Ends a live operation with a refund. Cancelling a cancelled operation changes nothing. */
  readonly cancel: (ref: OperationRef) => Effect.Effect<Event, NotFound | WrongState | ComeBackLater>
  /** Removes the input of a failed operation for good. A live one has to be cancelled first. */
  readonly purgeInput: (ref: OperationRef) => Effect.Effect<Event, NotFound | WrongState | ComeBackLater>
}>()("indelible/services/Retries") {
  static readonly layer = Layer.effect(Retries, Effect.suspend(() => make))
}

const make = Effect.gen(function*() {
  const { operations } = yield* Store
  const ledger = yield* Ledger
  const queue = yield* Queue
  const transaction = yield* Transaction
  const settlement = yield* Settlement
  const settings = yield* Settings
  const events = yield* Events
  const price = prices(settings)["infer-add"]

  const find = Effect.fnUntraced(function*(ref: OperationRef) {
    const row = yield* againOrLater(operations.get(ref))
    return row ?? (yield* new NotFound({ what: "event" }))
  })

  /** Opens the next authorization of a failed operation, or says why it cannot be paid. */
  const authorize = Effect.fnUntraced(function*(operation: Operation, balances: Money.Balances | undefined) {
    const reserved = BigInt(Math.max(price.stored, price.noMemory))
    if (balances === undefined || !Money.canReserve(balances, reserved)) {
      return yield* new InsufficientCredit({ required: reserved, available: balances?.available ?? 0n })
    }
    const no = (operation.authorizationNo ?? 0) + 1
    return Money.reserve({ workspaceId: operation.workspaceId, operationId: operation.id, no, reserved, price })
  })

  /**
   * Reopens a failed operation behind what is in its lane, with lane, row and account locked. Returns what that reserves,
   * or why nothing was done.
   */
  const reopen = Effect.fnUntraced(function*(ref: OperationRef, lane: Operation["lane"], key: KeyRow | null) {
    const laneRef = { workspaceId: ref.workspaceId, lane }
    yield* operations.lockLanes([laneRef])
    const { now, operations: [operation] } = yield* operations.lock([ref])
    const [account] = yield* ledger.lock([ref.workspaceId])
    if (operation === undefined) return yield* new NotFound({ what: "event" })
    const stored = key === null ? [] : yield* operations.findKeys([key])
    if (stored.length > 0) {
      yield* Effect.fromResult(replay(stored[0]!, retryOf(ref)))
      return "replayed" as const
    }
    if (!isTerminal(operation.state)) return "already" as const
    if (operation.state === "succeeded") return yield* new WrongState({ state: operation.state })
    if ((yield* operations.withInput([ref])).length === 0) return yield* new InputGone()
    const grant = yield* authorize(operation, account?.balances)
    const occupied = yield* operations.occupiedLanes([laneRef])
    const { tags, workspaceTime } = startTags((yield* operations.fairClock).clock, account!.fairTime, 1)
    const decision = decide(operation, {
      _tag: "Retry",
      authorizationNo: grant.authorization.no,
      seq: yield* operations.nextSeq,
      ready: occupied.length === 0,
      fairTag: tags[0]!,
      now
    })
    if (Result.isFailure(decision)) return yield* new WrongState({ state: operation.state })
    yield* operations.save([{ from: operation, to: evolve(operation, decision.success) }])
    if (key !== null) yield* operations.insertKeys([key])
    yield* ledger.setFairTimes([{ workspaceId: ref.workspaceId, fairTime: workspaceTime }])
    yield* ledger.post([grant.authorization], grant.transfers)
    return grant.authorization.reserved
  })

  const retry = Effect.fn("Retries.retry")(function*(ref: OperationRef, key: IdempotencyKey | null) {
    const { lane } = yield* find(ref)
    const row: KeyRow | null = key === null ? null : {
      workspaceId: ref.workspaceId,
      keyHash: keyHash(key),
      commandVersion,
      commandHash: commandHash(retryOf(ref))!,
      operationId: ref.id
    }
    const done = yield* againOrLater(transaction.run(reopen(ref, lane, row)))
    const reserved = typeof done === "bigint" ? done : null
    if (reserved !== null) yield* queue.send([{ _tag: "Work" }, { _tag: "Changed", operations: [ref] }])
    const event = yield* events.get(ref)
    return {
      eventId: event.id,
      status: event.status,
      replayed: done === "replayed",
      ...(done === "already" ? { already: true as const } : {}),
      createdAt: event.createdAt,
      // By now it may have ended, and hold nothing.
      reserved: reserved ?? event.usage.reserved - event.usage.charged - event.usage.refunded
    }
  })

  const cancel = Effect.fn("Retries.cancel")(function*(ref: OperationRef) {
    const operation = yield* find(ref)
    const ended = yield* againOrLater(settlement.end({ _tag: "Cancel", ref, lane: operation }))
    const event = yield* events.get(ref)
    // Cancelled before, or by our own first try: the caller has what it asked for.
    if (Result.isFailure(ended) && event.error?.class !== "cancelled") return yield* new WrongState({ state: event.status })
    return event
  })

  const purgeInput = Effect.fn("Retries.purgeInput")(function*(ref: OperationRef) {
    yield* againOrLater(transaction.run(Effect.gen(function*() {
      const { operations: [operation] } = yield* operations.lock([ref])
      if (operation === undefined) return yield* new NotFound({ what: "event" })
      if (!isTerminal(operation.state)) return yield* new WrongState({ state: operation.state })
      yield* operations.redact([ref])
    })))
    return yield* events.get(ref)
  })

  return Retries.of({ retry, cancel, purgeInput })
})

const retryOf = (ref: OperationRef): RetryCommand => ({ kind: "operation.retry", operationId: ref.id })
