/** What goes wrong when: a function of the seed and of how long a run takes. Nothing here does anything. */
import { type Key, root } from "../src/sim/Keyed.ts"
import type { Cut } from "./link.ts"

export type Fault =
  /** SIGKILL, or SIGTERM, and a start after a while. */
  | { readonly _tag: "Kill" | "Stop"; readonly member: string; readonly downMs: number }
  /** SIGSTOP, and SIGCONT: for a worker, past its lease. */
  | { readonly _tag: "Pause"; readonly member: string; readonly ms: number }
  /** SIGKILL at the very moment of a commit that moves money, which never arrives or stands, and a start after a while. */
  | { readonly _tag: "Die"; readonly member: string; readonly where: "before-commit" | "after-commit"; readonly downMs: number }
  /** The next connections of a process are cut where it hurts. */
  | { readonly _tag: "Cut"; readonly member: string; readonly where: Cut; readonly ofMoney: boolean; readonly count: number }
  | { readonly _tag: "Delay"; readonly member: string; readonly delayMs: number; readonly ms: number }
  | { readonly _tag: "BlackHole"; readonly member: string; readonly ms: number; readonly end: "deliver" | "break" }
  /**
   * Nothing of a worker passes until others have taken over what it had, and then all of it arrives. The model answers it
   * meanwhile, so that it has something to write, and is slow for those who ask again.
   */
  | { readonly _tag: "Overtake"; readonly member: string; readonly gatherMs: number; readonly ms: number }
  /** No notification reaches anybody. */
  | { readonly _tag: "Deafen"; readonly ms: number }
  /** `pg_terminate_backend` for a share of all sessions. */
  | { readonly _tag: "Terminate"; readonly share: number }
  /** `pg_ctl stop -m immediate`, and a start after a while. */
  | { readonly _tag: "Crash"; readonly downMs: number }
  | { readonly _tag: "Provider"; readonly mood: "hang" | "down" | "limited"; readonly ms: number }
  /** The table of the vectors is away. */
  | { readonly _tag: "IndexDown"; readonly ms: number }
  /** Credit for the workspace that runs out of it. Not a fault, but a change from outside like one. */
  | { readonly _tag: "TopUp"; readonly credits: number }

export interface Timed {
  readonly atMs: number
  readonly fault: Fault
}

export interface Cast {
  readonly apis: ReadonlyArray<string>
  readonly workers: ReadonlyArray<string>
  readonly leaseMs: number
}

/** A name for counting. */
export const kindOf = (fault: Fault): string => {
  const role = "member" in fault ? `${fault.member.replace(/-?\d+$/, "")} ` : ""
  switch (fault._tag) {
    case "Cut":
      return `${role}cut ${fault.where}${fault.ofMoney ? " of money" : ""}`
    case "Die":
      return `${role}dies ${fault.where}`
    case "BlackHole":
      return `${role}black hole, then ${fault.end}`
    case "Provider":
      return `provider ${fault.mood}`
    default:
      return `${role}${fault._tag.replace(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase()}`
  }
}

type Draw = (key: Key, cast: Cast) => Fault

const oneOf = (key: Key, names: ReadonlyArray<string>): string => names[key.of("who").below(names.length)]!

const anyone = (key: Key, { apis, workers }: Cast) => oneOf(key, [...apis, ...workers])

const overtake: Draw = (key, { leaseMs, workers }) => ({
  _tag: "Overtake",
  member: oneOf(key, workers),
  gatherMs: key.of("gather").between(100, 500),
  ms: leaseMs + key.of("ms").between(1_500, 3_000)
})

/** Every kind of fault, as a card that is drawn with its numbers. */
const deck: ReadonlyArray<Draw> = [
  ...(["Kill", "Stop"] as const).flatMap((_tag): ReadonlyArray<Draw> => [
    (key, { workers }) => ({ _tag, member: oneOf(key, workers), downMs: key.of("down").between(0, 2_000) }),
    (key, { apis }) => ({ _tag, member: oneOf(key, apis), downMs: key.of("down").between(0, 1_000) })
  ]),
  ...(["before-commit", "after-commit"] as const).flatMap((where): ReadonlyArray<Draw> => [
    (key, { workers }) => ({ _tag: "Die", member: oneOf(key, workers), where, downMs: key.of("down").between(0, 2_000) }),
    (key, { apis }) => ({ _tag: "Die", member: oneOf(key, apis), where, downMs: key.of("down").between(0, 1_000) })
  ]),
  ...Array.from({ length: 2 }, (): Draw => overtake),
  (key, { leaseMs, workers }) => ({ _tag: "Pause", member: oneOf(key, workers), ms: leaseMs + key.of("ms").between(300, 2_500) }),
  (key, { apis }) => ({ _tag: "Pause", member: oneOf(key, apis), ms: key.of("ms").between(300, 2_500) }),
  ...(["before-commit", "after-commit"] as const).flatMap((where): ReadonlyArray<Draw> => [
    (key, { workers }) => ({ _tag: "Cut", member: oneOf(key, workers), where, ofMoney: false, count: key.of("count").between(1, 4) }),
    (key, { workers }) => ({ _tag: "Cut", member: oneOf(key, workers), where, ofMoney: true, count: key.of("count").between(2, 4) }),
    (key, { apis }) => ({ _tag: "Cut", member: oneOf(key, apis), where, ofMoney: true, count: key.of("count").between(1, 4) })
  ]),
  (key, cast) => ({ _tag: "Cut", member: anyone(key, cast), where: "reply", ofMoney: false, count: key.of("count").between(1, 6) }),
  (key, cast) => ({
    _tag: "Delay",
    member: anyone(key, cast),
    delayMs: key.of("delay").between(20, 400),
    ms: key.of("ms").between(500, 3_000)
  }),
  (key, cast) => ({ _tag: "BlackHole", member: anyone(key, cast), ms: key.of("ms").between(500, 6_000), end: "deliver" }),
  (key, cast) => ({ _tag: "BlackHole", member: anyone(key, cast), ms: key.of("ms").between(500, 6_000), end: "break" }),
  (key) => ({ _tag: "Deafen", ms: key.of("ms").between(1_000, 5_000) }),
  (key) => ({ _tag: "Terminate", share: key.of("share").choose([0.3, 1]) }),
  (key) => ({ _tag: "Crash", downMs: key.of("down").between(0, 1_500) }),
  ...(["hang", "down", "limited"] as const).map((mood): Draw => (key) => ({
    _tag: "Provider",
    mood,
    ms: key.of("ms").between(500, 3_000)
  })),
  (key) => ({ _tag: "IndexDown", ms: key.of("ms").between(1_000, 3_000) }),
  (key) => ({ _tag: "TopUp", credits: key.of("credits").between(5, 60) })
]

/** How many cards there are. */
export const cards = deck.length

/** The first fault comes after this long, so that there is something to break. */
const calmMs = 800

/** Every card once before any card again, one in each `gapMs`: so that all of them come in `cards` gaps, whatever the seed. */
export const schedule = (seed: string, forMs: number, cast: Cast, gapMs = 1_200): ReadonlyArray<Timed> => {
  const timed: Array<Timed> = []
  for (let index = 0;; index++) {
    const key = root(seed).of("fault").of(index)
    const round = root(seed).of("deck").of(Math.floor(index / deck.length)).shuffled(deck)
    const atMs = Math.round(calmMs + gapMs * (index + 0.9 * key.of("gap").unit()))
    if (atMs >= forMs) return timed
    timed.push({ atMs, fault: round[index % deck.length]!(key, cast) })
  }
}
