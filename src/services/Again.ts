/** Repeats what had an unknown outcome, for programs whose repeats are recognised: by key, by operation id or by epoch. */
import { Effect, Schedule } from "effect"
import { ComeBackLater } from "../domain/Refusal.ts"
import type { OutcomeUnknown } from "./Transaction.ts"

/** Up to six tries over about two seconds, with jitter. */
const schedule = Schedule.exponential("25 millis").pipe(Schedule.jittered, Schedule.upTo({ times: 6 }))

const isUnknown = (error: unknown): error is OutcomeUnknown =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "OutcomeUnknown"

/** Tries again while the outcome is unknown. */
export const again = <A, E, R>(effect: Effect.Effect<A, E | OutcomeUnknown, R>): Effect.Effect<A, E | OutcomeUnknown, R> =>
  Effect.retry(effect, { schedule, while: isUnknown })

/** Tries again, and then tells the caller to repeat the same request. */
export const againOrLater = <A, E, R>(
  effect: Effect.Effect<A, E | OutcomeUnknown, R>
): Effect.Effect<A, Exclude<E, OutcomeUnknown> | ComeBackLater, R> =>
  again(effect).pipe(
    Effect.catchIf(isUnknown, () => Effect.fail(new ComeBackLater({ reason: "outcome_unknown" })))
  ) as Effect.Effect<A, Exclude<E, OutcomeUnknown> | ComeBackLater, R>

const forever = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("1 second")]).pipe(Schedule.jittered)

/**
 * Tries again for as long as it takes, at most a second apart. Only for a holder of a lease, whose fence ends it, and
 * only for what the epoch makes safe to repeat.
 */
export const untilKnown = <A, E, R>(
  effect: Effect.Effect<A, E | OutcomeUnknown, R>
): Effect.Effect<A, Exclude<E, OutcomeUnknown>, R> =>
  Effect.retry(effect, { schedule: forever, while: isUnknown }) as Effect.Effect<A, Exclude<E, OutcomeUnknown>, R>
