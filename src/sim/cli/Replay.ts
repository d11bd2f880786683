/** `replay` and `shrink`: one run again, as it was or as small as it gets. */
import { Effect, Option, Result, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { engineNames } from "../Engines.ts"
import { judge } from "../Plan.ts"
import type { Run, Spec } from "../Run.ts"
import { summary, text } from "../Timeline.ts"
import { defaultFolder, prepare, prepareFile, promisesOf, writeFailure, writePage } from "./Artifacts.ts"
import { knownInvariants, word } from "./Flags.ts"
import { type Harness, load, type Place } from "./Harness.ts"
import { byPlan, bySeed, commit, remarkOn } from "./Identity.ts"
import { finish, json, paint, withProgress, WrongUsage } from "./Output.ts"
import * as Pool from "./Pool.ts"
import { exitCodes, partingOf, partingWords, readPlan, repeated } from "./Repeat.ts"
import { plural } from "./Report.ts"
import { onStore, store } from "./Store.ts"

const seed = Flag.String("seed").pipe(Flag.withDescription("A seed, as a failure prints it"), Flag.withSchema(word), Flag.optional)
const plan = Flag.String("plan").pipe(Flag.withDescription("A plan file"), Flag.optional)
const engine = Flag.Literals("engine", ["swarm", "pct"] as const).pipe(
  Flag.withDescription("What the seed was drawn for: the one in its middle, unless given"),
  Flag.optional
)

const source = { seed, plan, engine, store }
type Source = Command.Command.Config.Infer<typeof source>

export const replayCommand = (place: Place) =>
  Command.make("replay", {
    ...source,
    trace: Flag.Boolean("trace").pipe(Flag.withDescription("Print all that happened"), Flag.withDefault(false)),
    html: Flag.String("html").pipe(Flag.withDescription("Write a page about it to this file"), Flag.optional),
    json
  }, (options) => replay(place, options).pipe(Effect.scoped)).pipe(
    Command.withDescription("Repeat one run, three times: what came of it, and whether all were alike")
  )

export const shrinkCommand = (place: Place) =>
  Command.make("shrink", {
    ...source,
    invariant: Flag.String("invariant").pipe(
      Flag.withDescription("The invariant that has to stay broken; the first one, unless given"),
      Flag.optional
    ),
    seconds: Flag.Int("seconds").pipe(
      Flag.withDescription("How long to search"),
      Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 86_400 }))),
      Flag.withDefault(30)
    ),
    out: Flag.String("out").pipe(Flag.withDescription("The folder for what is found"), Flag.withDefault(defaultFolder)),
    json
  }, (options) => shrink(place, options).pipe(Effect.scoped)).pipe(
    Command.withDescription("Make a failing run as small as it gets, and write it down as a plan")
  )

interface Wanted {
  readonly spec: Spec
  readonly judged: (run: Run) => ReturnType<typeof judge>
  readonly repeat: string | null
  /** What to know before anything is concluded from it. */
  readonly remark: string | null
}

const wanted = Effect.fnUntraced(function*(place: Place, harness: Harness, { engine, plan, seed }: Source) {
  if (Option.isSome(plan) === Option.isSome(seed)) {
    return yield* new WrongUsage({ message: "give either --seed or --plan" })
  }
  if (Option.isSome(plan) && Option.isSome(engine)) {
    return yield* new WrongUsage({ message: "--engine goes with --seed: a plan has its own" })
  }
  if (Option.isSome(plan)) {
    const read = yield* readPlan(plan.value, harness)
    return { spec: read.spec, judged: (run) => judge(read, run), repeat: byPlan(place, plan.value), remark: null } satisfies Wanted
  }
  const name = Option.getOrThrow(seed)
  const [, base, many] = /^(.*)\/(sweep|pair)\/[^/]*$/.exec(name) ?? []
  if (many !== undefined && Option.isNone(engine)) {
    const again = `run --engine ${many} --seed-base ${base} --only N`
    return yield* new WrongUsage({ message: `runs of ${many} differ by their faults, not by their seed: give --plan, or "${again}"` })
  }
  const spec: Spec = { seed: name, engine: Option.getOrElse(engine, () => engineIn(name)) }
  const judged = (run: Run) => judge({ version: 1, name: "seed", comment: "", spec }, run)
  return { spec, judged, repeat: bySeed(place, spec), remark: remarkOn(name, commit(place)) } satisfies Wanted
})

/** `base/pct/17` was drawn for `pct`. */
const engineIn = (seed: string): "swarm" | "pct" =>
  engineNames.find((name) => seed.split("/").includes(name)) === "pct" ? "pct" : "swarm"

