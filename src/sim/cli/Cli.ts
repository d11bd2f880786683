/** The command line of the simulator: every command says what it does with `--help`, and prints data with `--json`. */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Cause, Console, Effect, Exit, Runtime } from "effect"
import { CliError, Command } from "effect/cli"
import { explainCommand, selfTestCommand } from "./Explain.ts"
import type { Place } from "./Harness.ts"
import { mutantsCommand } from "./Mutants.ts"
import { WrongUsage } from "./Output.ts"
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

export const runMain = (place: Place): void =>
  NodeRuntime.runMain(
    Command.run(sim(place), { version: "0.1.0" }).pipe(
      Effect.tapError((error) =>
        error instanceof WrongUsage || error instanceof ThreadLost ? Console.error(error.message) : Effect.void
      ),
      Effect.provide(NodeServices.layer)
    ),
    { teardown }
  )
