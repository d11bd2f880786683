/**
 * The simulated database against a real Postgres: `npm run differential -- --sequences 2000 --seed 7`. Exit codes: 0 they
 * agree, 1 they differ, 2 wrong usage, 3 it could not run.
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Cause, Console, Duration, Effect, Logger, Option, Redacted, References, Schema } from "effect"
import { CliError, Command, Flag } from "effect/cli"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import * as EmbeddedPostgres from "../src/adapters/EmbeddedPostgres.ts"
import { duration } from "../src/sim/cli/Flags.ts"
import * as Campaign from "./campaign.ts"
import { read, readKept } from "./kept.ts"
import type { AnySequence, Kind } from "./kind.ts"
import { ports } from "./ports/kind.ts"
import { statements } from "./statements/kind.ts"
import { counterexample } from "./words.ts"

const flags = {
  kind: Flag.Literals("kind", ["statements", "ports", "both"]).pipe(
    Flag.withDescription("Statements on two small tables, operations of the ports, or as many of both"),
    Flag.withDefault("both")
  ),
  sequences: Flag.Int("sequences").pipe(
    Flag.withDescription("How many sequences of each kind beside the kept ones"),
    Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000_000 }))),
    Flag.withDefault(2_000)
  ),
  for: duration("Begin no sequence after so long: 60s, 5m").pipe(Flag.optional),
  seed: Flag.String("seed").pipe(
    Flag.withDescription("What the sequences are made from: a word of a-z, 0-9 and -"),
    Flag.withSchema(Schema.String.check(Schema.isPattern(/^[a-z0-9-]{1,40}$/, { message: "must be 1 to 40 of a-z, 0-9 and -" }))),
    Flag.withDefault("1")
  ),
  replay: Flag.String("replay").pipe(Flag.withDescription("Compare the sequence in this file, and nothing else"), Flag.optional),
  lanes: Flag.Int("lanes").pipe(
    Flag.withDescription("How many sequences are compared at the same time"),
    Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 16 }))),
    Flag.withDefault(2)
  ),
  most: Flag.Int("most").pipe(
    Flag.withDescription("End when so many sequences differ"),
    Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000 }))),
    Flag.withDefault(3)
  ),
  tries: Flag.Int("tries").pipe(
    Flag.withDescription("How many comparisons it may take to make one that differs small"),
    Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000 }))),
    Flag.withDefault(400)
  ),
  databaseUrl: Flag.String("database-url").pipe(
    Flag.withDescription("A database to make schemas in, as a superuser. Default: an embedded Postgres that is gone afterwards"),
    Flag.filter((url) => /^postgres(?:ql)?:\/\//.test(url) && URL.canParse(url), () => "a URL such as postgres://…, or no such flag"),
    Flag.optional
  ),
  json: Flag.Boolean("json").pipe(Flag.withDescription("The outcome as JSON"), Flag.withDefault(false))
}

const embedded = Effect.gen(function*() {
  const dataDir = yield* Effect.acquireRelease(
    Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "indelible-differential-"))),
    (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
  )
  Fs.chmodSync(dataDir, 0o711)
  return (yield* EmbeddedPostgres.make({ dataDir, durable: false })).url
})

const differential = Command.make("differential", flags, ({ databaseUrl, json, kind, replay, ...options }) =>
  Effect.gen(function*() {
    const chosen = Option.isSome(replay) ? [yield* read(Path.resolve(replay.value))] : yield* readKept
    const url = Option.isSome(databaseUrl) ? Redacted.make(databaseUrl.value) : yield* embedded
    const campaign = <S extends AnySequence>(kind: Kind<S>, kept: ReadonlyArray<S>) =>
      Campaign.run({
        ...options,
        kind,
        kept,
        url,
        forMs: Option.match(options.for, { onNone: () => Infinity, onSome: Duration.toMillis }),
        sequences: Option.isSome(replay) ? 0 : options.sequences,
        say: (line) => json ? Effect.void : Console.error(line)
      })
    const outcomes: Array<Campaign.Outcome> = []
    if (kind !== "ports") outcomes.push(yield* campaign(statements, chosen.filter((one) => one.kind === "statements")))
    if (kind !== "statements") outcomes.push(yield* campaign(ports, chosen.filter((one) => one.kind === "ports")))
    yield* Console.log(json ? JSON.stringify(outcomes, null, 2) : outcomes.map(inWords).join("\n\n"))
    process.exitCode = outcomes.some(({ found }) => found.length > 0) ? 1 : 0
  }).pipe(
    Effect.scoped,
    Effect.provideService(References.MinimumLogLevel, "Error"),
    Effect.provide(Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])),
    Effect.catchTag("WrongUsage", ({ message }) => {
      process.exitCode = 2
      return Console.error(`differential: ${message}`)
    }),
    Effect.catchCause((cause) => {
      process.exitCode = 3
      return Console.error(`differential: it could not run\n${Cause.pretty(cause)}`)
    })
  )).pipe(Command.withDescription("The same sequences on the simulated database and on Postgres, statement by statement"))

const inWords = ({ counts, found, kept, kind, sequences }: Campaign.Outcome): string => {
  const examples = found.flatMap(({ difference, from, tries }) => [
    "",
    counterexample(difference),
    `Made of ${from} steps by ${tries} comparisons. To repeat and to keep:`,
    JSON.stringify(difference.sequence)
  ])
  const what = Object.entries(counts).map(([name, count]) => `${String(count).padStart(9)}  ${name}`)
  return [...what, ...examples, "", `${sequences} sequences of ${kind} and ${kept} kept ones, ${found.length} differ`].join("\n")
}

const wrongUsage = (error: unknown) =>
  Effect.sync(() => {
    const asked = CliError.isCliError(error) && error._tag === "ShowHelp" && error.errors.length === 0
    process.exitCode = asked ? 0 : 2
  })

NodeRuntime.runMain(
  Command.run(differential, { version: "0.1.0" }).pipe(Effect.provide(NodeServices.layer), Effect.catch(wrongUsage))
)
