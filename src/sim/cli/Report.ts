/** What a campaign says at its end: as data, and for people. */
import { boundOf, type Mismatch, type Quota, type Reached, type Tally } from "../Campaign.ts"
import type { FaultKind } from "../Faults.ts"
import type { Spec } from "../Run.ts"
import type { Harness } from "./Harness.ts"
import { type Parting, partingWords } from "./Repeat.ts"

/** One bug, and how to see it again. */
export interface ViolationReport {
  readonly invariant: string
  readonly promise: string
  readonly detail: string
  /** How many runs broke this invariant first. */
  readonly runs: number
  readonly index: number
  readonly seed: string
  readonly engine: string
  /** Command lines, the best first. */
  readonly repeat: ReadonlyArray<string>
  /** What is left of it, when it was shrunk. */
  readonly shrunk: {
    readonly faults: number
    readonly deviations: number
    readonly operations: number
    readonly runs: number
  } | null
  readonly files: { readonly plan: string; readonly text: string; readonly page: string } | null
  /** Why its files could not be written. */
  readonly unwritten: string | null
}

export interface MismatchReport extends Mismatch {
  /** Where two traces of it part. Null: when looked at, they did not. */
  readonly parted: Parting | null
}

export interface Report {
  readonly commit: string | null
  readonly engine: string
  readonly seedBase: string
  readonly threads: number
  readonly runs: number
  /** The engine had no more. */
  readonly exhausted: boolean
  readonly interrupted: boolean
  readonly failed: number
  readonly bound: string
  /** The run that was asked for and not made: there are not so many, or the time was up. */
  readonly unmade: number | null
  readonly violations: ReadonlyArray<ViolationReport>
  readonly errors: ReadonlyArray<{
    readonly seed: string
    readonly index: number
    readonly message: string
    /** The command line that makes it again. */
    readonly repeat: string
  }>
  readonly doubles: number
  readonly mismatches: ReadonlyArray<MismatchReport>
  readonly seconds: number
  readonly runsPerSecond: number
  readonly virtualHours: number
  readonly virtualOverWall: number
  readonly steps: number
  readonly states: number
  readonly faults: Readonly<Record<string, number>>
  readonly faultsUnseen: ReadonlyArray<FaultKind>
  readonly outcomes: Readonly<Record<string, number>>
  readonly quotas: ReadonlyArray<Reached>
}

export interface ReportOptions {
  readonly tally: Tally
  readonly harness: Harness
  readonly commit: string | null
  readonly engine: string
  readonly seedBase: string
  readonly threads: number
  readonly seconds: number
  readonly interrupted: boolean
  readonly violations: ReadonlyArray<ViolationReport>
  readonly mismatches: ReadonlyArray<MismatchReport>
  /** The one run that was asked for. Null: all of them. */
  readonly only: number | null
  readonly again: (spec: Spec, index: number) => string
}

export const report = ({ again, harness, only, seconds, tally, ...rest }: ReportOptions): Report => ({
  ...rest,
  unmade: only === null || tally.last >= only ? null : only,
  runs: tally.runs,
  exhausted: tally.exhausted,
  failed: tally.failed,
  bound: boundOf(tally),
  errors: tally.breakdowns
    .toSorted((one, other) => one.index - other.index)
    .slice(0, errorsMax)
    .map(({ index, message, spec }) => ({ seed: spec.seed, index, message, repeat: again(spec, index) })),
  doubles: tally.doubles,
  seconds: rounded(seconds, 3),
  runsPerSecond: rounded(tally.runs / Math.max(seconds, 0.001), 1),
  virtualHours: rounded(tally.virtualMs / 3_600_000, 3),
  virtualOverWall: Math.round(tally.virtualMs / 1_000 / Math.max(seconds, 0.001)),
  steps: tally.steps,
  states: tally.states.size,
  faults: tally.faultCounts,
  faultsUnseen: tally.faultsUnseen,
  outcomes: tally.outcomeCounts,
  // They are about the swarm: other engines look elsewhere.
  quotas: tally.quotas(rest.engine === "swarm" ? harness.quotas : harness.quotas.map(notDue))
})

const errorsMax = 5

const notDue = (quota: Quota): Quota => ({ ...quota, perThousand: 0 })

const rounded = (value: number, digits: number): number => Number(value.toFixed(digits))

/** 0: all held. 1: an invariant failed. 3: the harness cannot be trusted, or has not looked where it should. */
export const exitCodeOf = ({ errors, failed, interrupted, mismatches, quotas, runs, unmade }: Report): number => {
  if (failed > 0) return 1
  if (errors.length > 0 || mismatches.length > 0 || unmade !== null || runs === 0) return 3
  return !interrupted && quotas.some(({ verdict }) => verdict === "missed") ? 3 : 0
}

