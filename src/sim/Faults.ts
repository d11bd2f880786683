/**
 * What can go wrong, where, and whether it does. A fault is a kind at a point in logical coordinates, so that it can be
 * written down, taken away and put back without moving any other.
 */
import type { Key } from "./Keyed.ts"

/** Every kind of fault, with what it does. Names are those of plans and reports. */
export const faultKinds = {
  crash_before: "the process dies before its request leaves",
  crash_after: "the process dies when its request has been served, before the answer",
  pause: "the process stands still, mostly for longer than a lease, and then goes on",
  terminate: "SIGTERM: the process drains, and is killed if that takes too long",
  clock_forward: "the wall clock of a machine jumps ahead",
  clock_back: "the wall clock of a machine jumps back",
  clock_drift: "the clocks of a machine run too fast or too slow",
  lost_before_send: "the connection is gone before the statement leaves",
  in_doubt: "the statement arrives, the connection breaks before the answer",
  lost_acknowledgement: "the commit is applied, its acknowledgement never comes",
  late_commit: "the connection breaks, the commit is applied later",
  serialization_failure: "the database asks to come back: a serialization failure",
  deadlock: "the database asks to come back: a deadlock",
  slow_statement: "the answer to a statement takes long",
  database_down: "the database refuses everybody for a while",
  delivery_dropped: "a hint is lost",
  delivery_duplicated: "a hint comes twice",
  delivery_delayed: "a hint comes late",
  delivery_reordered: "a hint overtakes those before it",
  deliveries_lost: "every hint is lost for a while",
  listener_disconnected: "a listener hears nothing for a while",
  provider_slow: "the model takes longer than a lease",
  provider_timeout_before: "the model was never reached, and the caller waited",
  provider_timeout_after: "the model worked, and its answer is lost",
  provider_late: "the model answers after the caller has given up",
  provider_rate_limited: "429 without Retry-After",
  provider_retry_after: "429 with Retry-After",
  provider_unavailable: "5xx",
  provider_refusal: "the model refuses",
  provider_invalid: "truncated or invalid output",
  provider_other_facts: "other facts than on the last call for the same input",
  provider_hallucination: "a change of something that the model was never shown",
  index_down: "the vector index does not answer",
  index_slow: "the vector index takes long",
  index_lost_reply: "the vector index applies a write, its reply is lost",
  client_retry_before: "the client asks again before it has an answer",
  client_retry_after: "the client asks again after it has an answer",
  client_changed_payload: "the client uses its key for something else",
  client_gives_up: "the client waits no more, and asks again much later or never",
  client_burst: "many clients ask with one key at once",
  client_regrets: "the client cancels before it hears of its manual retry",
  client_starts_over: "the client repeats its add when it has retried by hand",
  cancel: "somebody cancels an operation",
  manual_retry: "somebody retries a failed operation",
  edit: "somebody edits a memory",
  delete: "somebody deletes a memory",
  purge: "somebody purges the input of an operation",
  credit_out: "credit runs out",
  top_up: "credit is granted",
  key_revoked: "the caller's API key is revoked",
  retention: "the inputs of failed operations expire at once"
} as const

export type FaultKind = keyof typeof faultKinds

/** Somewhere that something can go wrong. */
export interface Point {
  /** Whose doing it is: a process incarnation, or `world`. */
  readonly actor: string
  /** What is done: `operations.save`, `provider.extract`, `tick`. */
  readonly label: string
  /** How many of these the actor has done before. */
  readonly index: number
}

/** Something that went wrong, or is to. */
export interface Fault extends Point {
  readonly kind: FaultKind
  /** The point that its details were drawn for: how long it lasts, how far it goes. Absent: its own. */
  readonly like?: Point
}

/** A fault that is looked for by its time: it strikes whoever comes by first, at that place and not before. */
export interface Moment extends Fault {
  readonly notBefore: number
}

/** Where it may strike, and what may: all that a sweep needs to know. */
export interface Occasion extends Point {
  readonly kinds: ReadonlyArray<FaultKind>
}

export interface Faults {
  /** What strikes here at this time, if anything does: one of these kinds. Asked once for each point. */
  readonly strike: (point: Point, kinds: ReadonlyArray<FaultKind>, now: number) => Fault | null
  /** Those that were planned for points that were not reached, or did not offer them: of a stale plan. */
  readonly unused: () => ReadonlyArray<Fault>
}

/** Nothing goes wrong. */
export const none: Faults = { strike: () => null, unused: () => [] }

/** How likely each kind is at each of its points. Absent: never. */
export type Rates = Readonly<Partial<Record<FaultKind, number>>>

/** Each point is drawn by itself, so that no draw moves another. */
export const drawn = (key: Key, rates: Rates): Faults => ({
  strike: (point, kinds) => {
    for (const kind of kinds) {
      const rate = rates[kind]
      if (rate !== undefined && key.at(kind, point.actor, point.label, point.index).chance(rate)) return { kind, ...point }
    }
    return null
  },
  unused: () => []
})

/** Exactly these faults. */
export const planned = (faults: ReadonlyArray<Fault>): Faults => {
  const waiting = new Map(faults.map((fault) => [nameOf(fault), fault]))
  return {
    strike: (point, kinds) => {
      const fault = waiting.get(nameOf(point))
      if (fault === undefined || !kinds.includes(fault.kind)) return null
      waiting.delete(nameOf(point))
      return fault
    },
    unused: () => [...waiting.values()]
  }
}

/**
 * These faults, each at its time and not at its point: where some are left out, all that comes later is counted anew,
 * but it still happens at about the same time. Only to find out what to write down.
 */
export const timed = (moments: ReadonlyArray<Moment>): Faults => {
  const waiting = new Map<string, Array<Moment>>()
  for (const moment of moments) waiting.set(placeOf(moment), [...waiting.get(placeOf(moment)) ?? [], moment])
  return {
    strike: (point, kinds, now) => {
      const line = waiting.get(placeOf(point)) ?? []
      const next = line.findIndex(({ kind, notBefore }) => notBefore <= now && kinds.includes(kind))
      if (next < 0) return null
      const [{ kind, ...moment }] = line.splice(next, 1) as [Moment]
      const like = moment.like ?? pointOf(moment)
      const { actor, index, label } = point
      return { kind, actor, label, index, ...nameOf(like) === nameOf(point) ? {} : { like } }
    },
    unused: () => [...waiting.values()].flat()
  }
}

/** What is written down strikes, at its time or at its point, or else whatever the key draws. */
export const decided = (
  { faults, moments }: { readonly faults?: ReadonlyArray<Fault>; readonly moments?: ReadonlyArray<Moment> },
  key: Key,
  rates: Rates
): Faults => moments !== undefined ? timed(moments) : faults !== undefined ? planned(faults) : drawn(key, rates)

const pointOf = ({ actor, index, label }: Point): Point => ({ actor, label, index })

/** Whatever incarnation does it, however often it has done it before. */
export const placeOf = ({ actor, label }: Point): string => `${actor.replace(/#.*/, "")}/${label}`

/** The point in one word. At most one fault strikes at a point. */
export const nameOf = ({ actor, index, label }: Point): string => `${actor}/${label}/${index}`

/** What belongs to one fault: how long it lasts, how far it goes. Nobody else draws from this key. */
export const keyOf = (key: Key, { actor, index, label }: Point, kind: FaultKind): Key =>
  key.of("fault").at(kind, actor, label, index)
