/**
 * Lets threads do the runs of an engine, until there are no more, or enough of them. A share of the runs is done twice,
 * by different threads where there are two: a seed that has two histories proves nothing.
 */
import { Effect } from "effect"
import type { Tally } from "../Campaign.ts"
import type { Job, Wave } from "../Engines.ts"
import { root } from "../Keyed.ts"
import type { Run, Spec } from "../Run.ts"
import type { Pool, Thread, ThreadLost } from "./Pool.ts"
import type { Asked, Outcome } from "./Task.ts"

export interface ExploreOptions {
  readonly pool: Pool
  readonly wave: Wave
  readonly tally: Tally
  readonly base: string
  /** The most runs. */
  readonly runs: number
  /** True ends it: the time is up. */
  readonly enough: () => boolean
  /** The share of runs that are done twice. */
  readonly double: number
  /** End with the first failure. */
  readonly first: boolean
  /** Only the run of this number, and those that it follows from. Null: all of them. */
  readonly only: number | null
  /** Invariants that nobody looks at. */
  readonly blind: ReadonlyArray<string>
}

/** How many runs a thread is given at once. Whoever waits for the first failure wants none after it. */
const batchMax = 8

/** Done once, and to be done again elsewhere. */
interface Again extends Asked {
  readonly thread: number
  readonly seen: string
}

/** Whether all threads are still there. Who lost one has still done the runs before. */
export const explore = (options: ExploreOptions) => {
  const exploration = new Exploration(options)
  return Effect.gen(function*() {
    for (let wave: Wave | undefined = options.wave; wave !== undefined; wave = exploration.next(wave)) {
      exploration.begin(wave)
      yield* Effect.forEach(options.pool.threads, drive(exploration), { concurrency: "unbounded", discard: true })
    }
    yield* Effect.forEach(options.pool.threads, drain(exploration), { concurrency: "unbounded", discard: true })
    return true
  }).pipe(Effect.catchTag("ThreadLost", (lost) => Effect.as(Effect.sync(() => exploration.lose(lost)), false)))
}

const drive = (exploration: Exploration) =>
  Effect.fnUntraced(function*(thread: Thread) {
    while (true) {
      const again = exploration.takeAgain(thread)
      if (again.length > 0) exploration.compare(again, yield* thread.ask({ _tag: "Runs", jobs: again }))
      const jobs = exploration.take()
      if (jobs.length === 0) return
      exploration.learn(thread, jobs, yield* thread.ask({ _tag: "Runs", jobs }))
    }
  })

/** What the threads before it left to be done a second time. */
const drain = (exploration: Exploration) =>
  Effect.fnUntraced(function*(thread: Thread) {
    for (let again = exploration.takeAgain(thread); again.length > 0; again = exploration.takeAgain(thread)) {
      exploration.compare(again, yield* thread.ask({ _tag: "Runs", jobs: again }))
    }
  })

class Exploration {
  private readonly options: ExploreOptions
  private readonly again: Array<Again> = []
  private jobs: Iterator<Job> = [][Symbol.iterator]()
  private kept = new Map<number, Run>()
  private index = 0
  private failedAt = Infinity
  private stopped = false

  constructor(options: ExploreOptions) {
    this.options = options
  }

  begin(wave: Wave): void {
    this.jobs = wave.jobs[Symbol.iterator]()
    this.kept = new Map()
  }

  /** The wave after this one. None if somebody has had enough, or if there is none. */
  next(wave: Wave): Wave | undefined {
    if (this.stopped) return undefined
    const kept = [...this.kept].toSorted(([one], [other]) => one - other).map(([, run]) => run)
    const next = wave.next?.(kept)
    if (next === undefined) this.options.tally.exhausted = true
    return next
  }

  take(): ReadonlyArray<Asked> {
    const { blind, enough, first, only } = this.options
    const runs = only === null ? this.options.runs : only + 1
    const taken: Array<Asked> = []
    while (!this.stopped && taken.length < (first ? 1 : batchMax)) {
      if (this.index >= runs || this.failedAt < Infinity || enough()) {
        this.stopped = true
        break
      }
      const next = this.jobs.next()
      if (next.done === true) break
      const { keep, spec } = next.value
      if (only !== null && this.index !== only && keep === undefined) {
        this.index++
        continue
      }
      const seen: Spec = blind.length === 0 ? spec : { ...spec, blind }
      taken.push({ index: this.index++, spec: seen, ...(keep === undefined ? {} : { keep }) })
    }
    return taken
  }

  learn({ number }: Thread, jobs: ReadonlyArray<Asked>, outcomes: ReadonlyArray<Outcome>): void {
    const { base, double, first, tally } = this.options
    outcomes.forEach(({ error, index, result, run }, place) => {
      const { spec } = jobs[place]!
      if (error !== null) tally.breakdowns.push({ index, spec, message: error })
      if (result === null) return
      tally.add(index, spec, result)
      if (run !== null) this.kept.set(index, run)
      if (first && result.violations.length > 0) this.failedAt = Math.min(this.failedAt, index)
      const twice = root(base).of("double").of(index).chance(double)
      if (twice) this.again.push({ index, spec, thread: number, seen: seenOf(result) })
    })
  }

  /** A thread is gone, with the run that it was in. */
  lose({ index, message, spec }: ThreadLost): void {
    const { base, tally } = this.options
    tally.breakdowns.push({ index, spec: spec ?? { seed: base, engine: "swarm" }, message })
  }

  /** What another thread has done before; what this one did, where there is no other. */
  takeAgain({ number }: Thread): ReadonlyArray<Again> {
    const alone = this.options.pool.threads.length === 1
    const mine = this.again.filter(({ thread }) => alone || thread !== number).slice(0, batchMax)
    for (const one of mine) this.again.splice(this.again.indexOf(one), 1)
    return mine
  }

  compare(again: ReadonlyArray<Again>, outcomes: ReadonlyArray<Outcome>): void {
    const { tally } = this.options
    outcomes.forEach(({ error, index, result }, place) => {
      const { seen, spec } = again[place]!
      const now = result === null ? error : seenOf(result)
      tally.doubles++
      if (now !== seen) tally.mismatches.push({ index, spec, hashes: [seen, now] })
    })
  }
}

/** What has to be the same the second time. */
const seenOf = ({ hash, reached, violations }: NonNullable<Outcome["result"]>): string =>
  `${hash} ${root(JSON.stringify([violations, reached])).word().toString(16)}`
