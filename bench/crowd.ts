/** Many callers at once, each of which asks again when it is answered. */
import { Effect } from "effect"
import { now, quantile, type Sample } from "./trial.ts"

export const callers = 64
/** Calls before the clock starts. */
export const warmUp = 500

/** Runs `count` calls from as many callers at once, and says how it went. */
export const crowd = Effect.fnUntraced(function*(count: number, call: (n: number) => Effect.Effect<unknown>) {
  const latencies: Array<number> = []
  const timed = (n: number) =>
    Effect.suspend(() => {
      const from = now()
      return Effect.andThen(call(n), Effect.sync(() => latencies.push(now() - from)))
    })
  const numbers = (from: number, length: number) => Array.from({ length }, (_, index) => from + index)
  yield* Effect.forEach(numbers(0, warmUp), call, { concurrency: callers, discard: true })
  const from = now()
  yield* Effect.forEach(numbers(warmUp, count), timed, { concurrency: callers, discard: true })
  return figures(count, now() - from, latencies)
})

export const figures = (count: number, tookMs: number, latencies: ReadonlyArray<number>): ReadonlyArray<Sample> => [
  { figure: `accepted by ${callers} callers`, unit: "1/s", value: count / tookMs * 1_000 },
  { figure: `answer to one of ${callers} callers, p50`, unit: "ms", value: quantile(latencies, 0.5) },
  { figure: `answer to one of ${callers} callers, p99`, unit: "ms", value: quantile(latencies, 0.99) }
]
