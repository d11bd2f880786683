/**
 * Ends attempts. Records, state, money, redaction and the hand-over of the lane commit together, for a whole batch of
 * operations at once; whoever has lost its lease is told so and changes nothing.
 */
import { Context, Effect, Layer, Random, Result } from "effect"
import type { FailureClass } from "../domain/Failure.ts"
import { type LaneRef, type OperationRef, refKey, Timestamp } from "../domain/Ids.ts"
import * as Money from "../domain/Ledger.ts"
import type { Memory } from "../domain/Memory.ts"
import { decide, evolve, type Input, isTerminal, type Lease, type Operation, type Refusal } from "../domain/Operation.ts"
import { type Applied, applyPlan, type Plan, planDigest, planTargets } from "../domain/Plan.ts"
import { again } from "./Again.ts"
import * as Batcher from "./Batcher.ts"
import { Ledger } from "./Ledger.ts"
import type { Locked } from "./OperationStore.ts"
import { Queue, type WakeUp } from "./Queue.ts"
import { Settings } from "./Settings.ts"
import { Store } from "./Store.ts"
import { type OutcomeUnknown, Transaction } from "./Transaction.ts"

/** How an attempt, or an operation, is to end. */
export type Ending =
  | { readonly _tag: "Commit"; readonly lease: Lease; readonly lane: LaneRef; readonly plan: Plan }
  | { readonly _tag: "Fail"; readonly lease: Lease; readonly lane: LaneRef; readonly failure: FailureClass; readonly retryAfterMs: number | null }
  | { readonly _tag: "Release"; readonly lease: Lease; readonly lane: LaneRef }
  | { readonly _tag: "Exhaust"; readonly lease: Lease; readonly lane: LaneRef }
  | { readonly _tag: "Cancel"; readonly ref: OperationRef; readonly lane: LaneRef }

/** The operation as it is now, or why it was left alone. */
export type Ended = Result.Result<Operation, Refusal | "not_found">

export class Settlement extends Context.Service<Settlement, {
  /** Ends one, in company: concurrent callers share a transaction. */
  readonly end: (ending: Ending) => Effect.Effect<Ended, OutcomeUnknown>
  /** Ends many in one transaction. One operation appears once. */
  readonly endAll: (endings: ReadonlyArray<Ending>) => Effect.Effect<ReadonlyArray<Ended>, OutcomeUnknown>
  /** Freezes a plan, in company. Returns the plan in force, which may be an older one, or that the lease is lost. */
  readonly freeze: (lease: Lease, plan: Plan) => Effect.Effect<Result.Result<Plan, Refusal>, OutcomeUnknown>
}>()("indelible/services/Settlement") {
  static readonly layer = Layer.effect(Settlement, Effect.suspend(() => make))
}

const refOf = (ending: Ending): OperationRef => ending._tag === "Cancel" ? ending.ref : ending.lease

/** One operation on its way to its end. */
interface Step {
  readonly from: Operation
  readonly to: Operation
  readonly applied: Applied | null
}

