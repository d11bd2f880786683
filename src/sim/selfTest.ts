/**
 * What the simulator stands on, tried on the Effect that is installed. When Effect schedules differently one day, this
 * says so before anybody believes a green run.
 */
import { Deferred, Effect, Latch } from "effect"
import { fineBudget, Kernel, type Verdict } from "./Kernel.ts"
import { type Process, spawn } from "./Process.ts"
import { rehearse } from "./rehearsal.ts"

export interface Check {
  readonly promise: string
  /** Null, or what is wrong. */
  readonly run: () => string | null
}

type Log = Array<string>
type Program = (log: Log) => Effect.Effect<unknown>

/** Runs a program alone; returns how that ended and what it wrote down. */
const alone = (program: Program, seed: number, budget: number): { readonly log: Log; readonly verdict: Verdict } => {
  const kernel = new Kernel({ seed, budget })
  const log: Log = []
  spawn(kernel, { name: "alone", main: () => program(log) })
  return { verdict: kernel.run({ maxSteps: 20_000 }), log }
}

const write = (log: Log, word: string) => Effect.sync(() => log.push(word))

/** Three fibers of two operations each: 6! / (2! 2! 2!) orders are possible. */
const threeByTwo: Program = (log) =>
  Effect.forEach(["a", "b", "c"], (name) => Effect.andThen(write(log, `${name}1`), write(log, `${name}2`)), {
    concurrency: "unbounded"
  })

/** How often each order came up, over seeds 1 to `seeds`. */
const orders = (program: Program, seeds: number): ReadonlyMap<string, number> => {
  const found = new Map<string, number>()
  for (let seed = 1; seed <= seeds; seed++) {
    const order = alone(program, seed, fineBudget).log.join(" ")
    found.set(order, (found.get(order) ?? 0) + 1)
  }
  return found
}

/** Lets three fibers wait, and then releases them together. */
const together = (wait: Effect.Effect<unknown>, release: Effect.Effect<unknown>, log: Log) =>
  Effect.gen(function*() {
    for (const name of ["a", "b", "c"]) yield* Effect.forkChild(Effect.andThen(wait, write(log, name)))
    yield* Effect.sleep(1)
    yield* release
    yield* Effect.sleep(1)
  })

const wakers: Readonly<Record<string, Program>> = {
  latch: (log) => Effect.flatMap(Latch.make(), (latch) => together(latch.await, latch.open, log)),
  deferred: (log) =>
    Effect.flatMap(Deferred.make<void>(), (deferred) =>
      together(Deferred.await(deferred), Deferred.succeed(deferred, undefined), log)),
  timer: (log) => together(Effect.sleep(1), Effect.void, log)
}

/** Six orders, each a sixth of the time, give or take five standard deviations. */
const uneven = (program: Program): string | null => {
  const seeds = 1_200
  const found = orders(program, seeds)
  const margin = 5 * Math.sqrt(seeds * (1 / 6) * (5 / 6))
  const odd = [...found].filter(([, times]) => Math.abs(times - seeds / 6) > margin)
  return found.size === 6 && odd.length === 0 ? null : JSON.stringify([...found])
}

/** Ends a process with finalizers at a moment of the seed's choosing; returns how many of them ran. */
const finalizersRun = (seed: number, end: (process: Process) => void): number => {
  const kernel = new Kernel({ seed })
  let ran = 0
  const guarded = Effect.ensuring(Effect.forever(Effect.sleep(1)), Effect.sync(() => ran++))
  const process = spawn(kernel, { name: "mortal", main: () => Effect.all([guarded, guarded], { concurrency: 2 }) })
  const moment = 30 + kernel.key.of("moment").below(100)
  kernel.run({ until: () => kernel.steps === moment })
  end(process)
  kernel.run()
  return ran
}

export const kills = (count: number): string | null => {
  for (let seed = 1; seed <= count; seed++) {
    const ran = finalizersRun(seed, (process) => process.crash())
    if (ran > 0) return `${ran} finalizers ran after a kill, seed ${seed}`
  }
  return null
}

export const checks: ReadonlyArray<Check> = [
  {
    promise: "every order of three fibers of two operations is reached",
    run: () => {
      const found = orders(threeByTwo, 3_000)
      return found.size === 90 ? null : `${found.size} of 90`
    }
  },
  {
    promise: `a budget of ${fineBudget} is the smallest that makes progress`,
    run: () => {
      const ends = [1, 2, fineBudget].map((budget) => alone(threeByTwo, 1, budget).verdict._tag).join(" ")
      return ends === "Livelock Livelock Finished" ? null : ends
    }
  },
  ...Object.entries(wakers).map(([name, program]): Check => ({
    promise: `those who wait for a ${name} go on in any order, each as likely`,
    run: () => uneven(program)
  })),
  { promise: "a kill runs no finalizer", run: () => kills(500) },
  {
    promise: "SIGTERM runs every finalizer",
    run: () => {
      for (let seed = 1; seed <= 100; seed++) {
        const ran = finalizersRun(seed, (process) => process.terminate(1_000))
        if (ran !== 2) return `${ran} of 2, seed ${seed}`
      }
      return null
    }
  },
  {
    promise: "one seed has one history, and another seed has another",
    run: () => {
      const first = Array.from({ length: 50 }, (_, seed) => rehearse({ seed }).hash)
      const second = Array.from({ length: 50 }, (_, seed) => rehearse({ seed }).hash)
      const parted = first.findIndex((hash, seed) => hash !== second[seed])
      if (parted >= 0) return `seed ${parted} had two histories`
      return new Set(first).size === first.length ? null : "two seeds had one history"
    }
  }
]

/** All of them: what is wrong, by promise. Empty when the simulator may be believed. */
export const selfTest = (all = checks): ReadonlyArray<{ readonly promise: string; readonly finding: string }> =>
  all.flatMap(({ promise, run }) => {
    const finding = run()
    return finding === null ? [] : [{ promise, finding }]
  })
