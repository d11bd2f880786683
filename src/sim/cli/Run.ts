/** `run`: many runs on all cores, and what they came to. */
import { Duration, Effect, Option, Result, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { availableParallelism } from "node:os"
import { distinct, type Finding, type Mismatch, signatureOf, Tally } from "../Campaign.ts"
import { engine, engineNames, engineWords } from "../Engines.ts"
import type { Spec } from "../Run.ts"
import { defaultFolder, prepare, promisesOf, writeFailure } from "./Artifacts.ts"
import { explore } from "./Explore.ts"
import { duration, knownInvariants, positive, word } from "./Flags.ts"
import { type Harness, load, type Place } from "./Harness.ts"
import { baseOf, byNumber, byPlan, bySeed, commit } from "./Identity.ts"
import { finish, json, paint, withProgress, WrongUsage } from "./Output.ts"
import * as Pool from "./Pool.ts"
import { partingOf } from "./Repeat.ts"
import { exitCodeOf, lines, type MismatchReport, report, type ViolationReport } from "./Report.ts"
import { onStore, quotasOn, store } from "./Store.ts"

/** How long the search for a smaller failure may take. */
const shrinkSeconds = 10
/** How many mismatches are looked into. */
const lookedIntoMax = 3

const share = Flag.String("double").pipe(
  Flag.withDescription("The share of runs that are done twice, to see that both are alike"),
  Flag.filterMap(
    (text) => {
      const [, count] = /^(\d+(?:\.\d+)?)%$/.exec(text) ?? []
      return count === undefined || Number(count) > 100 ? Option.none() : Option.some(Number(count) / 100)
    },
    (text) => `"${text}" is no share such as 5%`
  ),
  Flag.withDefault(0.05)
)

const flags = {
  seeds: Flag.Int("seeds").pipe(
    Flag.withDescription("The most runs. 1,000 unless this or --for is given; a sweep ends by itself"),
    Flag.withSchema(positive),
    Flag.optional
  ),
  for: duration("How long to go on: 60s, 5m, 500ms").pipe(Flag.optional),
  engine: Flag.Literals("engine", engineNames).pipe(
    Flag.withDescription(engineNames.map((name) => `${name}: ${engineWords[name]}`).join(". ")),
    Flag.withDefault("swarm" as const)
  ),
  store,
  workers: Flag.Int("workers").pipe(
    Flag.withDescription("How many threads simulate; as many as there are cores, unless given"),
    Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_024 }))),
    Flag.withDefault(availableParallelism())
  ),
  seedBase: Flag.String("seed-base").pipe(
    Flag.withDescription("What all seeds are made from; the commit, unless given"),
    Flag.withSchema(word),
    Flag.optional
  ),
  double: share,
  first: Flag.Boolean("first").pipe(Flag.withDescription("End with the first failure"), Flag.withDefault(false)),
  only: Flag.Int("only").pipe(
    Flag.withDescription("Make only the run of this number, from 0, and those that it follows from"),
    Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000_000 }))),
    Flag.optional
  ),
  shrink: Flag.Boolean("shrink").pipe(
    Flag.withDescription("Make failures small and write them down; --no-shrink only counts them"),
    Flag.withDefault(true)
  ),
  blind: Flag.String("blind").pipe(
    Flag.withDescription("An invariant that is not looked at, to show that somebody would miss it"),
    Flag.atLeast(0)
  ),
  out: Flag.String("out").pipe(
    Flag.withDescription("The folder for what failures leave behind"),
    Flag.withDefault(defaultFolder)
  ),
  json
}

type Options = Command.Command.Config.Infer<typeof flags>

export const runCommand = (place: Place) =>
  Command.make("run", flags, (options) => run(place, options).pipe(Effect.scoped)).pipe(
    Command.withDescription("Simulate many runs on all cores")
  )

const run = Effect.fnUntraced(function*(usual: Place, options: Options) {
  const place = yield* onStore(usual, options.store)
  const harness = quotasOn(yield* Effect.promise(() => load(usual.module)), options.store)
  yield* knownInvariants(harness, options.blind)
  if (options.out !== defaultFolder) yield* prepare(options.out)
  const pool = yield* Pool.make(place.module, options.workers, place.patienceMs)
  const found = commit(place)
  const base = Option.getOrElse(options.seedBase, () => baseOf(found))
  const limit = Option.getOrElse(options.seeds, () =>
    Option.isSome(options.for) || options.engine === "sweep" ? Infinity : 1_000)
  const begun = performance.now()
  const end = begun + Duration.toMillis(Option.getOrElse(options.for, () => Duration.infinity))
  const tally = new Tally()
  const only = Option.getOrNull(options.only)
  if (only !== null && only >= limit) return yield* new WrongUsage({ message: `there is no run ${only} of ${limit}: the first is 0` })
  const elapsed = () => (performance.now() - begun) / 1_000
  const tell = (interrupted: boolean, violations: ReadonlyArray<ViolationReport>, mismatches: ReadonlyArray<MismatchReport>) => {
    const { engine, workers: threads } = options
    const last = report({
      tally, harness, commit: found, engine, seedBase: base, threads, seconds, interrupted, violations, mismatches, only,
      again: (spec, index) => againBy(place, spec, base, index)
    })
    return finish(options.json, last, lines(last, paint), exitCodeOf(last))
  }
  /** What is known without any thread: of an interrupted campaign, or of one that has lost a thread. */
  const tellBare = (interrupted: boolean) =>
    Effect.suspend(() => tell(interrupted, bare(place, harness, tally, base), tally.mismatches.map(unseen)))
  let seconds = 0
  const explored = Effect.sync(() => {
    seconds = elapsed()
  })
  const isWhole = yield* explore({
    pool, tally, base,
    wave: engine(options.engine, base),
    runs: limit,
    enough: () => performance.now() >= end,
    double: options.double,
    first: options.first,
    only,
    blind: options.blind
  }).pipe(
    withProgress(() => progress(tally, elapsed())),
    Effect.ensuring(explored),
    Effect.onInterrupt(() => tellBare(true))
  )
  if (!isWhole) return yield* tellBare(false)
  const look = Effect.all([
    options.shrink
      ? smallest(place, harness, pool, tally, { base, folder: options.out })
      : Effect.sync(() => bare(place, harness, tally, base)),
    lookInto(pool, tally)
  ])
  const looked = yield* look.pipe(
    Effect.catchTag("ThreadLost", ({ message, spec }) =>
      Effect.sync(() => {
        const index = tally.failuresByInvariant.flatMap(({ first }) => first).find((one) => one.spec === spec)?.index ?? -1
        tally.breakdowns.push({ index, spec: spec ?? { seed: base, engine: "swarm" }, message })
        return null
      })),
    withProgress(() => `looking into ${tally.failed} failures`),
    Effect.onInterrupt(() => tellBare(true))
  )
  yield* looked === null ? tellBare(false) : tell(false, ...looked)
})

