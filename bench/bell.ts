/** Times from a call to the attempt that it leads to, one after the other. */
import { Deferred, Effect } from "effect"
import { now, quantile, type Sample } from "./trial.ts"

/** Long enough for a worker to end what it began and to be idle again. */
const pause = "15 millis"
const warmUp = 20

/** Tells whoever waits when the next attempt started. */
export class Bell {
  private ring: Deferred.Deferred<number> | undefined
  readonly strike = (at: number = now()): void => {
    if (this.ring !== undefined) Deferred.doneUnsafe(this.ring, Effect.succeed(at))
  }
  /** Runs `call` and waits for the attempt that it leads to. Milliseconds from before the call. */
  readonly time = (call: Effect.Effect<unknown>): Effect.Effect<number> =>
    Effect.suspend(() => {
      const ring = this.ring = Deferred.makeUnsafe<number>()
      const from = now()
      return Effect.andThen(call, Effect.map(Deferred.await(ring), (at) => at - from))
    })
}

/** One call at a time, each when the worker is idle again. */
export const sample = Effect.fnUntraced(function*(
  count: number,
  bell: Bell,
  call: (n: number) => Effect.Effect<unknown>
): Effect.fn.Return<ReadonlyArray<Sample>> {
  const times: Array<number> = []
  for (let n = 0; n < count + warmUp; n++) {
    times.push(yield* bell.time(call(n)))
    yield* Effect.sleep(pause)
  }
  const counted = times.slice(warmUp)
  return [
    { figure: "wake-up, p50", unit: "ms", value: quantile(counted, 0.5) },
    { figure: "wake-up, p99", unit: "ms", value: quantile(counted, 0.99) }
  ]
})
