/** One kind of sequence: how it is drawn, on what it runs on both sides, whose turn it is, and what would be simpler. */
import type { Effect, Redacted, Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { root } from "../src/sim/Keyed.ts"
import type { Told } from "./history.ts"

export interface AnyStep {
  readonly on: number
  readonly act: { readonly do: string }
  /** Its wait for a lock is over at once, if nobody waits when it begins. */
  readonly hurried?: true
}

export interface AnySequence {
  readonly kind: string
  /** Where it comes from. */
  readonly name: string
  /** What it is about, in one sentence. */
  readonly about?: string
  readonly connections: 2 | 3
  readonly steps: ReadonlyArray<AnyStep>
}

export type StepOf<S extends AnySequence> = S["steps"][number]

/** Who waits for whom: whoever waits, and for which others. */
export interface Wait {
  readonly on: number
  readonly for: ReadonlyArray<number>
}

export interface Settled {
  readonly told: ReadonlyArray<Told>
  readonly waits: ReadonlyArray<Wait>
}

/** One of the two databases, as a sequence finds it. */
export interface Side<Step> {
  /** Lets a connection do something, and returns once everybody has been answered or is known to wait. */
  readonly step: (step: Step, at: number) => Effect.Effect<Settled>
  /** What is in the tables in the end. */
  readonly rows: Effect.Effect<string>
  /** What had to be decided on the way, for counting. */
  readonly notes?: ReadonlyArray<string>
}

/** Which steps make sense when, and what is left to do when no step is left. */
export interface Turns<Step> {
  /** Whether it may be the next one, while these wait. */
  readonly mayCome: (step: Step, waiting: ReadonlySet<number>) => boolean
  /** What it comes to. Null: nothing. */
  readonly as: (step: Step, waiting: ReadonlySet<number>) => Step | null
  readonly after: (step: Step, told: ReadonlyArray<Told>) => void
  readonly rest: (waiting: ReadonlySet<number>) => Step | null
}

/** What the model has to be told of what Postgres is free in. */
export interface Luck {
  /** Before these moments, whoever waits already has had the time to look for a circle. */
  readonly pauses: ReadonlySet<number>
  /** Everything else that is random: whose turn it is when several can go on, and rows in no order. First the simplest. */
  readonly draw: number
}

/** Whose turn it is when several can go on at once: in the first draw that of the first one. */
export const picks = (seed: string, draw: number): (count: number) => number => {
  const key = root(seed).of("picks").of(draw)
  let picked = 0
  return (count) => draw === 0 || count < 2 ? 0 : key.of(picked++).below(count)
}

export interface Kind<S extends AnySequence> {
  readonly name: S["kind"]
  readonly generate: (seed: string, index: number) => S
  /** Connections to tables of their own. `begin` makes the tables as every sequence finds them. */
  readonly connect: (
    url: Redacted.Redacted,
    lane: number
  ) => Effect.Effect<{ readonly begin: Effect.Effect<Side<StepOf<S>>> }, SqlError, Scope.Scope>
  readonly model: (sequence: S, luck: Luck) => Side<StepOf<S>>
  readonly turns: () => Turns<StepOf<S>>
  /** How many draws of the model may have to be looked at. */
  readonly draws: number
  /** What an answer is counted as. */
  readonly topics: (what: string) => ReadonlyArray<string>
  /** The same step, but less of it. */
  readonly simpler: (step: StepOf<S>) => ReadonlyArray<StepOf<S>>
}
