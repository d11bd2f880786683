/**
 * The periodic sweep that makes hints unnecessary and keeps promises about time: lanes whose hand-over was lost, input
 * of failed operations past its retention, announcements that everybody has had time to read. Runs no work itself.
 */
import { Context, Duration, Effect, Layer, Random, Ref } from "effect"
import type { LaneRef } from "../domain/Ids.ts"
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

  const mendLanes = Effect.gen(function*() {
    const { next, stalled } = yield* operations.stalledLanes(yield* Ref.get(cursor), settings.batchSize * 10)
    yield* Ref.set(cursor, next)
    if (stalled.length === 0) return 0
    const mended = yield* transaction.run(
      Effect.andThen(operations.lockLanes(stalled), operations.readyNext(stalled))
    )
    if (mended > 0) yield* Effect.logWarning("Lanes without a head were mended").pipe(Effect.annotateLogs({ mended }))
    return mended
  })

  // The lock makes sure that nobody reopens an operation while its input is being removed.
  const removeInputs = Effect.gen(function*() {
    const age = Duration.toMillis(settings.failedInputRetention)
    const due = yield* operations.expiredInputs(age, settings.batchSize)
    if (due.length === 0) return 0
    return yield* transaction.run(Effect.gen(function*() {
      const locked = yield* operations.lock(due)
      const failed = locked.operations.filter((operation) =>
        operation.state === "failed" && operation.completedAt !== null && operation.completedAt <= locked.now - age
      )
      yield* operations.redact(failed)
      return failed.length
    }))
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

  return Repair.of({ sweep: sweep() })
})
