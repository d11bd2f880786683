/** What a simulated process has instead of a machine: its clock, its randomness, its log. */
import { Cause, Clock, Context, Duration, Effect, Fiber, Logger, Random, References } from "effect"
import { SecureRandom } from "effect/crypto"
import type { Entry } from "./Kernel.ts"
import type { Key } from "./Keyed.ts"
import type { Process } from "./Process.ts"

export const environment = (process: Process): Context.Context<SecureRandom.SecureRandom> =>
  Context.make(SecureRandom.SecureRandom, secureRandom(process.key.of("secure"))).pipe(
    Context.add(Random.Random, random(process.key.of("random"))),
    Context.add(Clock.Clock, clock(process)),
    Context.add(Logger.CurrentLoggers, new Set([logger(process)])),
    // A tracer would draw ids from the real world, and could come between a yield and its task.
    Context.add(References.TracerEnabled, false)
  )

/** As the real one: a sleep of no length lets others go first, and one without end never ends. */
const clock = (process: Process): Clock.Clock => {
  const { clock: host, kernel } = process
  const wallNanos = () => BigInt(host.wallMicros) * 1_000n
  const monotonicNanos = () => BigInt(host.monotonicMicros) * 1_000n
  return {
    currentTimeMillisUnsafe: () => host.wallMillis,
    currentTimeMillis: Effect.sync(() => host.wallMillis),
    currentTimeNanosUnsafe: wallNanos,
    currentTimeNanos: Effect.sync(wallNanos),
    monotonicTimeNanosUnsafe: monotonicNanos,
    monotonicTimeNanos: Effect.sync(monotonicNanos),
    sleep: (duration) => {
      const ms = Duration.toMillis(duration)
      if (ms <= 0) return Effect.yieldNow
      if (!Number.isFinite(ms)) return Effect.never
      return Effect.callback((resume) => {
        const sleeper = Fiber.getCurrent() ?? null
        const until = host.monotonicMicros + Math.ceil(ms * 1_000)
        const set = (): Entry => kernel.postAt(host.worldAt(until), process, "timer", "", ring)
        const ring = () => {
          // Late is what timers are; early, because the clock runs slower by now, they never are.
          if (host.monotonicMicros < until) timer = set()
          else process.resumeWith(sleeper, () => resume(Effect.void))
        }
        let timer = set()
        return Effect.sync(() => kernel.cancel(timer))
      })
    }
  }
}

/** The draws of a process are its own, and those of its next incarnation are others. */
const random = (key: Key): Random.Random => {
  let draws = 0
  const next = () => key.of(draws++)
  return {
    nextDoubleUnsafe: () => next().unit(),
    nextIntUnsafe: () => next().below(2 ** 53) - 2 ** 52
  }
}

const secureRandom = (key: Key): SecureRandom.SecureRandom["Service"] => {
  let draws = 0
  return SecureRandom.make((size) => key.of(draws++).bytes(size))
}

/** Log lines go into the trace, without what differs between runs: fiber ids, stacks. */
const logger = (process: Process): Logger.Logger<unknown, void> =>
  Logger.make(({ cause, fiber, logLevel, message }) => {
    const words = (Array.isArray(message) ? message : [message]).map(String).join(" ")
    const annotations = Object.entries(fiber.getRef(References.CurrentLogAnnotations))
      .map(([name, value]) => `${name}=${String(value)}`)
    const reasons = cause.reasons.map((reason) => Cause.isDieReason(reason) ? nameOf(reason.defect) : reason._tag)
    process.kernel.mark(process, "log", logLevel, [words, ...annotations, ...reasons].join(" "))
  })

const nameOf = (defect: unknown): string => defect instanceof Error ? defect.name : typeof defect
