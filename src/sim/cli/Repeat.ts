/** One spec, more than once: what comes of it, and whether it is one history. */
import { Effect, Result } from "effect"
import { readFile } from "node:fs/promises"
import { infeasible } from "../Feasible.ts"
import * as Plan from "../Plan.ts"
import type { Keep, Spec } from "../Run.ts"
import { firstDifference, type TraceEvent } from "../Trace.ts"
import type { Harness } from "./Harness.ts"
import { WrongUsage } from "./Output.ts"
import type { Pool } from "./Pool.ts"

/** Where two histories of one spec part: an event of each, or null at the end of it. */
export interface Parting {
  readonly one: TraceEvent | null
  readonly other: TraceEvent | null
}

/** Run by a thread, by another one, and by the first again, which by now has a past. */
const thrice = Effect.fnUntraced(function*(pool: Pool, spec: Spec, keep: Keep) {
  const task = { _tag: "Run", spec, keep } as const
  const [first, other] = [pool.threads[0]!, pool.threads.at(-1)!]
  return [yield* first.ask(task), yield* other.ask(task), yield* first.ask(task)] as const
})

/** The run, and whether its histories were all alike. */
export const repeated = Effect.fnUntraced(function*(pool: Pool, spec: Spec, keep: Keep = {}) {
  const [run, ...others] = yield* thrice(pool, spec, keep)
  return { run, isOne: others.every(({ hash }) => hash === run.hash) }
})

/** Looks for where the histories of a spec part. Null: this time they did not. */
export const partingOf = Effect.fnUntraced(function*(pool: Pool, spec: Spec) {
  const [first, ...others] = yield* thrice(pool, spec, { trace: true })
  for (const { trace } of others) {
    const parted = firstDifference(first.trace, trace)
    if (parted !== null) return { one: parted.one ?? null, other: parted.other ?? null } satisfies Parting
  }
  return null
})

/** The same in words. */
export const partingWords = (parting: Parting | null): ReadonlyArray<string> =>
  parting === null
    ? ["two histories, which were alike when looked at"]
    : [`two histories: one has ${eventWords(parting.one)}`, `where the other has ${eventWords(parting.other)}`]

const eventWords = (event: TraceEvent | null): string => {
  if (event === null) return "its end"
  const { actor, at, detail, kind, label, step } = event
  return `at ${at} ms, step ${step}: ${[actor, kind, label, detail].filter(Boolean).join(" ")}`
}

/** The plan in a file whose names are all known here. */
export const readPlan = Effect.fnUntraced(function*(file: string | URL, harness: Harness) {
  const shown = file instanceof URL ? file.pathname : file
  const text = yield* Effect.tryPromise({
    try: () => readFile(file, "utf8"),
    catch: () => new WrongUsage({ message: `${shown} cannot be read` })
  })
  const found = Plan.read(text)
  const invariants = harness.invariants.map(({ name }) => name)
  const problems = Result.isFailure(found) ? Plan.problemLines(found.failure) : [
    ...Plan.unknownNames(found.success, { invariants, states: harness.quotas.map(({ state }) => state) }),
    ...(found.success.spec.blind ?? []).filter((name) => !invariants.includes(name)).map((name) => `there is no invariant "${name}"`),
    ...infeasible(found.success.spec)
  ]
  if (Result.isFailure(found) || problems.length > 0) {
    const message = [`${shown} is no plan:`, ...problems.map((problem) => `  ${problem}`)].join("\n")
    return yield* new WrongUsage({ message })
  }
  return found.success
})

/** 3 where a plan has lost its meaning, or has two histories. */
export const exitCodes: Readonly<Record<Plan.Verdict, number>> = { held: 0, missed: 3, stale: 3, broke: 1 }
