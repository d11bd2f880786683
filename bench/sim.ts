/** How fast the simulator is on its standard workload, with every kind of fault, and how fast it makes a failure small. */
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { join } from "node:path"
import { planted, readMutants } from "../src/sim/cli/Mutant.ts"
import * as Pool from "../src/sim/cli/Pool.ts"
import type { Asked, Outcome } from "../src/sim/cli/Task.ts"
import { type FaultKind, faultKinds, type Rates } from "../src/sim/Faults.ts"
import { standard } from "../src/sim/Shape.ts"
import { type Bench, now, quantile, type Sample, type Trial } from "./trial.ts"

const root = new URL("../", import.meta.url)
const place = { root, sources: ["src", "package.json"], mutants: new URL("test/mutants/", root) }
const harness = new URL("src/sim/harness.ts", root)

/** Every kind as likely as the middle of what a swarm draws. */
const rates: Rates = Object.fromEntries((Object.keys(faultKinds) as ReadonlyArray<FaultKind>).map((kind) => [kind, 0.014]))

const job = (index: number): Asked => ({
  index,
  spec: { seed: `bench/${index}`, engine: "swarm", shape: { ...standard, lanes: 2, budget: 0, rates } }
})

const jobs = (count: number): ReadonlyArray<Asked> => Array.from({ length: count }, (_, index) => job(index))

const hashOf = ({ error, result }: Outcome): string => result?.hash ?? error ?? ""

/** On one thread after the other, so that they are of one core. */
const speed = (count: number): Trial => ({
  system: "one core",
  run: Effect.gen(function*() {
    const { threads: [thread] } = yield* Pool.make(harness, 1)
    yield* thread!.ask({ _tag: "Runs", jobs: jobs(10) })
    const from = now()
    const cpuFrom = process.cpuUsage()
    const outcomes = yield* thread!.ask({ _tag: "Runs", jobs: jobs(count) })
    const cpu = process.cpuUsage(cpuFrom)
    const seconds = (now() - from) / 1_000
    const results = outcomes.flatMap(({ result }) => result === null ? [] : [result])
    const sum = (of: (result: typeof results[number]) => number) => results.reduce((total, result) => total + of(result), 0)
    return [
      { figure: "runs of the standard workload", unit: "1/s", value: results.length / seconds },
      { figure: "runs in a second of the processor", unit: "1/s", value: results.length / (cpu.user + cpu.system) * 1e6 },
      { figure: "virtual time over real time", unit: "×", value: sum(({ virtualMs }) => virtualMs) / 1_000 / seconds },
      { figure: "steps of a run", unit: "", value: sum(({ steps }) => steps) / results.length },
      { figure: "runs that broke something", unit: "", value: count - results.filter(({ violations }) => violations.length === 0).length },
      { figure: "memory of the process", unit: "MB", value: process.memoryUsage().rss / 2 ** 20 }
    ] satisfies ReadonlyArray<Sample>
  }).pipe(Effect.orDie)
})

/** Each run by two threads, which have a past of their own by then. */
const doubles = (count: number): Trial => ({
  system: "two threads",
  run: Effect.gen(function*() {
    const { threads } = yield* Pool.make(harness, 2)
    const [one, other] = yield* Effect.forEach(threads, (thread, place) =>
      thread.ask({ _tag: "Runs", jobs: place === 0 ? jobs(count) : jobs(count).toReversed() }), { concurrency: 2 })
    const seen = new Map(one!.map((outcome) => [outcome.index, hashOf(outcome)]))
    const unlike = other!.filter((outcome) => seen.get(outcome.index) !== hashOf(outcome)).length
    return [
      { figure: "runs done twice", unit: "", value: count },
      { figure: "of them unlike", unit: "", value: unlike }
    ]
  }).pipe(Effect.orDie)
})

const command = (main: string, args: ReadonlyArray<string>): Effect.Effect<Record<string, any>> =>
  Effect.callback((resume) => {
    const child = execFile(process.execPath, [main, ...args, "--json"], { maxBuffer: 2 ** 28 }, (error, stdout) =>
      resume(stdout === "" ? Effect.die(error) : Effect.sync(() => JSON.parse(stdout))))
    return Effect.sync(() => child.kill())
  })

const sweep: Trial = {
  system: "all cores",
  run: Effect.map(command(join(root.pathname, "src/sim/main.ts"), ["run", "--engine", "sweep", "--double", "0%"]), ({ runs, seconds }) => [
    { figure: "whole sweep", unit: "s", value: seconds },
    { figure: "runs of it", unit: "", value: runs }
  ])
}

/** Of these, each from its first failing seed to the smallest plan that was found. */
const shrunk = (ids: ReadonlyArray<string>): Trial => ({
  system: "planted bugs",
  run: Effect.gen(function*() {
    const mutants = yield* readMutants(place)
    const found = yield* Effect.forEach(ids, Effect.fnUntraced(function*(id) {
      const mutant = mutants.find((one) => one.id === id)!
      const folder = yield* planted(place, mutant)
      const main = join(folder!, "src/sim/main.ts")
      const { violations: [first] } = yield* command(main, [
        "run", "--engine", mutant.engine, "--seeds", String(mutant.budget), "--seed-base", "mutants", "--double", "0%", "--first",
        "--no-shrink"
      ])
      const from = now()
      const { faults } = yield* command(main, ["shrink", "--seed", first.seed, "--engine", first.engine, "--out", join(folder!, "report")])
      return { ms: now() - from, faults: faults as number }
    }))
    return [
      { figure: "a failing seed made small, p50", unit: "s", value: quantile(found.map(({ ms }) => ms), 0.5) / 1_000 },
      { figure: "a failing seed made small, longest", unit: "s", value: quantile(found.map(({ ms }) => ms), 1) / 1_000 },
      { figure: "faults that are left, p50", unit: "", value: quantile(found.map(({ faults }) => faults), 0.5) },
      { figure: "faults that are left, most", unit: "", value: quantile(found.map(({ faults }) => faults), 1) }
    ]
  }).pipe(Effect.orDie)
})

const bugs = [
  "retry-after-ignored", "rate-limit-counts", "deleted-is-shown", "attempts-without-end", "commit-unfenced",
  "claimed-by-the-local-clock", "deleted-stays-indexed"
]

/** What takes long, and comes to about the same each time. */
const once = (trial: Trial): Trial => {
  let isDone = false
  return {
    ...trial,
    run: Effect.suspend(() => {
      if (isDone) return Effect.succeed([])
      isDone = true
      return trial.run
    })
  }
}

export const bench: Bench = ({ simDoubles, simRuns, simSweeps }) =>
  Effect.succeed([
    speed(simRuns),
    ...[doubles(simDoubles), ...(simSweeps ? [sweep, shrunk(bugs)] : [shrunk(bugs.slice(0, 2))])].map(once)
  ])
