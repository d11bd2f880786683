/** One simulated run: what it is asked for, and what is known afterwards. Both are plain data, and travel as JSON. */
import type { Violation } from "../domain/Invariant.ts"
import type { Fault, Moment, Occasion } from "./Faults.ts"
import type { Deviation } from "./Schedule.ts"
import type { Shape } from "./Shape.ts"
import type { TraceEvent } from "./Trace.ts"

export type Engine = "swarm" | "pct" | "sweep" | "pair" | "scenario" | "plan"

/** Everything that a run depends on. Equal specs on one commit have equal hashes. */
export interface Spec {
  readonly seed: string
  readonly engine: Engine
  /** Instead of what the seed draws. */
  readonly shape?: Partial<Shape>
  /** Exactly these faults, instead of drawn ones. */
  readonly faults?: ReadonlyArray<Fault>
  /** The same, by their times. Not for plans, which are to survive changes of the code. */
  readonly moments?: ReadonlyArray<Moment>
  /** First come, first served but for these, instead of a drawn schedule. */
  readonly deviations?: ReadonlyArray<Deviation>
  /** Invariants that are not looked at: only to show that somebody would miss them. */
  readonly blind?: ReadonlyArray<string>
}

/** What to keep beside the result. */
export interface Keep {
  readonly trace?: boolean
  readonly occasions?: boolean
  readonly deviations?: boolean
  readonly moments?: boolean
  /** The most virtual time that it may take: what is cut short has held as far as anybody looked. */
  readonly forMs?: number
}

export interface Run {
  readonly spec: Spec
  readonly shape: Shape
  /** The first that was seen, and whatever else was wrong at that very step. Empty: everything held. */
  readonly violations: ReadonlyArray<Violation>
  readonly steps: number
  readonly virtualMs: number
  readonly hash: string
  readonly fired: ReadonlyArray<Fault>
  /** Planned faults and deviations whose point was never reached. */
  readonly unused: { readonly faults: ReadonlyArray<Fault>; readonly deviations: ReadonlyArray<Deviation> }
  /** Named states that the run passed through, once each. */
  readonly reached: ReadonlyArray<string>
  /** Hashes of the abstract states that it passed through, to count how many are distinct. */
  readonly states: ReadonlyArray<number>
  /** How many operations ended in which way: `stored`, `no_memory`, or a class of failure. */
  readonly outcomes: Readonly<Record<string, number>>
  readonly trace: ReadonlyArray<TraceEvent>
  readonly occasions: ReadonlyArray<Occasion>
  /** When each of `fired` struck. */
  readonly moments: ReadonlyArray<Moment>
  readonly deviations: ReadonlyArray<Deviation>
}

/** Runs a spec to its end. Deterministic, synchronous, and alone in its thread. */
export type Simulate = (spec: Spec, keep?: Keep) => Run
