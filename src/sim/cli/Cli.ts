/** The command line of the simulator: every command says what it does with `--help`, and prints data with `--json`. */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Cause, Console, Effect, Exit, Layer, Runtime } from "effect"
import { CliError, CliOutput, Command } from "effect/cli"
import { explainCommand, selfTestCommand } from "./Explain.ts"
import type { Place } from "./Harness.ts"
import { mutantsCommand } from "./Mutants.ts"
import { interrupted, outliveReaders, WrongUsage } from "./Output.ts"
import { ThreadLost } from "./Pool.ts"
import { replayCommand, shrinkCommand } from "./Replay.ts"
import { runCommand } from "./Run.ts"
import { corpusCommand, scenarioCommand } from "./Scenario.ts"

const sim = (place: Place) =>
  Command.make("sim").pipe(
    Command.withDescription(
      "Runs the service in a world that is out to get it, from one seed. Leaves with 0: all held, " +
        "1: an invariant failed, 2: wrong usage, 3: the harness cannot be trusted (see explain)"
    ),
    Command.withSubcommands([
      runCommand(place),
      replayCommand(place),
      scenarioCommand(place),
      corpusCommand(place),
      shrinkCommand(place),
      mutantsCommand(place),
      selfTestCommand,
      explainCommand(place)
    ])
  )

/** As the default, but for what was asked wrongly. */
const teardown: Runtime.Teardown = (exit, onExit) => {
  const error = Exit.isFailure(exit) ? Cause.squash(exit.cause) : null
  if (CliError.isCliError(error)) return onExit(error._tag === "ShowHelp" && error.errors.length === 0 ? 0 : 2)
  Runtime.defaultTeardown(exit, onExit)
}

/** What was asked wrongly is told where errors are: the other way is for what was asked for. */
const presenter = CliOutput.layerPresenter({
  present: (event) =>
    event._tag !== "InvalidInvocation" ? CliOutput.defaultPresenter.present(event) : Effect.gen(function*() {
      const formatter = yield* CliOutput.Formatter
      yield* Console.error(`${formatter.formatHelpDoc(event.helpDoc)}\n${formatter.formatErrors(event.errors)}`)
    })
})

/** For people; and as data, where data was asked for. */
const tell = (error: unknown): Effect.Effect<void> => {
  const isOurs = error instanceof WrongUsage || error instanceof ThreadLost
  const message = CliError.isCliError(error) && error._tag === "ShowHelp"
    ? error.errors.map(({ message }) => message).join("\n")
    : error instanceof Error ? error.message : String(error)
  if (message === "") return Effect.void
  const exitCode = error instanceof ThreadLost ? 3 : 2
  return Effect.andThen(
    isOurs ? Console.error(message) : Effect.void,
    process.argv.includes("--json") ? Console.log(JSON.stringify({ error: message, exitCode }, null, 2)) : Effect.void
  )
}

export const runMain = (place: Place): void => {
  outliveReaders()
  NodeRuntime.runMain(
    Command.run(sim(place), { version: "0.1.0" }).pipe(
      Effect.tapError(tell),
      Effect.onInterrupt(() => interrupted),
      Effect.provide(Layer.mergeAll(presenter, NodeServices.layer))
    ),
    { teardown }
  )
}
