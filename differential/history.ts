/** What a sequence comes to on one of the two databases: who was told what, and who waited for whom, step by step. */
import { Effect } from "effect"
import type { Sequence, Step } from "./sequence.ts"

/** An answer to a connection: a value as JSON, or an SQLSTATE with the constraint that was in the way. */
export interface Told {
  readonly on: number
  readonly what: string
}

/** A connection that waits, and for which others. */
export interface Wait {
  readonly on: number
  readonly for: ReadonlyArray<number>
}

export interface Settled {
  readonly told: ReadonlyArray<Told>
  readonly waits: ReadonlyArray<Wait>
}

/** One of the two databases, as a sequence finds it. */
export interface Side {
  /** Lets a connection do something, and returns once everybody has been answered or is known to wait. */
  readonly step: (step: Step, at: number) => Effect.Effect<Settled>
  /** What is in the tables in the end. */
  readonly rows: Effect.Effect<string>
}

export interface Moment extends Settled {
  readonly step: Step
}

export interface History {
  readonly moments: ReadonlyArray<Moment>
  readonly rows: string
}

/**
 * Goes through a sequence. The next step is the first one whose connection does not wait; in the end whoever is still
 * open commits, in the order of connections. A transaction that has failed is asked once more, and then left to its end.
 */
export const follow = Effect.fnUntraced(function*(side: Side, { connections, steps }: Sequence) {
  const left = steps.filter(({ on }) => on < connections)
  const open = new Set<number>()
  /** Of open transactions: how often they have been told of an error. */
  const errors = new Map<number, number>()
  const moments: Array<Moment> = []
  let waiting: ReadonlySet<number> = new Set()
  const next = (): Step | undefined => {
    const place = left.findIndex(({ act, on }) => act.do === "cancel" || !waiting.has(on))
    if (place >= 0) return left.splice(place, 1)[0]
    const on = [...open].toSorted().find((on) => !waiting.has(on))
    return on === undefined ? undefined : { on, act: { do: "commit" } }
  }
  for (let step = next(); step !== undefined; step = next()) {
    const { act, on } = step
    if (act.do === "cancel" ? !waiting.has(on) : isEnd(step) ? !open.has(on) : (errors.get(on) ?? 0) > 1) continue
    const settled = yield* side.step(waiting.size > 0 ? patient(step) : step, moments.length)
    open.add(on)
    const told = settled.told.toSorted((a, b) => a.on - b.on)
    for (const { on, what } of told) if (isError(what)) errors.set(on, (errors.get(on) ?? 0) + 1)
    if (isEnd(step)) {
      open.delete(on)
      errors.delete(on)
    }
    moments.push({ step, told, waits: transitively(settled.waits) })
    waiting = new Set(settled.waits.map(({ on }) => on))
  }
  return { moments, rows: yield* side.rows } satisfies History
})

/** Whether somebody was told an SQLSTATE. */
export const isError = (what: string): boolean => /^[0-9A-Z]{5}( |$)/.test(what)

const isEnd = ({ act }: Step): boolean => act.do === "commit" || act.do === "rollback"

const patient = ({ act, on }: Step): Step => ({ act, on })

/**
 * Whoever stands in line for a row waits for the one before him in Postgres, and through him for the one who has it. So
 * it is compared for whom a connection waits in the end.
 */
export const transitively = (waits: ReadonlyArray<Wait>): ReadonlyArray<Wait> => {
  const direct = new Map(waits.map((wait) => [wait.on, wait.for]))
  const reach = (on: number, seen: Set<number>): Set<number> => {
    for (const other of direct.get(on) ?? []) {
      if (seen.has(other)) continue
      seen.add(other)
      reach(other, seen)
    }
    return seen
  }
  return waits.map(({ on }) => ({ on, for: [...reach(on, new Set())].toSorted() })).toSorted((a, b) => a.on - b.on)
}

/** Whether somebody waits for himself. */
export const isCircular = (waits: ReadonlyArray<Wait>): boolean =>
  transitively(waits).some((wait) => wait.for.includes(wait.on))
