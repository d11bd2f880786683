/** What a benchmark is: trials that are repeated in turns, so that a noisy minute is noisy for everybody. */
import { Effect, type Scope } from "effect"
import type { Server } from "./server.ts"

/** One number. */
export interface Sample {
  readonly figure: string
  readonly unit: string
  readonly value: number
}

/** One way to get numbers about one system; each run has a database of its own. */
export interface Trial {
  readonly system: string
  readonly run: Effect.Effect<ReadonlyArray<Sample>, never, Server | Scope.Scope>
}

/** How much of everything: the full run, or a smoke test. */
export interface Scale {
  readonly rounds: number
  /** Accepts of one trial; and of one that goes one job at a time. */
  readonly accepts: number
  /** Operations to drain. */
  readonly drain: number
  /** Jobs of a peer: one by one, and in batches. */
  readonly peerJobs: number
  readonly peerBatchedJobs: number
  readonly wakes: number
  /** The large backlog of the claims, and claims of one trial. */
  readonly backlog: number
  readonly claims: number
  /** Simulated runs: of one core, and done twice; and whether a whole sweep is made. */
  readonly simRuns: number
  readonly simDoubles: number
  readonly simSweeps: boolean
}

export const full: Scale = {
  rounds: 3,
  accepts: 10_000,
  drain: 20_000,
  peerJobs: 4_000,
  peerBatchedJobs: 40_000,
  wakes: 300,
  backlog: 1_000_000,
  claims: 50,
  simRuns: 400,
  simDoubles: 1_000,
  simSweeps: true
}

export const quick: Scale = {
  rounds: 1,
  accepts: 2_000,
  drain: 2_000,
  peerJobs: 1_000,
  peerBatchedJobs: 5_000,
  wakes: 30,
  backlog: 50_000,
  claims: 20,
  simRuns: 40,
  simDoubles: 20,
  simSweeps: false
}

/** Sets up what its trials share, and returns them. */
export type Bench = (scale: Scale) => Effect.Effect<ReadonlyArray<Trial>, never, Server | Scope.Scope>

/** Milliseconds of a monotonic clock that all processes of this machine share. */
export const now = (): number => Number(process.hrtime.bigint()) / 1e6

/** The `p`th part of these values, by rank. */
export const quantile = (values: ReadonlyArray<number>, p: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * p))] ?? Number.NaN

/** Waits until a query finds nothing left. */
export const untilNone = (left: Effect.Effect<ReadonlyArray<unknown>, unknown>): Effect.Effect<void> =>
  Effect.repeat(Effect.delay(Effect.orDie(left), "10 millis"), { while: (rows) => rows.length > 0 }).pipe(Effect.asVoid)