const make = Effect.gen(function*() {
  const { memories, operations } = yield* Store
  const ledger = yield* Ledger
  const queue = yield* Queue
  const transaction = yield* Transaction
  const settings = yield* Settings

  const inputFor = (ending: Ending, applied: Applied | null, from: Operation, now: number, jitter: number): Input => {
    switch (ending._tag) {
      case "Commit":
        return {
          _tag: "Commit",
          epoch: ending.lease.epoch,
          results: applied?.results ?? [],
          evidence: {
            ...from.evidence,
            model: ending.plan.model,
            planDigest: planDigest(ending.plan),
            offered: ending.plan.steps.length,
            stored: applied?.writes.length ?? 0
          },
          now
        }
      case "Fail":
        return { ...ending, epoch: ending.lease.epoch, jitter, policy: settings.retry, now }
      case "Release":
        return { _tag: "Release", epoch: ending.lease.epoch }
      case "Exhaust":
        return { _tag: "Exhaust", epoch: ending.lease.epoch, maxAttempts: settings.retry.maxAttempts, now }
      case "Cancel":
        return { _tag: "Cancel", now }
    }
  }

  /** Locks the live memories that the plans of this batch would change. */
  const lockTargets = Effect.fnUntraced(function*(endings: ReadonlyArray<Ending>) {
    const targets = endings.flatMap((ending) =>
      ending._tag === "Commit"
        ? planTargets(ending.plan).map((id) => ({ workspaceId: ending.lease.workspaceId, id }))
        : []
    )
    const rows = targets.length === 0 ? [] : yield* memories.lock(targets)
    return new Map(rows.map((memory) => [refKey(memory), memory]))
  })

  /** Decides every ending against the locked rows. Plans of one batch see each other's changes, in order. */
  const decideAll = (
    endings: ReadonlyArray<Ending>,
    locked: Locked,
    current: Map<string, Memory>,
    jitters: ReadonlyArray<number>
  ): ReadonlyArray<Result.Result<Step, Refusal | "not_found">> => {
    const rows = new Map(locked.operations.map((operation) => [refKey(operation), operation]))
    return endings.map((ending, index) => {
      const from = rows.get(refKey(refOf(ending)))
      if (from === undefined) return Result.fail("not_found")
      const held = ending._tag !== "Commit" || decide(from, { _tag: "Freeze", epoch: ending.lease.epoch })._tag === "Success"
      const applied = ending._tag === "Commit" && held
        ? applyPlan(ending.plan, {
          operation: from,
          now: Timestamp.make(locked.now),
          current: new Map(planTargets(ending.plan).flatMap((id) => {
            const memory = current.get(refKey({ workspaceId: from.workspaceId, id }))
            return memory === undefined ? [] : [[id, memory]]
          }))
        })
        : null
      const decision = decide(from, inputFor(ending, applied, from, locked.now, jitters[index]!))
      return Result.map(decision, (event) => {
        for (const write of applied?.writes ?? []) current.set(refKey(write.memory), write.memory)
        return { from, to: evolve(from, event), applied }
      })
    })
  }

  /** The end of each authorization whose operation became terminal. */
  const money = Effect.fnUntraced(function*(terminal: ReadonlyArray<Step>) {
    const open = yield* ledger.openAuthorizations(terminal.map((step) => step.to))
    const states = new Map(terminal.map((step) => [refKey(step.to), step.to]))
    const ends = open.map((authorization) => {
      const operation = states.get(refKey({ workspaceId: authorization.workspaceId, id: authorization.operationId }))
      if (operation?.state !== "succeeded") return Money.refund(authorization)
      const { stored, noMemory } = authorization.price
      return Money.charge(authorization, BigInt(operation.outcome === "no_memory" ? noMemory : stored))
    })
    yield* ledger.post(ends.map((end) => end.authorization), ends.flatMap((end) => end.transfers))
  })

  const endInTransaction = Effect.fnUntraced(function*(endings: ReadonlyArray<Ending>, jitters: ReadonlyArray<number>) {
    yield* operations.lockLanes(endings.map((ending) => ending.lane))
    const locked = yield* operations.lock(endings.map(refOf))
    const decided = decideAll(endings, locked, yield* lockTargets(endings), jitters)
    const steps = decided.flatMap((step) => Result.isSuccess(step) ? [step.success] : [])
    if (steps.length === 0) return decided
    const writes = steps.flatMap((step) => step.applied?.writes ?? [])
    if (writes.length > 0) {
      const written = yield* memories.write(writes)
      if (written.length !== writes.length) return yield* Effect.die("a plan met a record that its locks did not show")
    }
    const saved = yield* operations.save(steps)
    if (saved.length !== steps.length) return yield* Effect.die("a locked operation changed under its lock")
    const terminal = steps.filter((step) => isTerminal(step.to.state))
    yield* operations.redact(steps.filter((step) => step.to.state === "succeeded").map((step) => step.to))
    yield* operations.announce(terminal.map((step) => step.to))
    yield* operations.readyNext(terminal.map((step) => step.to))
    if (terminal.length > 0) yield* money(terminal)
    return decided
  })

  const endDistinct = Effect.fnUntraced(function*(endings: ReadonlyArray<Ending>) {
    const jitters = yield* Effect.forEach(endings, () => Random.next)
    const decided = yield* again(transaction.run(endInTransaction(endings, jitters)))
    const steps = decided.flatMap((step) => Result.isSuccess(step) ? [step.success] : [])
    yield* queue.send(wakeUps(steps))
    return decided.map(Result.map((step) => step.to))
  })

  // A cancel may meet a commit of the same operation in one batch: the second of the two sees what the first left.
  const endAll = Effect.fn("Settlement.endAll")(function*(endings: ReadonlyArray<Ending>) {
    const answers: Array<Ended> = []
    for (const round of rounds(endings)) {
      const ended = yield* endDistinct(round.map((index) => endings[index]!))
      round.forEach((index, place) => {
        answers[index] = ended[place]!
      })
    }
    return answers
  })

  const freezeAll = Effect.fn("Settlement.freezeAll")(function*(
    items: ReadonlyArray<{ readonly lease: Lease; readonly plan: Plan }>
  ) {
    const answers = yield* again(transaction.run(Effect.gen(function*() {
      const { operations: rows } = yield* operations.lock(items.map((item) => item.lease))
      const held = new Map(rows.map((row) => [refKey(row), row]))
      const mine = items.filter(({ lease }) => {
        const row = held.get(refKey(lease))
        return row !== undefined && Result.isSuccess(decide(row, { _tag: "Freeze", epoch: lease.epoch }))
      })
      return yield* operations.freeze(mine.map(({ lease, plan }) => ({ workspaceId: lease.workspaceId, id: lease.id, plan })))
    })))
    const inForce = new Map(answers.map((answer) => [refKey(answer), answer.plan]))
    return items.map(({ lease }): Result.Result<Plan, Refusal> => {
      const plan = inForce.get(refKey(lease))
      return plan === undefined ? Result.fail("lease_lost") : Result.succeed(plan)
    })
  })

  const options = { maxSize: settings.batchSize, loops: 2 }
  const end = yield* Batcher.makeRoomy({ ...options, run: endAll })
  const freeze = yield* Batcher.makeRoomy({ ...options, run: freezeAll })
  return Settlement.of({ end, endAll, freeze: (lease, plan) => freeze({ lease, plan }) })
})

/** Splits endings into rounds in which no operation appears twice, keeping their order. Indexes into `endings`. */
const rounds = (endings: ReadonlyArray<Ending>): ReadonlyArray<ReadonlyArray<number>> => {
  const turns = new Map<string, number>()
  const split: Array<Array<number>> = []
  endings.forEach((ending, index) => {
    const key = refKey(refOf(ending))
    const turn = turns.get(key) ?? 0
    turns.set(key, turn + 1)
    ;(split[turn] ??= []).push(index)
  })
  return split
}

/** Whom to wake after these steps committed. */
const wakeUps = (steps: ReadonlyArray<Step>): ReadonlyArray<WakeUp> => {
  const changed = steps.map(({ to }) => ({ workspaceId: to.workspaceId, id: to.id }))
  return [
    ...(changed.length > 0 ? [{ _tag: "Changed" as const, operations: changed }] : []),
    ...(steps.some((step) => isTerminal(step.to.state) || step.to.nextAttemptAt === null) ? [{ _tag: "Work" as const }] : []),
    ...(steps.some((step) => (step.applied?.writes.length ?? 0) > 0) ? [{ _tag: "Projection" as const }] : [])
  ]
}
