/** A run for people: who was alive when, who asked whom, what went wrong, and at which moment a promise was broken. */
import { operationName } from "./CommitWords.ts"
import { type Fault, type FaultKind, faultKinds, nameOf } from "./Faults.ts"
import type { Run } from "./Run.ts"
import type { TraceEvent } from "./Trace.ts"

export type LaneKind = "client" | "gate" | "process" | "world" | "store" | "queue" | "provider" | "index"

export interface Lane {
  readonly name: string
  readonly kind: LaneKind
}

/** One incarnation of a process, from its start to its end, by places in `moments`. */
export interface Life {
  readonly lane: number
  readonly name: string
  readonly from: number
  readonly to: number
  readonly end: "crash" | "exit" | "alive"
}

export interface Moment {
  /** Milliseconds of virtual time. */
  readonly at: number
  readonly step: number
  /** Whose doing it is. */
  readonly lane: number
  /** Whom it concerns as well: where a request arrives, and whence an answer comes. */
  readonly peer: number | null
  readonly actor: string
  readonly kind: TraceEvent["kind"] | "violation"
  readonly label: string
  readonly detail: string
  readonly fault: FaultKind | null
}

export interface Broken {
  readonly invariant: string
  readonly promise: string
  readonly id: string
  readonly detail: string
}

export interface Timeline {
  readonly lanes: ReadonlyArray<Lane>
  readonly lives: ReadonlyArray<Life>
  readonly moments: ReadonlyArray<Moment>
  readonly broken: ReadonlyArray<Broken>
}

export interface TimelineOptions {
  /** The promise of each invariant, by its name. */
  readonly promises: ReadonlyMap<string, string>
}

/** Of a run that has kept its trace. A fiber's own turns are left out: they say nothing. */
export const timeline = (run: Run, { promises }: TimelineOptions): Timeline => {
  const events = run.trace.filter(({ kind }) => kind !== "task")
  const lanes = lanesOf(events)
  const place = new Map(lanes.map(({ name }, index) => [name, index]))
  const faults = faultsOf(events, run.fired)
  const laneOf = (actor: string): number => place.get(nameIn(actor)) ?? place.get("world") ?? 0
  const moments = events.map((event, index): Moment => {
    const { actor, at, detail, kind, label, step } = event
    const fault = faults.get(index)
    if (fault !== undefined) return { at, step, lane: laneOf(fault.actor), peer: null, kind, ...faultWords(fault) }
    const own = laneOf(actor)
    // What is committed happens in the store, because of somebody.
    const [lane, peer] = isCommit(event)
      ? [place.get("store") ?? own, own]
      : [own, isTraffic(event) ? place.get(peerOf(event.label)) ?? null : null]
    return { at, step, lane, peer, actor, kind, label, detail, fault: null }
  })
  const last = moments.at(-1)
  const broken = run.violations.map(({ detail, id, invariant }) => ({
    invariant, promise: promises.get(invariant) ?? "", id: named(id, moments), detail
  }))
  const ends = broken.map(({ detail, id, invariant }): Moment => ({
    at: run.virtualMs,
    step: run.steps,
    lane: last?.lane ?? 0,
    peer: null,
    actor: last?.actor ?? "world",
    kind: "violation",
    label: invariant,
    detail: `${id}: ${detail}`,
    fault: null
  }))
  const all = [...moments, ...ends]
  return { lanes, lives: livesOf(all), moments: all, broken }
}

const faultWords = ({ actor, index, kind, label }: Fault): Pick<Moment, "actor" | "label" | "detail" | "fault"> =>
  ({ actor, label: kind, detail: `${label}, number ${index}`, fault: kind })

/** An operation by the name that it has in the timeline, as well. */
const named = (id: string, moments: ReadonlyArray<Moment>): string => {
  const name = operationName(id)
  return id !== name && moments.some(({ detail }) => detail.includes(name)) ? `${id} (${name})` : id
}

/** Requests and answers: they have two ends. */
const isTraffic = ({ kind }: TraceEvent): boolean => kind === "arrive" || kind === "reply"

const isCommit = ({ kind, label }: TraceEvent): boolean => kind === "note" && label === "committed"

/** By what a label begins with. Whatever else is asked is asked of the database. */
const peers: ReadonlyArray<readonly [RegExp, string, LaneKind]> = [
  [/^client\./, "gate", "gate"],
  [/^queue\./, "queue", "queue"],
  [/^provider\./, "provider", "provider"],
  [/^(vectors|index)\./, "vector index", "index"],
  [/^/, "store", "store"]
]

const peerOf = (label: string): string => peers.find(([pattern]) => pattern.test(label))![1]

