/**
 * `mutants`: plants known bugs one by one, and looks whether the simulator notices. A survivor needs a verdict. In a
 * time box it looks at those that a seed puts first, and says at which it has not looked.
 */
import { Data, Duration, Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { execFile } from "node:child_process"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { type EngineName, engineNames } from "../Engines.ts"
import { root } from "../Keyed.ts"
import { duration } from "./Flags.ts"
import { load, type Place } from "./Harness.ts"
import { baseOf, commit } from "./Identity.ts"
import { type Mutant, planted, readMutants, remember } from "./Mutant.ts"
import { finish, json, paint, withProgress, WrongUsage } from "./Output.ts"
import { readPlans, shelves } from "./Scenario.ts"

const flags = {
  ids: Argument.String("id").pipe(Argument.withDescription("Which; all of them, unless given"), Argument.atLeast(0)),
  engine: Flag.Literals("engine", [...engineNames, "scenario", "corpus"]).pipe(
    Flag.withDescription("Only those that this engine has to find"),
    Flag.optional
  ),
  for: duration("Stop after so long (60s, 5m), and say what was not looked at").pipe(Flag.optional),
  seed: Flag.String("seed").pipe(
    Flag.withDescription("What says whose turn it is first when there is not time for all; the commit, unless given"),
    Flag.optional
  ),
  parallel: Flag.Int("parallel").pipe(
    Flag.withDescription("How many at a time; as many as there are cores, unless given"),
    Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_024 }))),
    Flag.withDefault(availableParallelism())
  ),
  remember: Flag.Boolean("remember").pipe(
    Flag.withDescription("Write down which run found each, so that it is tried first from then on"),
    Flag.withDefault(false)
  ),
  json
}

type Options = Command.Command.Config.Infer<typeof flags>

export const mutantsCommand = (place: Place) =>
  Command.make("mutants", flags, (options) => mutants(place, options)).pipe(
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
  /** The plans that turned red, where plans have to. */
  readonly plans: ReadonlyArray<string>
  readonly breaks: string
  readonly seconds: number
}

/** What a simulation of a copy has found. */
interface Outcome {
  readonly invariant: string | null
  readonly runs: number
  readonly plans?: ReadonlyArray<string>
}

/** A copy could not be simulated: the patch does not even run. */
class NoAnswer extends Data.TaggedError("NoAnswer")<{ readonly message: string }> {}

const mutants = Effect.fnUntraced(function*(place: Place, options: Options) {
  const { engine, ids, json, parallel } = options
  const all = yield* readMutants(place)
  const unknown = ids.filter((id) => !all.some((mutant) => mutant.id === id))
  if (unknown.length > 0) return yield* new WrongUsage({ message: `there is no planted bug ${unknown.join(", ")}` })
  const waiting = yield* plansByBug(place, all)
  const chosen = all.filter((mutant) =>
    (ids.length === 0 || ids.includes(mutant.id)) && (Option.isNone(engine) || engine.value === mutant.engine))
  if (chosen.length === 0) {
    const named = ids.length === 0 ? "" : ` among ${ids.join(", ")}`
    return yield* new WrongUsage({ message: `there is no planted bug${named} for the ${Option.getOrElse(engine, () => "simulator")}` })
  }
  const seed = Option.getOrElse(options.seed, () => baseOf(commit(place)))
  const isBoxed = Option.isSome(options.for)
  const end = performance.now() + Duration.toMillis(Option.getOrElse(options.for, () => Duration.infinity))
  const reports: Array<MutantReport> = []
  const conclude = Effect.suspend(() => {
    const sorted = chosen.flatMap(({ id }) => reports.filter((report) => report.id === id))
    const unseen = chosen.map(({ id }) => id).filter((id) => !reports.some((report) => report.id === id))
    const data = { commit: commit(place), seed: isBoxed ? seed : null, mutants: sorted, unseen }
    const isOver = isBoxed && performance.now() >= end
    const lines = [...sorted.map(line), "", ...unseenLines(unseen, seed, isOver), totals(sorted, chosen.length)]
    const isRed = sorted.some(({ ok }) => !ok) || (unseen.length > 0 && !isBoxed)
    // Who has looked at nothing has found nothing out.
    return finish(json, data, lines, isRed ? 1 : sorted.length === 0 ? 3 : 0)
  })
  yield* Effect.forEach(isBoxed ? turns(chosen, seed) : chosen, Effect.fnUntraced(function*(mutant) {
    // Without a canary nobody would know that the gate can turn red at all.
    const leftMs = isCanary(mutant) ? Infinity : end - performance.now()
    if (leftMs <= 0) return
    const report = yield* judged(place, mutant, waiting.get(mutant.id) ?? []).pipe(
      Effect.scoped,
      Effect.timeoutOption(Duration.millis(leftMs))
    )
    if (Option.isSome(report)) reports.push(report.value)
  }), { concurrency: parallel, discard: true }).pipe(
    withProgress(() => totals(reports, chosen.length)),
    Effect.onInterrupt(() => conclude)
  )
  if (options.remember) yield* remember(place, reports)
  yield* conclude
})

