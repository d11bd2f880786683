/** The end of this process, announced: long waits end at once, connections close after their answer, probes say so. */
import { Context, Effect, Latch, Layer } from "effect"

export class Drain extends Context.Service<Drain, {
  /** Announces it. Requests are still answered. */
  readonly begin: Effect.Effect<void>
  /** Waits for the announcement. */
  readonly begun: Effect.Effect<void>
  readonly isDraining: () => boolean
}>()("indelible/http/Drain") {
  static readonly layer = Layer.sync(Drain, () => {
    const latch = Latch.makeUnsafe()
    let draining = false
    return Drain.of({
      begin: Effect.suspend(() => {
        draining = true
        return Effect.asVoid(latch.open)
      }),
      begun: latch.await,
      isDraining: () => draining
    })
  })
}
