/** `mutants`: plants known bugs one by one, and looks whether the simulator notices. A survivor needs a verdict. */
import { Data, Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { execFile } from "node:child_process"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { load, type Place } from "./Harness.ts"
import { commit } from "./Identity.ts"
import { type Mutant, planted, readMutants } from "./Mutant.ts"
import { finish, json, paint, withProgress, WrongUsage } from "./Output.ts"
import { readScenarios } from "./Scenario.ts"

export const mutantsCommand = (place: Place) =>
  Command.make("mutants", {
    ids: Argument.String("id").pipe(Argument.withDescription("Which; all of them, unless given"), Argument.atLeast(0)),
    parallel: Flag.Int("parallel").pipe(
      Flag.withDescription("How many at a time; as many as there are cores, unless given"),
      Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_024 }))),
      Flag.withDefault(availableParallelism())
    ),
    json
  }, (options) => mutants(place, options)).pipe(
    Command.withDescription("Plant known bugs in copies of the sources: each has to be found within its budget")
  )

/** What became of one planted bug. */
export interface MutantReport {
  readonly id: string
  readonly found: boolean
  readonly engine: Mutant["engine"]
  /** Runs until it was found, or all that were made. */
  readonly runs: number
  readonly verdict: string
  /** Whether that is as it should be. */
  readonly ok: boolean
  readonly invariant: string | null
  readonly breaks: string
  readonly seconds: number
}

/** What a simulation of a copy has found. */
interface Outcome {
  readonly invariant: string | null
  readonly runs: number
}

/** A copy could not be simulated: the patch does not even run. */
class NoAnswer extends Data.TaggedError("NoAnswer")<{ readonly message: string }> {}

const mutants = Effect.fnUntraced(function*(place: Place, { ids, json, parallel }: {
  readonly ids: ReadonlyArray<string>
  readonly parallel: number
  readonly json: boolean
}) {
  const harness = yield* Effect.promise(() => load(place.module))
  const all = yield* readMutants(place)
  const scenarios = yield* readScenarios(place, harness)
  const unknown = ids.filter((id) => !all.some((mutant) => mutant.id === id))
  if (unknown.length > 0) return yield* new WrongUsage({ message: `there is no planted bug ${unknown.join(", ")}` })
  const orphan = scenarios.find(({ bug }) => bug !== undefined && !all.some(({ id }) => id === bug))
  if (orphan !== undefined) {
    const message = `scenario ${orphan.name} waits for the planted bug ${orphan.bug}, which is not there`
    return yield* new WrongUsage({ message })
  }
  const chosen = all.filter(({ id }) => ids.length === 0 || ids.includes(id))
  const reports: Array<MutantReport> = []
  const conclude = Effect.suspend(() => {
    const order = new Map(chosen.map(({ id }, index) => [id, index]))
    const sorted = reports.toSorted((one, other) => order.get(one.id)! - order.get(other.id)!)
    const data = { commit: commit(place), mutants: sorted }
    const lines = [...sorted.map(line), "", totals(sorted, chosen.length)]
    return finish(json, data, lines, sorted.every(({ ok }) => ok) ? 0 : 1)
  })
  yield* Effect.forEach(chosen, (mutant) => {
    const named = scenarios.filter(({ bug }) => bug === mutant.id).map(({ name }) => name)
    return judged(place, mutant, named).pipe(Effect.map((report) => reports.push(report)), Effect.scoped)
  }, { concurrency: parallel, discard: true }).pipe(
    withProgress(() => totals(reports, chosen.length)),
    Effect.onInterrupt(() => conclude)
  )
  yield* conclude
})

const judged = Effect.fnUntraced(function*(place: Place, mutant: Mutant, scenarios: ReadonlyArray<string>) {
  const begun = performance.now()
  const { breaks, engine, id } = mutant
  const about = (outcome: Outcome, verdict: string, ok: boolean): MutantReport => ({
    id, found: outcome.invariant !== null, engine, runs: outcome.runs, verdict, ok, invariant: outcome.invariant, breaks,
    seconds: Number(((performance.now() - begun) / 1_000).toFixed(1))
  })
  const nothing = { invariant: null, runs: 0 }
  const folder = yield* planted(place, mutant)
  if (folder === null) return about(nothing, `does not apply: it is not exactly once in ${mutant.file}`, false)
  if (engine === "scenario" && scenarios.length === 0) return about(nothing, "no scenario names it", false)
  return yield* simulated(join(folder, place.main), mutant, scenarios).pipe(
    Effect.map((outcome) => about(outcome, ...verdictOf(mutant, outcome))),
    Effect.catchTag("NoAnswer", ({ message }) => Effect.succeed(about(nothing, `does not run: ${message}`, false)))
  )
})

