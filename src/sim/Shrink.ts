/**
 * The smallest run that still breaks the same invariant: fewer faults, fewer deviations from first come, first served,
 * a smaller world. Every step is a run; what does not break is not taken.
 */
import { fewer } from "./DeltaDebugging.ts"
import type { Fault } from "./Faults.ts"
import { type Key, root } from "./Keyed.ts"
import { explicit } from "./Plan.ts"
import type { Run, Spec } from "./Run.ts"
import { breaks, Search, type SearchOptions, sizeOf } from "./Search.ts"
import type { Shape } from "./Shape.ts"

export interface Shrunk {
  /** The smallest that was found. Explicit in everything, unless only the seed repeats the failure. */
  readonly spec: Spec
  /** The run of `spec`. */
  readonly run: Run
  /** False: faults and deviations written down do not repeat it, only the seed does. */
  readonly isPlan: boolean
  /** False: the search ended because it had taken too long. */
  readonly finished: boolean
  readonly runs: number
  /** How many faults and deviations the run had at first. */
  readonly from: { readonly faults: number; readonly deviations: number }
}

/** Shrinks a run that breaks `invariant`. Null if it does not. */
export const shrink = (failing: Spec, invariant: string, options: SearchOptions): Shrunk | null => {
  const original = options.simulate(failing, { deviations: true })
  if (!breaks(original, invariant)) return null
  const from = { faults: original.fired.length, deviations: original.deviations.length }
  const search = new Search(options, invariant)
  if (!search.take(explicit(original))) {
    return { spec: failing, run: original, isPlan: false, finished: true, runs: search.runs + 1, from }
  }
  search.take({ ...search.spec, deviations: [] })
  search.take({ ...search.spec, faults: [] })
  for (let before = Infinity; search.size < before && !search.over;) {
    before = search.size
    smallerShape(search)
    fewerKinds(search)
    fewerFaults(search, coarse)
    elsewhere(search, original)
    fewerFaults(search)
    fewerDeviations(search)
    otherPlaces(search, search.run.shape)
    otherPlaces(search, { ...search.run.shape, ...least, chaosMs: search.run.shape.chaosMs })
  }
  return { spec: search.spec, run: search.run, isPlan: true, finished: !search.over, runs: search.runs + 1, from }
}

/** All faults of one kind, or of one process, at once: most have nothing to do with it. */
const fewerKinds = (search: Search) => {
  for (const part of [({ kind }: Fault) => kind, ({ actor }: Fault) => actor.replace(/#.*/, "")]) {
    for (const name of new Set(search.faults.map(part))) {
      search.take({ ...search.spec, faults: search.faults.filter((fault) => part(fault) !== name) })
    }
  }
}

/** How many other seeds are tried in each round: a run of so small a world takes a tenth of the time. */
const seedsMax = 300

/**
 * A failure that hangs on the timing of many faults does not get smaller by leaving out some of them. So this looks for
 * it elsewhere: in small worlds of other seeds, where only such faults happen, some of them often.
 */
const elsewhere = (search: Search, { shape: { chaosMs }, spec: { blind, engine, seed } }: Run) => {
  for (let tried = 0; tried < seedsMax && search.faults.length > movedMax; tried++) {
    const index = search.looks++
    const key = root(seed).of("elsewhere").of(index)
    const share = key.of("share").choose([0.2, 0.4, 0.7])!
    const most = key.of("most").choose([0.03, 0.1, 0.3])!
    const kinds = [...new Set(search.faults.map(({ kind }) => kind))].filter((kind) => key.of(kind).chance(share))
    const rates = Object.fromEntries(kinds.map((kind) => [kind, key.of("rate").of(kind).logUniform(most / 10, most)]))
    const shape = { ...smallWorld(search.run.shape, key.of("size")), chaosMs, rates }
    const drawn = { seed: `${seed}~${index}`, engine, shape }
    const run = search.look(blind === undefined ? drawn : { ...drawn, blind })
    if (run === null || run.fired.length >= search.faults.length) continue
    if (search.take(explicit(run))) {
      search.take({ ...search.spec, deviations: [] })
      fewerKinds(search)
      fewerFaults(search, coarse)
    }
  }
}

/** No larger than this one, mostly much smaller. */
const smallWorld = (shape: Shape, key: Key): Shape => ({
  ...shape,
  operations: Math.min(shape.operations, key.of("operations").choose([1, 1, 2, 4, 8])!),
  workers: Math.min(shape.workers, key.of("workers").between(1, 4)),
  apis: Math.min(shape.apis, key.of("apis").between(1, 2)),
  lanes: Math.min(shape.lanes, key.of("lanes").between(1, 2)),
  workspaces: 1
})

/** In so many parts at most: quick, and enough to look elsewhere. */
const coarse = 8

const fewerFaults = (search: Search, partsMax = Infinity) =>
  fewer(() => search.faults, (faults) => search.take({ ...search.spec, faults }), partsMax)

const fewerDeviations = (search: Search) =>
  fewer(() => search.deviations, (deviations) => search.take({ ...search.spec, deviations }))

/** How many places are tried for a fault, and for one that has another before it. */
const placesMax = 100
const firstsMax = 12
/** Among more faults than these nobody looks for other places. */
const movedMax = 6

/**
 * Leaving out one by one ends where every fault is needed by another. So this begins anew, in a world of this shape,
 * with no fault or one, and looks for a place where a single one more completes it.
 */
const otherPlaces = (search: Search, shape: Shape) => {
  const { faults, spec } = search
  const most = faults.length - (sizeOf(shape) < sizeOf(search.run.shape) ? 0 : 1)
  if (most < 1 || faults.length > movedMax) return
  const wanted = new Set(faults.map(({ kind, label }) => `${kind} ${label}`))
  const places = (before: ReadonlyArray<Fault>, max: number): ReadonlyArray<Fault> =>
    sample(search.places({ ...spec, shape, faults: before }).filter(({ kind, label }) => wanted.has(`${kind} ${label}`)), max)
  const completes = (before: ReadonlyArray<Fault>): boolean =>
    places(before, placesMax).some((fault) => search.take({ ...spec, shape, faults: [...before, fault] }))
  if (completes([]) || most < 2) return
  ;[...faults, ...places([], firstsMax)].some((fault) => completes([fault]))
}

/** At most so many of them, evenly spread. */
const sample = <A>(items: ReadonlyArray<A>, max: number): ReadonlyArray<A> =>
  items.length <= max ? items : Array.from({ length: max }, (_, index) => items[Math.floor(index * items.length / max)]!)

/** What can be made smaller, and how small. */
const least = { operations: 1, workers: 1, apis: 1, workspaces: 1, lanes: 1, chaosMs: 1_000 } as const

/** Where it is enough to know about how small: a part of it. */
const precision = { operations: 0, workers: 0, apis: 0, workspaces: 0, lanes: 0, chaosMs: 0.1 } as const

const smallerShape = (search: Search) => {
  for (const name of Object.keys(least) as ReadonlyArray<keyof typeof least>) {
    let low: number = least[name]
    while (low < search.run.shape[name]) {
      const high = search.run.shape[name]
      if (high - low < high * precision[name]) break
      const middle = Math.floor((low + high) / 2)
      const shape: Shape = { ...search.run.shape, [name]: middle }
      if (!search.take({ ...search.spec, shape })) low = middle + 1
    }
  }
  // With every fault written down, how likely they were says nothing.
  if (Object.keys(search.run.shape.rates).length > 0) {
    search.take({ ...search.spec, shape: { ...search.run.shape, rates: {} } })
  }
}
