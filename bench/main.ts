/**
 * Measures the service beside graphile-worker and pg-boss, in one run on one durable Postgres: `npm run bench`, with the
 * names of benches for some of them (accept, drain, wake, claims, sim), and `-- --quick` for a smoke test.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Logger, References } from "effect"
import * as Accept from "./accept.ts"
import * as Claims from "./claims.ts"
import * as Drain from "./drain.ts"
import * as Report from "./report.ts"
import * as Server from "./server.ts"
import * as Sim from "./sim.ts"
import { full, quick, type Sample, type Scale, type Trial } from "./trial.ts"
import * as Wake from "./wake.ts"

const benches = { accept: Accept.bench, drain: Drain.bench, wake: Wake.bench, claims: Claims.bench, sim: Sim.bench }
type Name = keyof typeof benches

const args = process.argv.slice(2)
const scale: Scale = args.includes("--quick") ? quick : full
const unknown = args.filter((arg) => arg !== "--quick" && !(arg in benches))
const asked = (Object.keys(benches) as Array<Name>).filter((name) => args.includes(name))
const names = asked.length > 0 ? asked : Object.keys(benches) as Array<Name>

/** All trials in turns, as often as the scale says. */
const repeat = Effect.fnUntraced(function*(name: Name, trials: ReadonlyArray<Trial>) {
  const samples: Array<Sample & { readonly bench: string; readonly system: string }> = []
  for (let round = 1; round <= scale.rounds; round++) {
    for (const { run, system } of trials) {
      yield* Console.error(`${name}, round ${round} of ${scale.rounds}: ${system}`)
      const found = yield* Effect.scoped(run)
      samples.push(...found.map((sample) => ({ bench: name, system, ...sample })))
    }
  }
  return Report.collect(samples)
})

const program = Effect.gen(function*() {
  const facts = yield* Report.machine
  yield* Console.log(`${Report.describe(facts)}\nMedians of ${scale.rounds}, taken in turns.`)
  const all: Array<Report.Measured> = []
  for (const name of names) {
    const measured = yield* Effect.scoped(Effect.flatMap(benches[name](scale), (trials) => repeat(name, trials)))
    all.push(...measured)
    yield* Console.log(`\n## ${name}\n\n${Report.table(measured)}`)
  }
  yield* Console.log(`\n## Aims\n\n${Report.aims(all)}\n\nKept in ${Report.save(facts, scale, all)}`)
})

NodeRuntime.runMain(
  unknown.length > 0
    ? Effect.andThen(
      Console.error(`bench: unknown ${unknown.join(", ")}; there are ${Object.keys(benches).join(", ")} and --quick`),
      Effect.sync(() => process.exitCode = 1)
    )
    : program.pipe(
      Effect.provide(Server.layer),
      Effect.scoped,
      Effect.provideService(References.MinimumLogLevel, "Warn"),
      Effect.provide(Logger.layer([Logger.consolePretty()]))
    )
)