/** What is said of it, and whether that was to be expected. */
const verdictOf = (mutant: Mutant, { invariant }: Outcome): [verdict: string, ok: boolean] => {
  const { blind, invariants = [], verdict } = mutant
  if (blind !== undefined) {
    return invariant === null ? ["unseen, as nobody looked", true] : [`seen by ${invariant}, though blind`, false]
  }
  if (verdict !== undefined) {
    return invariant === null ? [`${verdict.kind}: ${verdict.why}`, true] : [`found, though said to be ${verdict.kind}`, false]
  }
  if (invariant === null) return ["survived", false]
  if (invariants.length > 0 && !invariants.includes(invariant)) return [`found by ${invariant} instead`, true]
  return ["found", true]
}

/** A copy has its own simulator, in a process of its own. */
const simulated = Effect.fnUntraced(function*(main: string, mutant: Mutant, scenarios: ReadonlyArray<string>) {
  if (mutant.engine === "scenario") {
    const { scenarios: found } = yield* ask(main, ["scenario", ...scenarios, "--json"], ScenarioAnswer)
    const broken = found.find(({ verdict }) => verdict === "broke")
    return { invariant: broken?.violations[0]?.invariant ?? null, runs: found.length }
  }
  const { budget, engine } = mutant
  const blind = (mutant.blind ?? []).flatMap((name) => ["--blind", name])
  const { errors, runs, violations } = yield* ask(main, [
    "run", "--engine", engine, "--seeds", String(budget), "--seed-base", "mutants", "--workers", "1", "--double", "0%",
    "--first", "--no-shrink", "--json", ...blind
  ], RunAnswer)
  const [first] = violations.toSorted((one, other) => one.index - other.index)
  const [error] = errors
  if (first === undefined && error !== undefined) return yield* new NoAnswer({ message: error.message.split("\n")[0]! })
  return first === undefined ? { invariant: null, runs } : { invariant: first.invariant, runs: first.index + 1 }
})

const RunAnswer = Schema.Struct({
  runs: Schema.Int,
  violations: Schema.Array(Schema.Struct({ invariant: Schema.String, index: Schema.Int })),
  errors: Schema.Array(Schema.Struct({ message: Schema.String }))
})

const ScenarioAnswer = Schema.Struct({
  scenarios: Schema.Array(Schema.Struct({
    verdict: Schema.String,
    violations: Schema.Array(Schema.Struct({ invariant: Schema.String }))
  }))
})

/** The longest that one planted bug may take. */
const timeoutMs = 20 * 60_000

const ask = <S extends Schema.ConstraintDecoder<unknown>>(main: string, args: ReadonlyArray<string>, answer: S) =>
  Effect.callback<S["Type"], NoAnswer>((resume) => {
    const options = { maxBuffer: 64 * 1_024 * 1_024, timeout: timeoutMs, cwd: join(main, "..") }
    const child = execFile(process.execPath, [main, ...args], options, (error, stdout, stderr) => {
      const said = Option.liftThrowable((text: string): unknown => JSON.parse(text))(stdout)
      const decoded = Option.flatMap(said, Schema.decodeUnknownOption(answer))
      if (Option.isSome(decoded)) return resume(Effect.succeed(decoded.value))
      const last = stderr.trim().split("\n").find((line) => line.includes("Error")) ?? error?.message ?? "no answer"
      resume(Effect.fail(new NoAnswer({ message: last.trim() })))
    })
    return Effect.sync(() => child.kill())
  })

const line = ({ breaks, engine, id, ok, runs, seconds, verdict }: MutantReport): string => {
  const state = (ok ? paint.green : paint.red)(ok ? "ok  " : "RED ")
  const effort = `${String(runs).padStart(7)} runs ${seconds.toFixed(1).padStart(6)} s`
  return `${state}${id.padEnd(36)} ${engine.padEnd(8)} ${effort}  ${verdict}\n      ${paint.dim(breaks)}`
}

const totals = (reports: ReadonlyArray<MutantReport>, all: number): string => {
  const found = reports.filter(({ found }) => found).length
  const red = reports.filter(({ ok }) => !ok).length
  const words = `${found} of ${all} planted bugs found, ${red} not as they should be`
  return red === 0 && reports.length === all ? paint.green(words) : paint.red(words)
}
