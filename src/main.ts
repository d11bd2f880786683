/** Starts the service: `--role all|api|worker`. What keeps it from starting is told in one line. */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Cause, Console, Effect, Exit, Layer, Logger, References, type Runtime } from "effect"
import { Command, Flag } from "effect/cli"
import * as Configuration from "./adapters/Configuration.ts"
import * as App from "./app.ts"
import { startFailure } from "./startFailure.ts"
import { openDatabase } from "./storage.ts"

const serve = Command.make("indelible", {
  role: Flag.Literals("role", App.roles).pipe(
    Flag.withDescription("What this process does: answer callers (api), work on operations (worker), or both"),
    Flag.withDefault("all")
  )
}, ({ role }) =>
  Effect.gen(function*() {
    const config = yield* Configuration.load(process.env)
    if (role !== "all" && config.databaseUrl === null) {
      return yield* new Configuration.ConfigurationError({
        message: `--role ${role} needs DATABASE_URL: the embedded Postgres serves one process, which has to do everything`
      })
    }
    const run = Effect.gen(function*() {
      // What could not start says why instead, in its one line.
      yield* Effect.addFinalizer((exit) => Exit.hasInterrupts(exit) ? Effect.logInfo("Stopped") : Effect.void)
      yield* Effect.forEach(config.warnings, (warning) => Effect.logWarning(warning), { discard: true })
      const { url, watch } = yield* openDatabase(config)
      yield* Layer.build(App.layer(config, role, url))
      return yield* watch
    })
    return yield* Effect.scoped(run).pipe(
      Effect.provideService(References.MinimumLogLevel, config.logLevel),
      Effect.provide(Logger.layer([config.logFormat === "json" ? Logger.consoleJson : Logger.consolePretty()]))
    )
  }).pipe(
    Effect.catch((error) =>
      Console.error(`indelible: ${startFailure(error)}`).pipe(Effect.andThen(Effect.sync(() => process.exitCode = 1)))
    )
  )).pipe(Command.withDescription("Memory writes for AI agents that survive retries"))

/** A stop that was asked for is a success: supervisors would take anything else for a crash. */
const teardown: Runtime.Teardown = (exit, onExit) =>
  onExit(
    Exit.isSuccess(exit) ? Number(process.exitCode ?? 0) : Cause.hasInterruptsOnly(exit.cause) ? 0 : 1
  )

NodeRuntime.runMain(Command.run(serve, { version: "0.1.0" }).pipe(Effect.provide(NodeServices.layer)), { teardown })
