/** How commands speak: data on request, otherwise text; colours and progress only to a terminal. */
import { Console, Data, Effect, Runtime } from "effect"
import { Flag } from "effect/cli"
import type { Paint } from "./Report.ts"

export const json = Flag.Boolean("json").pipe(Flag.withDescription("Print data instead of text"), Flag.withDefault(false))

/** Something on the command line, or in a file that it names, cannot be used. */
export class WrongUsage extends Data.TaggedError("WrongUsage")<{ readonly message: string }> {
  override readonly [Runtime.errorExitCode] = 2
  override readonly [Runtime.errorReported] = false
}

const sgr = (code: number) => (text: string) => `\u001b[${code}m${text}\u001b[0m`
const plain = (text: string) => text

export const paint: Paint = process.stdout.isTTY && process.env["NO_COLOR"] === undefined
  ? { red: sgr(31), green: sgr(32), dim: sgr(2), bold: sgr(1) }
  : { red: plain, green: plain, dim: plain, bold: plain }

/** Prints one of both, and leaves with this code once nothing is left to do. */
export const finish = (asJson: boolean, data: object, lines: ReadonlyArray<string>, code: number): Effect.Effect<void> =>
  Console.log(asJson ? JSON.stringify(data, null, 2) : lines.join("\n")).pipe(
    Effect.andThen(Effect.sync(() => {
      process.exitCode = code
    }))
  )

/** Shows how far something has come, while it runs, on a terminal. */
export const withProgress = (words: () => string) =>
<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  if (!process.stderr.isTTY) return effect
  const show = Effect.sync(() => process.stderr.write(`\r\u001b[2K${words()}`))
  const clear = Effect.sync(() => process.stderr.write("\r\u001b[2K"))
  const shown = show.pipe(Effect.andThen(Effect.sleep(200)), Effect.forever, Effect.ensuring(clear))
  return Effect.raceFirst(effect, shown)
}