const unseen = (mismatch: Mismatch): MismatchReport => ({ ...mismatch, parted: null })

const progress = ({ failed, runs, virtualMs }: Tally, seconds: number): string =>
  [
    `${runs.toLocaleString("en")} runs`,
    `${(runs / Math.max(seconds, 0.001)).toFixed(0)} a second`,
    `${(virtualMs / 3_600_000).toFixed(1)} virtual hours`,
    failed === 0 ? "nothing broken" : paint.red(`${failed} broken`),
    `${seconds.toFixed(0)} s`
  ].join(" · ")

/** What broke, as it was found. */
const bare = (place: Place, harness: Harness, tally: Tally, base: string): ReadonlyArray<ViolationReport> =>
  tally.failuresByInvariant.map(({ count, first: [failure], invariant }) => {
    const { detail, index, spec } = failure!
    return {
      invariant, promise: promisesOf(harness).get(invariant) ?? "", detail, runs: count, index, seed: spec.seed,
      engine: spec.engine, repeat: [againBy(place, spec, base, index)], shrunk: null, files: null, unwritten: null
    }
  })

const againBy = (place: Place, spec: Spec, base: string, index: number): string =>
  bySeed(place, spec) ?? byNumber(place, { base, engine: spec.engine, index, blind: spec.blind })

/** What broke, each bug once, as small as it gets, and written down. */
const smallest = Effect.fnUntraced(function*(
  place: Place,
  harness: Harness,
  pool: Pool.Pool,
  tally: Tally,
  { base, folder }: { readonly base: string; readonly folder: string }
) {
  const failures = tally.failuresByInvariant.flatMap(({ first }) => first)
  const searches = failures.map(({ invariant, spec }) =>
    ({ _tag: "Shrink", spec, invariant, runs: 2_000, seconds: shrinkSeconds }) as const)
  const shrunk = yield* pool.each(searches)
  const findings = distinct(failures.map((failure, index): Finding => {
    const { invariant } = failure
    const smaller = shrunk[index] ?? null
    return { signature: smaller === null ? invariant : signatureOf(invariant, smaller), failure, shrunk: smaller }
  }))
  return yield* Effect.forEach(findings, Effect.fnUntraced(function*({ failure, shrunk }) {
    const { detail, index, invariant, spec } = failure
    const count = tally.failuresByInvariant.find((one) => one.invariant === invariant)?.count ?? 1
    const again = againBy(place, spec, base, index)
    const promise = promisesOf(harness).get(invariant) ?? ""
    const known = { invariant, promise, detail, runs: count, index, seed: spec.seed, engine: spec.engine }
    if (shrunk === null) return { ...known, repeat: [again], shrunk: null, files: null, unwritten: null }
    const [whole] = yield* pool.each([{ _tag: "Run", spec: shrunk.spec, keep: { trace: true } } as const])
    // What cannot be written down was found all the same.
    const written = yield* Effect.result(writeFailure(place, harness, { invariant, shrunk, run: whole!, folder, foundBy: again }))
    const files = Result.isSuccess(written) ? written.success : null
    return {
      ...known,
      repeat: files === null ? [again] : [byPlan(place, files.plan), again],
      unwritten: Result.isFailure(written) ? written.failure.message : null,
      shrunk: {
        faults: shrunk.spec.faults?.length ?? shrunk.run.fired.length,
        deviations: shrunk.spec.deviations?.length ?? 0,
        operations: shrunk.run.shape.operations,
        runs: shrunk.runs
      },
      files
    }
  }))
})

/** Where the histories of a seed part, of the first seeds that have more than one. */
const lookInto = Effect.fnUntraced(function*(pool: Pool.Pool, { mismatches }: Tally) {
  const parted = yield* Effect.forEach(mismatches.slice(0, lookedIntoMax), ({ spec }) => partingOf(pool, spec))
  return mismatches.map((mismatch, index): MismatchReport => ({ ...mismatch, parted: parted[index] ?? null }))
})