export interface Paint {
  readonly red: (text: string) => string
  readonly green: (text: string) => string
  readonly dim: (text: string) => string
  readonly bold: (text: string) => string
}

export const lines = (report: Report, paint: Paint): ReadonlyArray<string> => [
  ...report.violations.flatMap((violation) => [...violationLines(violation, report.commit, paint), ""]),
  ...report.errors.flatMap(({ message, repeat, seed }) =>
    [paint.red(`The simulation itself failed at seed ${seed}`), indented(message), `  repeat: ${repeat}`, ""]),
  ...report.mismatches.flatMap((mismatch) => [...mismatchLines(mismatch, paint), ""]),
  ...table("faults", Object.entries(report.faults).map(([kind, times]) => [kind, number(times)])),
  ...(report.faultsUnseen.length === 0 ? [] : [paint.dim(`never struck: ${report.faultsUnseen.join(", ")}`)]),
  "",
  ...table("states to reach", report.quotas.map((quota) => quotaRow(quota, paint))),
  "",
  ...table("operations ended as", Object.entries(report.outcomes).map(([outcome, times]) => [outcome, number(times)])),
  "",
  ...totals(report, paint)
]

const totals = (report: Report, paint: Paint): ReadonlyArray<string> => {
  const { bound, commit, doubles, engine, exhausted, failed, mismatches, runs, seedBase, states, unmade } = report
  const whole = report.interrupted ? ", interrupted" : exhausted ? ", all there are" : ""
  const time = `${report.seconds.toFixed(1)} s on ${plural(report.threads, "thread")}`
  const pace = `${number(report.virtualOverWall)} times as fast as time`
  return [
    `${plural(runs, "run")} of ${engine} in ${time}${whole}: ${report.runsPerSecond} a second`,
    `${report.virtualHours} virtual hours (${pace}), ${number(states)} distinct states`,
    `${number(doubles)} runs done twice, ${mismatches.length} of them unlike`,
    paint.dim(`commit ${commit ?? "unknown"}, seed base ${seedBase}`),
    ...(unmade === null ? [] : [paint.red(`run ${unmade} was not made: ${exhausted ? "there are not so many" : "the time was up"}`)]),
    failed > 0 || runs === 0 ? paint.red(bound) : paint.green(bound)
  ]
}

const violationLines = (violation: ViolationReport, commit: string | null, paint: Paint): ReadonlyArray<string> => {
  const { detail, engine, files, index, invariant, promise, repeat, runs, seed, shrunk, unwritten } = violation
  return [
    paint.red(paint.bold(`BROKEN ${invariant}`)),
    ...(promise === "" ? [] : [`  ${promise}`]),
    `  ${detail}`,
    `  seed ${seed} (${engine}, run ${index}; ${plural(runs, "run")} broke this), commit ${commit ?? "unknown"}`,
    ...(shrunk === null ? [] : [`  smallest: ${shrunkWords(shrunk)}`]),
    ...repeat.map((line) => `  repeat: ${line}`),
    ...(files === null ? [] : [`  look:   ${files.page}, ${files.text}`]),
    ...(unwritten === null ? [] : [paint.red(`  not written down: ${unwritten}`)])
  ]
}

const shrunkWords = ({ deviations, faults, operations, runs }: NonNullable<ViolationReport["shrunk"]>): string => {
  const sizes = [plural(faults, "fault"), plural(deviations, "deviation"), plural(operations, "operation")]
  return `${sizes.join(", ")} (after ${plural(runs, "run")})`
}

export const plural = (count: number, noun: string): string => `${number(count)} ${noun}${count === 1 ? "" : "s"}`

const mismatchLines = ({ parted, spec }: MismatchReport, paint: Paint): ReadonlyArray<string> => [
  paint.red(`UNLIKE ${spec.seed} (${spec.engine})`),
  ...partingWords(parted).map((words) => `  ${words}`)
]

const quotaRow = ({ count, due, state, verdict }: Reached, paint: Paint): ReadonlyArray<string> => {
  if (verdict === "missed") return [paint.red(state), paint.red(`${number(count)}, but ${number(due)} were due`)]
  return [state, verdict === "not due" ? paint.dim("0, none due yet") : number(count)]
}

export const table = (title: string, rows: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  if (rows.length === 0) return [`${title}: none`]
  const width = Math.max(...rows.map(([first = ""]) => first.length)) + 2
  return [`${title}:`, ...rows.map(([first = "", ...others]) => `  ${first.padEnd(width)}${others.join("  ")}`)]
}

const number = (value: number): string => value.toLocaleString("en")

const indented = (text: string): string => text.split("\n").map((line) => `  ${line}`).join("\n")