const replay = Effect.fnUntraced(function*(usual: Place, options: Source & {
  readonly trace: boolean
  readonly html: Option.Option<string>
  readonly json: boolean
}) {
  const place = yield* onStore(usual, options.store)
  const harness = yield* Effect.promise(() => load(usual.module))
  const { judged, remark, repeat, spec } = yield* wanted(place, harness, options)
  if (Option.isSome(options.html)) yield* prepareFile(options.html.value)
  const pool = yield* Pool.make(place.module, 2, place.patienceMs)
  const isTraced = options.trace || Option.isSome(options.html)
  const { isOne, run } = yield* repeated(pool, spec, { trace: isTraced })
  const parted = isOne ? [] : partingWords(yield* partingOf(pool, spec))
  if (Option.isSome(options.html)) yield* writePage(place, harness, run, options.html.value, repeat)
  const { findings, verdict } = judged(run)
  const data = { ...factsOf(run), commit: commit(place), verdict, findings, parted, remark, repeat }
  const broken = run.violations.map((one) => ({ ...one, promise: promisesOf(harness).get(one.invariant) ?? "" }))
  const lines = [
    // A plan that has lost its meaning has shown nothing, whatever held.
    ...(verdict === "broke" ? [] : findings.map((finding) => paint.red(`${verdict.padEnd(8)}${finding}`))),
    ...(options.trace ? [text(run, { promises: promisesOf(harness) })] : summary(run, { broken })),
    ...parted.map((line) => paint.red(line)),
    paint.dim(`commit  ${data.commit ?? "unknown"}`),
    ...(remark === null ? [] : [paint.red(`note    ${remark}`)]),
    ...(repeat === null ? [] : [`repeat  ${repeat}`]),
    ...(Option.isSome(options.html) ? [`look    ${options.html.value}`] : [])
  ]
  const code = exitCodes[verdict]
  yield* finish(options.json, data, lines, code === 0 && parted.length > 0 ? 3 : code)
})

/** What is known of a run, without its trace. */
export const factsOf = (run: Run) => {
  const { fired, hash, outcomes, reached, shape, spec, steps, unused, violations, virtualMs } = run
  const { engine, seed } = spec
  return { seed, engine, traceHash: hash, violations, steps, virtualMs, fired, unused, reached, outcomes, shape }
}

const shrink = Effect.fnUntraced(function*(usual: Place, options: Source & {
  readonly invariant: Option.Option<string>
  readonly seconds: number
  readonly out: string
  readonly json: boolean
}) {
  const place = yield* onStore(usual, options.store)
  const harness = yield* Effect.promise(() => load(usual.module))
  const { remark, repeat, spec } = yield* wanted(place, harness, options)
  yield* knownInvariants(harness, Option.toArray(options.invariant))
  if (options.out !== defaultFolder) yield* prepare(options.out)
  const pool = yield* Pool.make(place.module, 1, place.patienceMs)
  const thread = pool.threads[0]!
  const first = yield* thread.ask({ _tag: "Run", spec, keep: {} })
  const invariant = Option.getOrElse(options.invariant, () => first.violations[0]?.invariant ?? "")
  const { seconds } = options
  const shrunk = yield* thread.ask({ _tag: "Shrink", spec, invariant, runs: 100_000, seconds }).pipe(
    withProgress(() => "looking for less that breaks the same")
  )
  if (shrunk === null) {
    const [other] = first.violations
    const words = other === undefined ? "nothing broke" : `${other.invariant} broke, not ${invariant}`
    const lines = [words, ...(remark === null ? [] : [paint.red(remark)])]
    return yield* finish(options.json, { ...factsOf(first), remark, shrunk: null }, lines, other === undefined ? 0 : 1)
  }
  const run = yield* thread.ask({ _tag: "Run", spec: shrunk.spec, keep: { trace: true } })
  // What cannot be written down was found all the same.
  const written = yield* Effect.result(writeFailure(place, harness, {
    invariant, shrunk, run, folder: options.out, foundBy: repeat ?? `${spec.engine} of ${spec.seed}`
  }))
  const files = Result.isSuccess(written) ? written.success : null
  const unwritten = Result.isFailure(written) ? written.failure.message : null
  const { finished, from, isPlan, runs } = shrunk
  const broken = run.violations.map((one) => ({ ...one, promise: promisesOf(harness).get(one.invariant) ?? "" }))
  const faults = shrunk.spec.faults?.length ?? run.fired.length
  const deviations = shrunk.spec.deviations?.length ?? 0
  const before = `${plural(from.faults, "fault")} and ${plural(from.deviations, "deviation")}`
  const data = { ...factsOf(run), invariant, isPlan, finished, runs, from, faults, deviations, files, unwritten }
  yield* finish(options.json, data, [
    ...summary(run, { broken }),
    isPlan
      ? `shrunk  from ${before} to ${faults} and ${deviations}, in ${runs} runs`
      : "shrunk  not at all: only the seed repeats it, faults and deviations written down do not",
    ...(finished ? [] : ["        there was no time to look for less"]),
    paint.dim(`commit  ${commit(place) ?? "unknown"}`),
    ...(files === null
      ? [paint.red(`not written down: ${unwritten}`)]
      : [`repeat  ${byPlan(place, files.plan)}`, `look    ${files.page}, ${files.text}`])
  ], 1)
})
