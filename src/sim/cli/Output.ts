/** How commands speak: data on request, otherwise text; colours and progress only to a terminal. */
import { Console, Data, Effect, Runtime } from "effect"
import { Flag } from "effect/cli"
import { codeOf } from "../../directories.ts"
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

/** Whether anything was answered. */
let said = false

/** What a command says that was interrupted before it had anything to say: for those who wait for data. */
export const interrupted: Effect.Effect<void> = Effect.suspend(() =>
  said || !process.argv.includes("--json")
    ? Effect.void
    : Console.log(JSON.stringify({ error: "interrupted", exitCode: 130 }, null, 2)))

/**
 * Prints one of both, and leaves with this code once nothing is left to do. It is the answer also where nobody reads to
 * the end; what could not be written for another reason is no data, and green no more.
 */
export const finish = (asJson: boolean, data: object, lines: ReadonlyArray<string>, code: number): Effect.Effect<void> =>
  Effect.gen(function*() {
    said = true
    const why = yield* print(asJson ? JSON.stringify(data, null, 2) : lines.join("\n"))
    const isLost = why !== null && why !== "EPIPE"
    if (isLost) yield* Console.error(`The output cannot be written (${why})`)
    process.exitCode = isLost && code === 0 ? 3 : code
  })

/** Null, or why it could not be written. */
const print = (text: string): Effect.Effect<string | null> =>
  Effect.callback((resume) => {
    process.stdout.write(`${text}\n`, (error) => resume(Effect.succeed(error == null ? null : codeOf(error) ?? "for no reason that is known")))
  })

/** Whoever reads has gone: that is no error of ours, and the exit code is still to be told. */
export const outliveReaders = (): void => {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {})
}

/** Shows how far something has come, while it runs, on a terminal. */
export const withProgress = (words: () => string) =>
<A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  if (!process.stderr.isTTY) return effect
  const show = Effect.sync(() => process.stderr.write(`\r\u001b[2K${words()}`))
  const clear = Effect.sync(() => process.stderr.write("\r\u001b[2K"))
  const shown = show.pipe(Effect.andThen(Effect.sleep(200)), Effect.forever, Effect.ensuring(clear))
  return Effect.raceFirst(effect, shown)
}
