/**
 * The periodic sweep that makes hints unnecessary and keeps promises about time: lanes whose hand-over was lost, input
 * of failed operations past its retention, announcements that everybody has had time to read. Runs no work itself.
 */
import { Context, Duration, Effect, Layer, Random, Ref } from "effect"
import type { LaneRef, OperationRef } from "../domain/Ids.ts"
import { inputIsOver } from "../domain/Operation.ts"
import { Queue } from "./Queue.ts"
import { Settings } from "./Settings.ts"
import { Store } from "./Store.ts"
import { type OutcomeUnknown, Transaction } from "./Transaction.ts"

/** What one sweep found and mended. */
export interface Swept {
  readonly lanesMended: number
  readonly inputsRemoved: number
  readonly announcementsRemoved: number
}

export class Repair extends Context.Service<Repair, {
  /** One sweep of bounded size. The next one goes on where this one stopped. */
  readonly sweep: Effect.Effect<Swept, OutcomeUnknown>
  /** Makes the first operation of each of these lanes claimable where the hand-over was lost. Returns how many. */
  readonly handOver: (lanes: ReadonlyArray<LaneRef>) => Effect.Effect<number, OutcomeUnknown>
  /** Removes the input and the plan of those of these operations that need them no more. Returns those. */
  readonly forgetInputs: (refs: ReadonlyArray<OperationRef>) => Effect.Effect<ReadonlyArray<OperationRef>, OutcomeUnknown>
}>()("indelible/services/Repair") {
  static readonly layer = Layer.effect(Repair, Effect.suspend(() => make))

  /** Sweeps until its scope closes, each time a little earlier or later, so that processes do not sweep in step. */
  static readonly layerLoop = Layer.effectDiscard(Effect.gen(function*() {
    const repair = yield* Repair
    const { repairInterval } = yield* Settings
    yield* Effect.gen(function*() {
      const early = 0.75 + 0.5 * (yield* Random.next)
      yield* Effect.sleep(Duration.times(repairInterval, early))
      yield* repair.sweep.pipe(Effect.catch(() => Effect.logWarning("A repair sweep had no answer")))
    }).pipe(
      Effect.catchDefect(() => Effect.logError("A repair sweep failed")),
      Effect.forever,
      Effect.forkScoped
    )
  }))
}

const make = Effect.gen(function*() {
  const { operations } = yield* Store
  const queue = yield* Queue
  const transaction = yield* Transaction
  const settings = yield* Settings
  const cursor = yield* Ref.make<LaneRef | null>(null)

  const handOver = (lanes: ReadonlyArray<LaneRef>) =>
    transaction.run(Effect.andThen(operations.lockLanes(lanes), operations.readyNext(lanes)))

  const mendLanes = Effect.gen(function*() {
    const { next, stalled } = yield* operations.stalledLanes(yield* Ref.get(cursor), settings.batchSize * 10)
    yield* Ref.set(cursor, next)
    if (stalled.length === 0) return 0
    const mended = yield* handOver(stalled)
    if (mended > 0) yield* Effect.logWarning("Lanes without a head were mended").pipe(Effect.annotateLogs({ mended }))
    return mended
  })

  const retentionMs = () => Duration.toMillis(settings.failedInputRetention)

  // The lock makes sure that nobody reopens an operation while its input is being removed.
  const forgetInputs = (refs: ReadonlyArray<OperationRef>) =>
    transaction.run(Effect.gen(function*() {
      const { now, operations: locked } = yield* operations.lock(refs)
      const over = locked.filter((operation) => inputIsOver(operation, now, retentionMs()))
      yield* operations.redact(over)
      return over
    }))

  const removeInputs = Effect.gen(function*() {
    const due = yield* operations.expiredInputs(retentionMs(), settings.batchSize)
    return due.length === 0 ? 0 : (yield* forgetInputs(due)).length
  })

  const sweep = Effect.fn("Repair.sweep")(function*() {
    const lanesMended = yield* mendLanes
    const inputsRemoved = yield* removeInputs
    const announcementsRemoved = yield* operations.pruneAnnouncements(
      Duration.toMillis(settings.announcementRetention),
      settings.batchSize * 10
    )
    if (lanesMended > 0) yield* queue.send([{ _tag: "Work" }])
    return { lanesMended, inputsRemoved, announcementsRemoved }
  })

  return Repair.of({ sweep: sweep(), handOver, forgetInputs })
})
