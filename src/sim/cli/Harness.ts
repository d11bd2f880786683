/** What the command line works on: a way to simulate, and the names of what it promises. Threads load it by its URL. */
import type { Quota } from "../Campaign.ts"
import type { Simulate } from "../Run.ts"

export interface Harness {
  readonly simulate: Simulate
  readonly invariants: ReadonlyArray<{ readonly name: string; readonly promise: string }>
  readonly quotas: ReadonlyArray<Quota & { readonly meaning: string }>
}

/** Where a harness lives, and what belongs to it. */
export interface Place {
  /** Of the module that exports `harness`. */
  readonly module: URL
  /** Of the modules that export it on another store, by the names of these. */
  readonly stores?: { readonly [name: string]: URL }
  /** What `module` runs on, if it is none of the usual. */
  readonly store?: string
  /** Of the folder with scenario files. */
  readonly scenarios: URL
  /** Of the folder with plans of bugs that were found. */
  readonly corpus: URL
  /** Of the folder with planted bugs. */
  readonly mutants: URL
  /** Of the package: planted bugs are patches of a copy of it. */
  readonly root: URL
  /** How the command line is called, for lines that repeat a run. */
  readonly command: string
  /** The entry point, below `root`: what a copy with a planted bug runs. */
  readonly main: string
  /** How long one run may take, if not as long as usual, in milliseconds. */
  readonly patienceMs?: number
  /** What a copy is made of, below `root`, beside the dependencies. */
  readonly sources: ReadonlyArray<string>
}

export const load = async (module: URL): Promise<Harness> =>
  ((await import(module.href)) as { readonly harness: Harness }).harness