/** Shows that a promise that nobody looks at is missed. */
const isCanary = ({ blind }: Mutant): boolean => blind !== undefined

/** The canaries, and then everything else in an order of the seed's. */
const turns = (mutants: ReadonlyArray<Mutant>, seed: string): ReadonlyArray<Mutant> => [
  ...mutants.filter(isCanary),
  ...root(seed).of("mutants").shuffled(mutants.filter((mutant) => !isCanary(mutant)))
]

/** The plans that wait for each planted bug: there has to be one for each that a plan has to find, and the other way. */
const plansByBug = Effect.fnUntraced(function*(place: Place, all: ReadonlyArray<Mutant>) {
  const harness = yield* Effect.promise(() => load(place.module))
  const found = new Map<string, Array<string>>()
  for (const shelf of shelves) {
    for (const { bug, name } of yield* readPlans(place, shelf, harness)) {
      if (bug === undefined) continue
      const engine = shelf === "corpus" ? "corpus" : "scenario"
      if (!all.some((mutant) => mutant.id === bug && mutant.engine === engine)) {
        const message = `${name} waits for the planted bug ${bug}, which is not there for the ${engine}`
        return yield* new WrongUsage({ message })
      }
      found.set(bug, [...found.get(bug) ?? [], name])
    }
  }
  return found
})