/** `worker-1#2` is an incarnation of `worker-1`. */
const nameIn = (actor: string): string => actor.replace(/#\d+$/, "")

const laneKinds: ReadonlyArray<LaneKind> = ["client", "gate", "process", "world", "store", "queue", "provider", "index"]

const kindOf = (name: string): LaneKind =>
  name === "world" ? "world" : name.startsWith("client") ? "client" : "process"

const lanesOf = (events: ReadonlyArray<TraceEvent>): ReadonlyArray<Lane> => {
  const lanes = new Map<string, LaneKind>()
  for (const event of events) {
    lanes.set(nameIn(event.actor), kindOf(nameIn(event.actor)))
    if (isTraffic(event)) {
      const [, name, kind] = peers.find(([pattern]) => pattern.test(event.label))!
      lanes.set(name, kind)
    }
  }
  return [...lanes].map(([name, kind]) => ({ name, kind })).toSorted((one, other) =>
    laneKinds.indexOf(one.kind) - laneKinds.indexOf(other.kind) || (inOrder(one.name) < inOrder(other.name) ? -1 : 1)
  )
}

/** The tenth comes after the ninth. */
const inOrder = (name: string): string => name.replace(/\d+/, (digits) => digits.padStart(6, "0"))

/** Which events are faults: those that name the next fault that fired. */
const faultsOf = (events: ReadonlyArray<TraceEvent>, fired: ReadonlyArray<Fault>): ReadonlyMap<number, Fault> => {
  const found = new Map<number, Fault>()
  let next = 0
  events.forEach(({ detail, kind, label }, index) => {
    const fault = fired[next]
    if (fault === undefined || kind !== "note" || label !== fault.kind || detail !== nameOf(fault)) return
    found.set(index, fault)
    next++
  })
  return found
}

const livesOf = (moments: ReadonlyArray<Moment>): ReadonlyArray<Life> => {
  const open = new Map<string, { readonly lane: number; readonly from: number }>()
  const lives: Array<Life> = []
  moments.forEach(({ actor, kind, lane }, index) => {
    if (kind === "spawn") open.set(actor, { lane, from: index })
    const life = open.get(actor)
    if ((kind !== "crash" && kind !== "exit") || life === undefined) return
    lives.push({ ...life, name: actor, to: index, end: kind })
    open.delete(actor)
  })
  const rest = [...open].map(([name, life]): Life => ({ ...life, name, to: moments.length - 1, end: "alive" }))
  return [...lives, ...rest]
}

/** The whole run as text: one column for each lane, one line for each moment. */
export const text = (run: Run, options: TimelineOptions): string => {
  const shown = timeline(run, options)
  const { lanes, moments } = shown
  const header = lanes.map(({ name }, index) => `${letterOf(index)}  ${name}`)
  const columns = `${"ms".padStart(12)} ${"step".padStart(7)}  ${lanes.map((_, index) => letterOf(index)).join(" ")}`
  return [...summary(run, shown), "", ...header, "", columns, ...lines(shown, moments), ""].join("\n")
}

const letterOf = (lane: number): string => String.fromCharCode("A".charCodeAt(0) + lane % 26)

/** What everybody wants to know first. */
export const summary = (run: Run, { broken }: Pick<Timeline, "broken">): ReadonlyArray<string> => [
  ...broken.flatMap(({ detail, id, invariant, promise }) =>
    [`BROKEN  ${invariant}: ${id}: ${detail}`, `        ${promise}`]),
  ...(broken.length === 0 ? [`HELD    every invariant${unseen(run.spec)}`] : []),
  `seed    ${run.spec.seed} (${run.spec.engine})`,
  `ended   after ${run.virtualMs.toFixed(3)} ms and ${run.steps} steps, hash ${run.hash}`,
  ...run.fired.slice(0, faultsMax).map((fault) => `fault   ${fault.kind} at ${nameOf(fault)}: ${faultKinds[fault.kind]}`),
  ...(run.fired.length > faultsMax ? [`        and ${run.fired.length - faultsMax} more`] : [])
]

/** What nobody looked at has not held. */
const unseen = ({ blind = [] }: Run["spec"]): string =>
  blind.length === 0 ? "" : ` but for those that nobody looked at: ${blind.join(", ")}`

/** More than these are no summary. */
const faultsMax = 20

/** Gaps without anything in them are one line, however long. */
const gapMs = 1_000

const lines = ({ lanes, lives }: Timeline, moments: ReadonlyArray<Moment>): ReadonlyArray<string> => {
  const alive = aliveAt(lanes.length, lives)
  return moments.flatMap((moment, index) => {
    const gap = index === 0 ? 0 : moment.at - moments[index - 1]!.at
    const up = alive(index)
    const cells = lanes.map(({ kind }, lane) => cell(moment, lane, kind, up.has(lane)))
    const place = `${moment.at.toFixed(3).padStart(12)} ${String(moment.step).padStart(7)}  ${cells.join(" ")}`
    const kind = moment.fault === null ? moment.kind : "fault"
    const words = [kind, moment.label, moment.detail].filter(Boolean).join(" ")
    const line = `${place}  ${moment.fault !== null || moment.kind === "violation" ? "!! " : ""}${words}`
    if (gap < gapMs) return [line]
    return [`${"".padStart(20)}  ${lanes.map(() => ":").join(" ")}  ${(gap / 1_000).toFixed(1)} s later`, line]
  })
}

const cell = ({ fault, kind, lane: own, peer }: Moment, lane: number, of: LaneKind, up: boolean): string => {
  if (lane === peer) return kind === "arrive" ? ">" : "<"
  if (lane !== own) return up ? "|" : of === "process" ? " " : "."
  if (fault !== null || kind === "violation") return "!"
  return kind === "crash" ? "X" : kind === "spawn" ? "o" : "*"
}

/** The lanes on which somebody is alive, asked in the order of moments. */
const aliveAt = (lanes: number, lives: ReadonlyArray<Life>): (index: number) => ReadonlySet<number> => {
  const byStart = lives.toSorted((one, other) => one.from - other.from)
  const until = Array.from({ length: lanes }, () => -1)
  let next = 0
  return (index) => {
    for (; next < byStart.length && byStart[next]!.from <= index; next++) {
      const { lane, to } = byStart[next]!
      until[lane] = Math.max(until[lane]!, to)
    }
    return new Set(until.flatMap((to, lane) => to >= index ? [lane] : []))
  }
}
