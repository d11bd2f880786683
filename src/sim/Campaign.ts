/**
 * What many runs came to. Everything is added up in a way that does not depend on their order, so that a report says
 * the same however many threads there were.
 */
import { type FaultKind, faultKinds } from "./Faults.ts"
import type { Run, Spec } from "./Run.ts"
import type { Shrunk } from "./Shrink.ts"

/** A named state that enough runs have to pass through. */
export interface Quota {
  readonly state: string
  /** Of a thousand runs of a swarm, how many have to pass through it. */
  readonly perThousand: number
}

/** What is added up of a run. */
export type Result = Pick<
  Run,
  "violations" | "steps" | "virtualMs" | "hash" | "fired" | "reached" | "states" | "outcomes"
>

/** A run that broke something. */
export interface Failure {
  /** Which of all runs it was. */
  readonly index: number
  readonly spec: Spec
  readonly invariant: string
  readonly detail: string
}

/** All that broke one invariant, as far as it is remembered. */
export interface Broken {
  readonly invariant: string
  readonly count: number
  readonly first: ReadonlyArray<Failure>
}

/** Two runs of one spec that were not alike. */
export interface Mismatch {
  readonly index: number
  readonly spec: Spec
  readonly hashes: readonly [string, string]
}

/** The simulation itself threw an error. */
export interface Breakdown {
  readonly index: number
  readonly spec: Spec
  readonly message: string
}

/** How many failures of one invariant are remembered: the first ones. */
const rememberedMax = 3

/** How many different states are told apart; more are only "at least so many". */
const statesMax = 4_000_000

export class Tally {
  runs = 0
  steps = 0
  virtualMs = 0
  /** Runs that broke something. */
  failed = 0
  doubles = 0
  /** The highest number of a run that was made. */
  last = -1
  /** The engine had no more runs. */
  exhausted = false
  readonly mismatches: Array<Mismatch> = []
  readonly breakdowns: Array<Breakdown> = []
  readonly states = new Set<number>()
  private readonly faults = new Map<string, number>()
  private readonly reached = new Map<string, number>()
  private readonly outcomes = new Map<string, number>()
  private readonly failures = new Map<string, { count: number; readonly first: Array<Failure> }>()

  add(index: number, spec: Spec, result: Result): void {
    this.runs++
    this.last = Math.max(this.last, index)
    this.steps += result.steps
    this.virtualMs += result.virtualMs
    for (const { kind } of result.fired) count(this.faults, kind)
    for (const state of result.reached) count(this.reached, state)
    for (const [outcome, times] of Object.entries(result.outcomes)) count(this.outcomes, outcome, times)
    for (const state of result.states) if (this.states.size < statesMax) this.states.add(state)
    const [violation] = result.violations
    if (violation === undefined) return
    this.failed++
    const detail = `${violation.id}: ${violation.detail}`
    this.fail({ index, spec, invariant: violation.invariant, detail })
  }

  /** How many runs broke each invariant first, and the first of these runs. */
  get failuresByInvariant(): ReadonlyArray<Broken> {
    return [...this.failures].toSorted(byName).map(([invariant, { count, first }]) => ({ invariant, count, first }))
  }

  get faultCounts(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.faults].toSorted(byName))
  }

  /** Kinds of faults that never struck. */
  get faultsUnseen(): ReadonlyArray<FaultKind> {
    return (Object.keys(faultKinds) as ReadonlyArray<FaultKind>).filter((kind) => !this.faults.has(kind))
  }

  get outcomeCounts(): Readonly<Record<string, number>> {
    return Object.fromEntries([...this.outcomes].toSorted(byName))
  }

  /** Every state that is asked for or was seen, and how many runs passed through it. */
  quotas(quotas: ReadonlyArray<Quota>): ReadonlyArray<Reached> {
    const asked = quotas.map(({ perThousand, state }): Reached => {
      const count = this.reached.get(state) ?? 0
      const due = Math.floor(this.runs * perThousand / 1_000)
      return { state, count, due, verdict: count < due ? "missed" : count > 0 ? "reached" : "not due" }
    })
    const others = [...this.reached].filter(([state]) => !quotas.some((quota) => quota.state === state)).toSorted(byName)
    return [...asked, ...others.map(([state, count]): Reached => ({ state, count, due: 0, verdict: "reached" }))]
  }

  private fail(failure: Failure): void {
    const known = this.failures.get(failure.invariant)
    if (known === undefined) return void this.failures.set(failure.invariant, { count: 1, first: [failure] })
    known.count++
    known.first.push(failure)
    known.first.sort((one, other) => one.index - other.index)
    known.first.length = Math.min(known.first.length, rememberedMax)
  }
}

export interface Reached {
  readonly state: string
  readonly count: number
  /** How many runs had to. */
  readonly due: number
  readonly verdict: "reached" | "not due" | "missed"
}

const count = (counts: Map<string, number>, name: string, times = 1): void =>
  void counts.set(name, (counts.get(name) ?? 0) + times)

const byName = ([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number =>
  one < other ? -1 : one > other ? 1 : 0

/** What is one bug as far as anybody can tell: the same invariant, broken by the same things done by the same roles. */
export const signatureOf = (invariant: string, { run, spec }: Pick<Shrunk, "run" | "spec">): string => {
  const faults = (spec.faults ?? run.fired).map(({ actor, kind, label }) => `${kind} at ${label} of ${roleOf(actor)}`)
  return [invariant, ...faults, (spec.deviations ?? []).length > 0 ? "schedule" : ""].filter(Boolean).join(" | ")
}

/** `worker-2#7` is a worker. */
const roleOf = (actor: string): string => actor.replace(/(-\d+)?(#\d+)?$/, "")

/** One bug, by the smallest run that shows it. */
export interface Finding {
  readonly signature: string
  readonly failure: Failure
  readonly shrunk: Shrunk | null
}

/** The first finding of each bug, in the order of runs. */
export const distinct = (findings: ReadonlyArray<Finding>): ReadonlyArray<Finding> => {
  const seen = new Set<string>()
  return findings.toSorted((one, other) => one.failure.index - other.failure.index).filter(({ signature }) => {
    const fresh = !seen.has(signature)
    seen.add(signature)
    return fresh
  })
}

/** "0 of N failed" says no more than this: the chance of a run to fail is below three in N, with 95 % confidence. */
export const boundOf = ({ failed, runs }: Pick<Tally, "failed" | "runs">): string =>
  failed > 0
    ? `${failed} of ${runs} failed`
    : runs === 0
    ? "no run was made"
    : `0 of ${runs} failed: p < ${(Math.min(1, 3 / runs)).toPrecision(2)} at 95 %`