const judged = Effect.fnUntraced(function*(place: Place, mutant: Mutant, plans: ReadonlyArray<string>) {
  const begun = performance.now()
  const { breaks, engine, id } = mutant
  const about = (outcome: Outcome, verdict: string, ok: boolean): MutantReport => ({
    id, found: outcome.invariant !== null, engine, runs: outcome.runs, verdict, ok, invariant: outcome.invariant,
    plans: outcome.plans ?? [], breaks, seconds: Number(((performance.now() - begun) / 1_000).toFixed(1))
  })
  const nothing = { invariant: null, runs: 0 }
  const folder = yield* planted(place, mutant)
  if (folder === null) return about(nothing, `does not apply: it is not exactly once in ${mutant.file}`, false)
  const byPlans = engine === "scenario" || engine === "corpus"
  if (byPlans && plans.length === 0) return about(nothing, `nothing in the ${engine} names it`, false)
  const main = join(folder, place.main)
  return yield* (byPlans ? replayed(main, engine, plans) : simulated(main, mutant, engine)).pipe(
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

/** A copy has its own simulator, in a process of its own. Every plan that waits for the bug has to break. */
const replayed = Effect.fnUntraced(function*(main: string, engine: "scenario" | "corpus", plans: ReadonlyArray<string>) {
  const { corpus, scenarios } = yield* ask(main, [engine, ...plans, "--json"], PlansAnswer)
  const found = scenarios ?? corpus ?? []
  const red = found.filter(({ verdict }) => verdict === "broke")
  const invariant = red.length < plans.length ? null : red[0]?.violations[0]?.invariant ?? null
  return { invariant, runs: found.length, plans: red.map(({ name }) => name) }
})

/** The run that found it last goes first. If it finds nothing any more, all of them are made. */
const simulated = Effect.fnUntraced(function*(main: string, mutant: Mutant, engine: EngineName) {
  const { budget, seen } = mutant
  const again = seen === undefined || seen >= budget ? null : yield* explored(main, mutant, engine, ["--only", String(seen)])
  return again !== null && again.invariant !== null ? again : yield* explored(main, mutant, engine, [])
})

const explored = Effect.fnUntraced(function*(main: string, mutant: Mutant, engine: EngineName, more: ReadonlyArray<string>) {
  const blind = (mutant.blind ?? []).flatMap((name) => ["--blind", name])
  const { errors, runs, violations } = yield* ask(main, [
    "run", "--engine", engine, "--seeds", String(mutant.budget), "--seed-base", "mutants", "--workers", "1",
    "--double", "0%", "--first", "--no-shrink", "--json", ...blind, ...more
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

const PlanAnswers = Schema.Array(Schema.Struct({
  name: Schema.String,
  verdict: Schema.String,
  violations: Schema.Array(Schema.Struct({ invariant: Schema.String }))
}))

const PlansAnswer = Schema.Struct({ scenarios: Schema.optionalKey(PlanAnswers), corpus: Schema.optionalKey(PlanAnswers) })

/** The longest that one planted bug may take. */
const timeoutMs = 20 * 60_000

const ask = <S extends Schema.ConstraintDecoder<unknown>>(main: string, args: ReadonlyArray<string>, answer: S) =>
  Effect.callback<S["Type"], NoAnswer>((resume) => {
    const options = { maxBuffer: 64 * 1_024 * 1_024, timeout: timeoutMs, cwd: join(main, "..") }
    const child = execFile(process.execPath, [main, ...args], options, (error, stdout, stderr) => {
      if (error?.killed === true) return resume(Effect.fail(new NoAnswer({ message: `not within ${timeoutMs / 60_000} minutes` })))
      const said = Option.liftThrowable((text: string): unknown => JSON.parse(text))(stdout)
      const decoded = Option.flatMap(said, Schema.decodeUnknownOption(answer))
      if (Option.isSome(decoded)) return resume(Effect.succeed(decoded.value))
      const last = stderr.trim().split("\n").find((line) => line.includes("Error")) ?? error?.message ?? "no answer"
      resume(Effect.fail(new NoAnswer({ message: last.trim() })))
    })
    return Effect.sync(() => child.kill())
  })

const line = ({ breaks, engine, id, invariant, ok, plans, runs, seconds, verdict }: MutantReport): string => {
  const state = (ok ? paint.green : paint.red)(ok ? "ok  " : "RED ")
  const effort = `${String(runs).padStart(7)} runs ${seconds.toFixed(1).padStart(6)} s`
  const red = plans.length === 0 ? "" : `: ${plans.join(", ")} breaks ${invariant ?? "nothing"}`
  return `${state}${id.padEnd(36)} ${engine.padEnd(8)} ${effort}  ${verdict}${red}\n      ${paint.dim(breaks)}`
}

const unseenLines = (unseen: ReadonlyArray<string>, seed: string, isOver: boolean): ReadonlyArray<string> =>
  unseen.length === 0 ? [] : [
    `not looked at: ${unseen.join(", ")}`,
    ...(isOver ? [`The time was up. Whose turn it was is drawn from ${seed}; another seed looks at others first.`] : [])
  ]

const totals = (reports: ReadonlyArray<MutantReport>, all: number): string => {
  const found = reports.filter(({ found }) => found).length
  const red = reports.filter(({ ok }) => !ok).length
  const looked = reports.length === all ? `${all}` : `${reports.length} that were looked at (there are ${all})`
  const others = reports.length - found - red
  const meant = others === 0 ? "" : `, ${others} not found and not meant to be`
  const words = `${found} of ${looked} planted bugs found${meant}, ${red} not as they should be`
  return red === 0 ? paint.green(words) : paint.red(words)
}
