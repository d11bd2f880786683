/** A search for a smaller run that still breaks the same invariant: the best so far, and how much more may be tried. */
import { faultsAt } from "./Engines.ts"
import { type Fault, type FaultKind, faultKinds, nameOf } from "./Faults.ts"
import type { Keep, Run, Simulate, Spec } from "./Run.ts"
import type { Deviation } from "./Schedule.ts"
import type { Shape } from "./Shape.ts"

export interface SearchOptions {
  readonly simulate: Simulate
  /** The most runs that this may take. */
  readonly runs?: number
  /** Looked at before each run: true ends the search with what it has. */
  readonly enough?: () => boolean
}

export const breaks = (run: Run, invariant: string): boolean =>
  run.violations.some((violation) => violation.invariant === invariant)

export const sizeOf = ({ apis, lanes, operations, workers, workspaces }: Shape): number =>
  operations + workers + apis + workspaces + lanes

const everyKind = Object.keys(faultKinds) as ReadonlyArray<FaultKind>

export class Search {
  runs = 0
  /** How many other seeds were looked at. */
  looks = 0
  private readonly options: SearchOptions
  private readonly invariant: string
  private best: { readonly spec: Spec; readonly run: Run } | null = null

  constructor(options: SearchOptions, invariant: string) {
    this.options = options
    this.invariant = invariant
  }

  get spec(): Spec {
    return this.found.spec
  }

  get run(): Run {
    return this.found.run
  }

  get faults(): ReadonlyArray<Fault> {
    return this.spec.faults ?? []
  }

  get deviations(): ReadonlyArray<Deviation> {
    return this.spec.deviations ?? []
  }

  /** What there is to be read in a plan. */
  get size(): number {
    return 100 * (this.faults.length + this.deviations.length) + sizeOf(this.run.shape)
  }

  get over(): boolean {
    return this.runs >= (this.options.runs ?? 2_000) || this.options.enough?.() === true
  }

  /** Takes `spec` for the best if it breaks the invariant, as it is or by the times of its faults. */
  take(spec: Spec): boolean {
    return [spec, this.byTime(spec)].some((either) => either !== null && this.takeIt(spec, either))
  }

  private takeIt(spec: Spec, asked: Spec): boolean {
    if (this.over) return false
    this.runs++
    const run = this.tried(asked, { moments: true })
    if (run === null || !breaks(run, this.invariant)) return false
    const unused = new Set(run.unused.deviations.map((deviation) => JSON.stringify(deviation)))
    const deviations = (spec.deviations ?? []).filter((deviation) => !unused.has(JSON.stringify(deviation)))
    const smaller: Spec = { ...spec, faults: run.fired, deviations }
    this.best = { spec: smaller, run: { ...run, spec: smaller } }
    return true
  }

  /**
   * With its faults at the times at which they struck in the best so far: whatever is left out moves the count of all
   * that a process does later, and often hardly the time. Null if there is nothing to go by.
   */
  private byTime(spec: Spec): Spec | null {
    if (this.best === null || spec.seed !== this.best.spec.seed) return null
    const names = new Set((spec.faults ?? []).map(nameOf))
    const moments = this.best.run.moments.filter((moment) => names.has(nameOf(moment)))
    return moments.length === 0 || moments.length < names.size ? null : { ...spec, moments }
  }

  /** Null: the simulation itself failed, which is another bug than the one that is looked for. */
  private tried(spec: Spec, keep: Keep = {}): Run | null {
    try {
      return this.options.simulate(spec, { ...keep, forMs: this.patienceMs })
    } catch {
      return null
    }
  }

  /** What has not broken by then is taken to hold: most of what is tried would hold for long. */
  private get patienceMs(): number {
    return this.best === null ? Infinity : 2 * this.best.run.virtualMs + 5_000
  }

  /** A run that breaks the invariant with whatever its seed draws, or null. */
  look(spec: Spec): Run | null {
    if (this.over) return null
    this.runs++
    const run = this.tried(spec, { deviations: true })
    return run !== null && breaks(run, this.invariant) ? run : null
  }

  /** What could still go wrong after the faults of `spec`. */
  places(spec: Spec): ReadonlyArray<Fault> {
    if (this.over) return []
    this.runs++
    const run = this.tried(spec, { occasions: true })
    if (run === null) return []
    const { fired, occasions } = run
    const last = fired.at(-1)
    const struck = last === undefined ? -1 : occasions.findIndex((occasion) => nameOf(occasion) === nameOf(last))
    return fired.length < (spec.faults?.length ?? 0) ? [] : faultsAt(occasions.slice(struck + 1), everyKind)
  }

  private get found(): { readonly spec: Spec; readonly run: Run } {
    if (this.best === null) throw new Error("nothing was found yet")
    return this.best
  }
}
