/** What several commands ask for, in the same words. */
import { Duration, Option, Schema } from "effect"
import { Flag } from "effect/cli"

export const positive = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000_000 }))

/** `--for`: a length of time. */
export const duration = (description: string) =>
  Flag.String("for").pipe(
    Flag.withDescription(description),
    Flag.filterMap(
      (text) => {
        const [, count, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h)$/.exec(text) ?? []
        const factor = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }[unit as "ms" | "s" | "m" | "h"]
        return count === undefined ? Option.none() : Option.some(Duration.millis(Number(count) * factor))
      },
      (text) => `"${text}" is no length of time such as 60s, 5m or 500ms`
    )
  )
