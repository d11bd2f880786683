/**
 * Chaos with real processes: `npm run chaos -- --seed 7 --for 60s`. Loopback only, bounded, and nothing stays behind. Exit
 * codes: 0 everything held, or every planted bug was caught; 1 not so; 2 wrong usage; 3 it could not run.
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Cause, Console, Effect, Logger, References, Schema } from "effect"
import { Argument, CliError, Command, Flag } from "effect/cli"
import * as Crypto from "node:crypto"
import { WrongUsage } from "../src/sim/cli/Output.ts"
import * as Place from "./place.ts"
import * as Planted from "./planted.ts"
import { inWords } from "./report.ts"
import * as Run from "./run.ts"

/** The longest run, in seconds. */
const longest = 3_600

const secondsOf = (text: string): number => Number(text.slice(0, -1)) * (text.endsWith("m") ? 60 : 1)

const time = Schema.String.check(
  Schema.makeFilter((text: string) => /^[1-9]\d{0,3}[sm]$/.test(text) && secondsOf(text) <= longest, {
    message: `must be such as 60s or 2m, and at most ${longest}s`
  })
)

const seed = Flag.String("seed").pipe(
  Flag.withDescription("What happens, and when: a word of a-z, 0-9 and -. Default: another one each time"),
  Flag.withSchema(Schema.String.check(Schema.isPattern(/^[a-z0-9-]{1,40}$/, { message: "must be 1 to 40 of a-z, 0-9 and -" }))),
  Flag.withDefault(Crypto.randomBytes(4).toString("hex"))
)
const forTime = (usual: string) =>
  Flag.String("for").pipe(
    Flag.withDescription(`How long things go wrong: seconds or minutes, such as 60s or 2m. At most ${longest}s`),
    Flag.withSchema(time),
    Flag.withDefault(usual)
  )
const clients = Flag.Int("clients").pipe(
  Flag.withDescription("How many clients ask at the same time"),
  Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 }))),
  Flag.withDefault(10)
)
const json = Flag.Boolean("json").pipe(Flag.withDescription("The outcome as JSON"), Flag.withDefault(false))

const flags = {
  seed,
  forTime: forTime("60s"),
  clients,
  rest: Flag.String("rest").pipe(
    Flag.withDescription("How long the service may take to come to rest after the last fault"),
    Flag.withSchema(time),
    Flag.withDefault("150s")
  ),
  json,
  keep: Flag.Boolean("keep").pipe(Flag.withDescription("Keep the files of a run that held, too"), Flag.withDefault(false))
}

/** Starting and looking take no longer than this beside the times that were asked for. */
const besideMs = 150_000

/** Says what kept it from running. Errors of the service are in its logs. */
const orCannotRun = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  effect.pipe(
    Effect.scoped,
    Effect.provideService(References.MinimumLogLevel, "Error"),
    Effect.provide(Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])),
    Effect.catchCause((cause) => {
      process.exitCode = 3
      return Console.error("chaos could not run", cause)
    })
  )

const chaos = Command.make("chaos", flags, ({ clients, forTime, json, keep, rest, seed }) =>
  Effect.gen(function*() {
    const [forMs, restMs] = [secondsOf(forTime) * 1_000, secondsOf(rest) * 1_000]
    const place = yield* Place.make
    const outcome = yield* Run.run(place, {
      seed,
      forMs,
      clients,
      restMs,
      say: (line) => json ? Effect.void : Console.error(`chaos ${seed}: ${line}`)
    }).pipe(
      Effect.scoped,
      Effect.timeout(forMs + restMs + besideMs),
      Effect.tapCause((cause) => Effect.sync(() => place.keep = !Cause.hasInterruptsOnly(cause)))
    )
    place.keep = keep || !outcome.holds
    const again = `npm run chaos -- --seed ${seed} --for ${forTime} --clients ${clients}`
    yield* Console.log(json ? JSON.stringify({ seed, again, ...outcome }, null, 2) : inWords(outcome, again))
    if (place.keep) yield* Console.error(`The logs and the database are in ${place.path}`)
    process.exitCode = outcome.holds ? 0 : 1
  }).pipe(orCannotRun)).pipe(
    Command.withDescription("Real processes, a real Postgres, real HTTP, and everything that goes wrong, by seed")
  )

const mutants = Command.make("mutants", {
  ids: Argument.String("id").pipe(Argument.withDescription("Which; the five, unless given"), Argument.atLeast(0)),
  seed,
  forTime: forTime("45s"),
  clients,
  json
}, ({ clients, forTime, ids, json, seed }) =>
  Effect.gen(function*() {
    const { mutants, unknown } = yield* Planted.find(ids.length === 0 ? Object.keys(Planted.chosen) : ids)
    if (unknown.length > 0) return yield* new WrongUsage({ message: `there is no planted bug ${unknown.join(", ")}` })
    const verdicts = yield* Effect.forEach(mutants, (mutant) =>
      Planted.judge(mutant, { seed, forTime, clients }).pipe(
        Effect.tap((verdict) => {
          const again = `npm run chaos -- mutants ${mutant.id} --seed ${seed} --for ${forTime} --clients ${clients}`
          return json ? Effect.void : Console.log(`${Planted.inWords(verdict, again)}\n`)
        })
      ))
    const caught = verdicts.filter(Planted.isCaught).length
    yield* Console.log(json ? JSON.stringify({ seed, mutants: verdicts }, null, 2) : `${caught} of ${verdicts.length} planted bugs caught`)
    process.exitCode = caught === verdicts.length ? 0 : 1
  }).pipe(
    Effect.catchTag("WrongUsage", ({ message }) => {
      process.exitCode = 2
      return Console.error(message)
    }),
    orCannotRun
  )).pipe(Command.withDescription("Plant known bugs in copies of the sources: a run of each has to end with a difference"))

const wrongUsage = (error: unknown) =>
  Effect.sync(() => {
    const asked = CliError.isCliError(error) && error._tag === "ShowHelp" && error.errors.length === 0
    process.exitCode = asked ? 0 : 2
  })

NodeRuntime.runMain(
  Command.run(chaos.pipe(Command.withSubcommands([mutants])), { version: "0.1.0" }).pipe(
    Effect.provide(NodeServices.layer),
    Effect.catch(wrongUsage)
  )
)
