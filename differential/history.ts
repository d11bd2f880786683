/** What a sequence comes to on one of the two databases: who was told what, and who waited for whom, step by step. */
import { Effect } from "effect"
import type { AnySequence, AnyStep, Kind, Settled, Side, StepOf, Wait } from "./kind.ts"

/** An answer to a connection: a value as JSON, or an SQLSTATE with the constraint that was in the way. */
export interface Told {
  readonly on: number
  readonly what: string
}

export interface Moment extends Settled {
  readonly step: AnyStep
}

export interface History {
  readonly moments: ReadonlyArray<Moment>
  readonly rows: string
}

/** Goes through a sequence. The next step is the first one whose turn can come; in the end everybody comes to his end. */
export const follow = Effect.fnUntraced(function*<S extends AnySequence>(
  kind: Kind<S>,
  side: Side<StepOf<S>>,
  { connections, steps }: S
) {
  const turns = kind.turns()
  const left: Array<StepOf<S>> = steps.filter(({ on }) => on < connections)
  const moments: Array<Moment> = []
  let waiting: ReadonlySet<number> = new Set()
  const next = (): StepOf<S> | null => {
    const place = left.findIndex((step) => turns.mayCome(step, waiting))
    return place >= 0 ? left.splice(place, 1)[0]! : turns.rest(waiting)
  }
  for (let asked = next(); asked !== null; asked = next()) {
    const step = turns.as(asked, waiting)
    if (step === null) continue
    const settled = yield* side.step(step, moments.length)
    const told = settled.told.toSorted((a, b) => a.on - b.on)
    turns.after(step, told)
    moments.push({ step, told, waits: transitively(settled.waits) })
    waiting = new Set(settled.waits.map(({ on }) => on))
  }
  return { moments, rows: yield* side.rows } satisfies History
})

/** Whether somebody was told an SQLSTATE. */
export const isError = (what: string): boolean => /^[0-9A-Z]{5}( |$)/.test(what)

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
