/** What a thread is asked to do, and how it is done: plain data in, plain data out. */
import type { Result } from "../Campaign.ts"
import type { Keep, Run, Simulate, Spec } from "../Run.ts"
import { shrink, type Shrunk } from "../Shrink.ts"
import * as Tripwires from "../tripwires.ts"
import { withoutStacks } from "../withoutStacks.ts"

export interface Asked {
  readonly index: number
  readonly spec: Spec
  readonly keep?: Keep
}

export type Task =
  | { readonly _tag: "Runs"; readonly jobs: ReadonlyArray<Asked> }
  | { readonly _tag: "Run"; readonly spec: Spec; readonly keep: Keep }
  | {
    readonly _tag: "Shrink"
    readonly spec: Spec
    readonly invariant: string
    readonly runs: number
    readonly seconds: number
  }

/** One run of many: its whole only where somebody keeps something of it, and the error if the simulation threw one. */
export type Outcome =
  | { readonly index: number; readonly result: Result; readonly run: Run | null; readonly error: null }
  | { readonly index: number; readonly result: null; readonly run: null; readonly error: string }

export interface Answers {
  readonly Runs: ReadonlyArray<Outcome>
  readonly Run: Run
  readonly Shrink: Shrunk | null
}

export type AnswerTo<T extends Task> = Answers[T["_tag"]]

/** `now` in milliseconds, for the time that a search may take. `about` hears which run is next. */
export const perform = (
  task: Task,
  simulate: Simulate,
  now: () => number,
  about: (index: number) => void = () => {}
): Answers[Task["_tag"]] => {
  switch (task._tag) {
    case "Runs":
      return runs(task.jobs, simulate, about)
    case "Run":
      return simulate(task.spec, task.keep)
    case "Shrink": {
      const end = now() + 1_000 * task.seconds
      const quick: Simulate = (spec, keep) => withoutStacks(() => simulate(spec, keep))
      return shrink(task.spec, task.invariant, { simulate: quick, runs: task.runs, enough: () => now() >= end })
    }
  }
}

/** Armed once around all of them, which is cheaper than around each. */
const runs = (jobs: ReadonlyArray<Asked>, simulate: Simulate, about: (index: number) => void): ReadonlyArray<Outcome> => {
  const tripwires = Tripwires.arm()
  try {
    return jobs.map((job) => {
      about(job.index)
      return outcome(job, simulate)
    })
  } finally {
    tripwires.disarm()
  }
}

const outcome = ({ index, keep, spec }: Asked, simulate: Simulate): Outcome => {
  try {
    const run = withoutStacks(() => simulate(spec, keep))
    const { fired, hash, outcomes, reached, states, steps, violations, virtualMs } = run
    const result = { violations, steps, virtualMs, hash, fired, reached, states, outcomes }
    return { index, result, run: keep === undefined ? null : run, error: null }
  } catch (error) {
    return { index, result: null, run: null, error: describe(again(() => simulate(spec, keep)) ?? error) }
  }
}

/** What it throws, with its stack. */
const again = (simulation: () => Run): unknown => {
  try {
    simulation()
    return null
  } catch (error) {
    return error
  }
}

/** With the stack: this is a bug of the simulator, and its place is all that there is to know. */
const describe = (error: unknown): string => error instanceof Error ? error.stack ?? error.message : String(error)
