/** One change of an operation as the database saw it, and the rules about who may make which. Pure. */
import { nameOf } from "./book.ts"
import type { Breach } from "./told.ts"

export interface Entry {
  /** The process that wrote it. */
  readonly writer: string
  readonly workspace: string
  readonly id: string
  readonly what: "changed" | "planned"
  readonly was: string
  readonly state: string
  readonly wasEpoch: number
  readonly epoch: number
  readonly failure: string | null
  /** Whether nobody held a lease that still lasted. */
  readonly free: boolean
}

export const journalRules = {
  "nobody-takes-what-is-held": "An operation is claimed when it is pending, or when the lease on it is over.",
  "only-the-holder-writes": "Whatever is written of an attempt is written by the process that claimed it, cancels apart."
} as const

/** What there was to see, in numbers: without a takeover or a retry, that nothing was wrong with them means little. */
export interface Seen {
  readonly changes: number
  readonly plans: number
  /** Claims of what a process held that was too silent. */
  readonly takeovers: number
  /** Failed operations that somebody ran again. */
  readonly retries: number
}

export const seenIn = (entries: ReadonlyArray<Entry>): Seen => ({
  changes: entries.length,
  plans: entries.filter(({ what }) => what === "planned").length,
  takeovers: entries.filter(({ epoch, was, wasEpoch }) => was === "running" && epoch !== wasEpoch).length,
  retries: entries.filter(({ state, was }) => was === "failed" && state === "pending").length
})

/** Entries are in the order of the database. */
export const journalBreaches = (entries: ReadonlyArray<Entry>): ReadonlyArray<Breach> => {
  const holders = new Map<string, string>()
  const found: Array<Breach> = []
  for (const entry of entries) {
    const { epoch, failure, free, id, was, wasEpoch, what, workspace, writer } = entry
    const breach = (rule: keyof typeof journalRules, detail: string) => found.push({ rule, workspace, about: id, detail })
    const name = nameOf(workspace, id)
    if (epoch !== wasEpoch) {
      if (was === "running" && !free) breach("nobody-takes-what-is-held", `${writer} took it from ${holders.get(name)}`)
      holders.set(name, writer)
      continue
    }
    if (was !== "running" || mayBeAnybodys(failure, free, entry.state)) continue
    const holder = holders.get(name)
    if (holder === writer) continue
    const deed = what === "planned" ? "froze a plan" : `made it ${entry.state}`
    breach("only-the-holder-writes", `${writer} ${deed} in epoch ${epoch}, which ${holder} had claimed`)
  }
  return found
}

/** A cancel, and the end of spent attempts of which the last is over. */
const mayBeAnybodys = (failure: string | null, free: boolean, state: string): boolean =>
  state === "failed" && (failure === "cancelled" || failure === "attempts_exhausted" && free)
