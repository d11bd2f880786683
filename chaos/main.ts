/**
 * Chaos with real processes: `npm run chaos -- --seed 7 --for 60s`. Loopback only, bounded, and nothing stays behind. Exit
 * codes: 0 everything held, 1 something did not, 2 wrong usage, 3 it could not run.
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Cause, Console, Effect, Logger, References, Schema } from "effect"
import { CliError, Command, Flag } from "effect/cli"
import * as Crypto from "node:crypto"
import * as Place from "./place.ts"
import { inWords } from "./report.ts"
import * as Run from "./run.ts"

/** The longest run, in seconds. */
const longest = 3_600

const flags = {
  seed: Flag.String("seed").pipe(
    Flag.withDescription("What happens, and when: a word of a-z, 0-9 and -. Default: another one each time"),
    Flag.withSchema(Schema.String.check(Schema.isPattern(/^[a-z0-9-]{1,40}$/, { message: "must be 1 to 40 of a-z, 0-9 and -" }))),
    Flag.withDefault(Crypto.randomBytes(4).toString("hex"))
  ),
  forTime: Flag.String("for").pipe(
    Flag.withDescription(`How long things go wrong: seconds or minutes, such as 60s or 2m. At most ${longest}s`),
    Flag.withSchema(Schema.String.check(
      Schema.makeFilter((text: string) => /^[1-9]\d{0,3}[sm]$/.test(text) && secondsOf(text) <= longest, {
        message: `must be such as 60s or 2m, and at most ${longest}s`
      })
    )),
    Flag.withDefault("60s")
  ),
  clients: Flag.Int("clients").pipe(
    Flag.withDescription("How many clients ask at the same time"),
    Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 }))),
    Flag.withDefault(6)
  ),
  json: Flag.Boolean("json").pipe(Flag.withDescription("The outcome as JSON"), Flag.withDefault(false)),
  keep: Flag.Boolean("keep").pipe(Flag.withDescription("Keep the files of a run that held, too"), Flag.withDefault(false))
}

const secondsOf = (text: string): number => Number(text.slice(0, -1)) * (text.endsWith("m") ? 60 : 1)

/** Starting, coming to rest and looking take no longer than this beside the time that was asked for. */
const besideMs = 300_000

const chaos = Command.make("chaos", flags, ({ clients, forTime, json, keep, seed }) =>
  Effect.gen(function*() {
    const forMs = secondsOf(forTime) * 1_000
    const place = yield* Place.make
    const outcome = yield* Run.run(place, {
      seed,
      forMs,
      clients,
      say: (line) => json ? Effect.void : Console.error(`chaos ${seed}: ${line}`)
    }).pipe(
      Effect.scoped,
      Effect.timeout(forMs + besideMs),
      Effect.tapCause((cause) => Effect.sync(() => place.keep = !Cause.hasInterruptsOnly(cause)))
    )
    place.keep = keep || !outcome.holds
    const again = `npm run chaos -- --seed ${seed} --for ${forTime} --clients ${clients}`
    yield* Console.log(json ? JSON.stringify({ seed, again, ...outcome }, null, 2) : inWords(outcome, again))
    if (place.keep) yield* Console.error(`The logs and the database are in ${place.path}`)
    process.exitCode = outcome.holds ? 0 : 1
  }).pipe(
    Effect.scoped,
    Effect.provideService(References.MinimumLogLevel, "Error"),
    Effect.provide(Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])),
    Effect.catchCause((cause) => {
      process.exitCode = 3
      return Console.error(`chaos ${seed}: it could not run`, cause)
    })
  )).pipe(Command.withDescription("Real processes, a real Postgres, real HTTP, and everything that goes wrong, by seed"))

const wrongUsage = (error: unknown) =>
  Effect.sync(() => {
    const asked = CliError.isCliError(error) && error._tag === "ShowHelp" && error.errors.length === 0
    process.exitCode = asked ? 0 : 2
  })

NodeRuntime.runMain(
  Command.run(chaos, { version: "0.1.0" }).pipe(Effect.provide(NodeServices.layer), Effect.catch(wrongUsage))
)
