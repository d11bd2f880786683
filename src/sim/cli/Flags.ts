/** What several commands ask for, in the same words. */
import { Duration, Effect, Option, Schema } from "effect"
import { Flag } from "effect/cli"
import type { Harness } from "./Harness.ts"
import { WrongUsage } from "./Output.ts"

/** A seed, or what seeds are made from. */
export const word = Schema.String.check(Schema.isPattern(/^\S{1,200}$/, { message: "must be 1 to 200 characters without blanks" }))

/** What is asked about has to be known: a name that was mistyped is no invariant that holds. */
export const knownInvariants = (harness: Harness, names: ReadonlyArray<string>): Effect.Effect<void, WrongUsage> => {
  const unknown = names.filter((name) => !harness.invariants.some((known) => known.name === name))
  return unknown.length === 0
    ? Effect.void
    : Effect.fail(new WrongUsage({ message: `there is no invariant ${unknown.join(", ")}; explain lists them` }))
}

export const positive = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000_000 }))

/** `--for`: a length of time. */
export const duration = (description: string) =>
  Flag.String("for").pipe(
    Flag.withDescription(description),
    Flag.filterMap(
      (text) => {
        const [, count, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text) ?? []
        const factor = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }[unit as "ms" | "s" | "m" | "h"]
        return count === undefined || Number(count) === 0 ? Option.none() : Option.some(Duration.millis(Number(count) * factor))
      },
      (text) => `"${text}" is no length of time such as 60s, 5m or 500ms`
    )
  )
