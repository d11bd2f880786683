/**
 * A run written down: faults and schedule deviations in logical coordinates, and what is expected of it. Unlike a seed
 * it survives changes of the code around it, and it says when it no longer does.
 */
import { Result, Schema, Struct } from "effect"
import { decodeBody } from "../domain/Decode.ts"
import { FailureClass } from "../domain/Failure.ts"
import { Outcome } from "../domain/Operation.ts"
import type { Problem } from "../domain/Problem.ts"
import { parse } from "../domain/StrictJson.ts"
import { type Fault, type FaultKind, faultKinds, nameOf } from "./Faults.ts"
import type { Run, Spec } from "./Run.ts"
import type { Deviation } from "./Schedule.ts"

const FaultKindName = Schema.Literals(Object.keys(faultKinds) as ReadonlyArray<FaultKind>)
const Count = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 }))
const Positive = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000_000 }))
const Rate = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))

/** As an operation ends: one field for each way. */
const Outcomes = Schema.Struct(
  Object.fromEntries([...Outcome.literals, ...FailureClass.literals].map((name) => [name, Schema.optionalKey(Count)])) as {
    readonly [Name in Outcome | FailureClass]: Schema.optionalKey<typeof Count>
  }
)

const PointEntry = { actor: Schema.String, label: Schema.String, index: Count }

const FaultEntry = Schema.Struct({ kind: FaultKindName, ...PointEntry, like: Schema.optionalKey(Schema.Struct(PointEntry)) })

const DeviationEntry = Schema.Struct({ head: Schema.String, chosen: Schema.String })

const Rates = Schema.Struct(
  Object.fromEntries(Object.keys(faultKinds).map((kind) => [kind, Schema.optionalKey(Rate)])) as {
    readonly [Kind in FaultKind]: Schema.optionalKey<typeof Rate>
  }
)

const ShapeEntry = Schema.Struct({
  workers: Count,
  apis: Positive,
  workspaces: Positive,
  lanes: Positive,
  operations: Positive,
  leaseMs: Positive,
  providerMs: Positive,
  chaosMs: Positive,
  budget: Count,
  rates: Rates
}).mapFields(Struct.map(Schema.optionalKey))

const SpecEntry = Schema.Struct({
  seed: Schema.String,
  engine: Schema.Literals(["swarm", "pct", "sweep", "pair", "scenario", "plan"]),
  shape: Schema.optionalKey(ShapeEntry),
  faults: Schema.optionalKey(Schema.Array(FaultEntry)),
  deviations: Schema.optionalKey(Schema.Array(DeviationEntry)),
  blind: Schema.optionalKey(Schema.Array(Schema.String))
})

export const Plan = Schema.Struct({
  version: Schema.Literal(1),
  name: Schema.String.check(
    Schema.isPattern(/^[a-z0-9][a-z0-9-]{0,79}$/, { message: "must be words joined by dashes" })
  ),
  /** For people: what happens here, and why it matters. */
  comment: Schema.String,
  spec: SpecEntry,
  /** The invariants that this is about. All others have to hold as well. */
  holds: Schema.optionalKey(Schema.Array(Schema.String)),
  /** Named states that the run has to pass through: without them it proves nothing. */
  reaches: Schema.optionalKey(Schema.Array(Schema.String)),
  /** How many operations have to end in which way. */
  outcomes: Schema.optionalKey(Outcomes),
  /** The invariant that broke where this was found, or that the planted bug breaks. */
  breaks: Schema.optionalKey(Schema.String),
  /** The planted bug that has to turn this red. */
  bug: Schema.optionalKey(Schema.String)
})
export type Plan = typeof Plan.Type

const decode = decodeBody(Plan)

/** The plan in a file, or everything that is wrong with it. */
export const read = (text: string): Result.Result<Plan, ReadonlyArray<Problem>> =>
  Result.flatMap(parse(text), (json) => Result.mapError(decode(json), ({ errors }) => errors))

/** One line for each problem of a file. */
export const problemLines = (problems: ReadonlyArray<Problem>): ReadonlyArray<string> =>
  problems.map(({ message, path }) => `${path === "" ? "the file" : path} ${message}`)

/** As a file: what belongs together on one line, so that a plan can be read and compared. */
export const print = (plan: Plan): string => {
  const { spec, ...rest } = plan
  const { deviations, faults, shape, ...plain } = spec
  const rows = (items: ReadonlyArray<Fault | Deviation>) =>
    items.length === 0 ? "[]" : `[\n${items.map((item) => `      ${JSON.stringify(item)}`).join(",\n")}\n    ]`
  const fields = [
    ...Object.entries(plain).map(([name, value]) => `    ${JSON.stringify(name)}: ${JSON.stringify(value)}`),
    ...(shape === undefined ? [] : [`    "shape": ${JSON.stringify(shape)}`]),
    ...(faults === undefined ? [] : [`    "faults": ${rows(faults)}`]),
    ...(deviations === undefined ? [] : [`    "deviations": ${rows(deviations)}`])
  ]
  const outer = Object.entries(rest).map(([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)}`)
  return `{\n${[...outer, `  "spec": {\n${fields.join(",\n")}\n  }`].join(",\n")}\n}\n`
}

/** The same run with everything that was drawn said outright: the world's size, the faults, the schedule. */
export const explicit = (run: Run): Spec => ({
  seed: run.spec.seed,
  engine: "plan",
  shape: run.shape,
  faults: run.fired,
  deviations: run.deviations,
  ...(run.spec.blind === undefined ? {} : { blind: run.spec.blind })
})

/** What came of a plan, from best to worst: each hides those before it. */
export type Verdict = "held" | "missed" | "stale" | "broke"

export interface Judgement {
  readonly verdict: Verdict
  /** One line for each thing that is not as it should be. */
  readonly findings: ReadonlyArray<string>
}

/** Holds a run against its plan. */
export const judge = (plan: Plan, run: Run): Judgement => {
  const broke = run.violations.map(({ detail, id, invariant }) => `${invariant}: ${id}: ${detail}`)
  if (broke.length > 0) return { verdict: "broke", findings: broke }
  const stale = [
    ...run.unused.faults.map((fault) => `no occasion for ${fault.kind} at ${nameOf(fault)}`),
    ...run.unused.deviations.map(({ chosen, head }) => `no occasion for ${chosen} to go before ${head}`)
  ]
  if (stale.length > 0) return { verdict: "stale", findings: stale }
  const missed = [
    ...(plan.reaches ?? []).filter((name) => !run.reached.includes(name)).map((name) => `never reached: ${name}`),
    ...Object.entries(plan.outcomes ?? {})
      .filter(([outcome, count]) => (run.outcomes[outcome] ?? 0) !== count)
      .map(([outcome, count]) => `${run.outcomes[outcome] ?? 0} of ${count} ended as ${outcome}`)
  ]
  return { verdict: missed.length > 0 ? "missed" : "held", findings: missed }
}

/** Names in a plan that nobody answers to: a plan that waits for them would wait for ever. */
export const unknownNames = (
  { breaks, holds = [], reaches = [] }: Plan,
  known: { readonly invariants: ReadonlyArray<string>; readonly states: ReadonlyArray<string> }
): ReadonlyArray<string> => [
  ...[...holds, ...(breaks === undefined ? [] : [breaks])]
    .filter((name) => !known.invariants.includes(name))
    .map((name) => `there is no invariant "${name}"`),
  ...reaches.filter((name) => !known.states.includes(name)).map((name) => `there is no state "${name}"`)
]
