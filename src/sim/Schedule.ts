/**
 * Who goes next when several could. Every policy is a function of names, not of turns: an entry is known by its actor
 * and by its place among the entries of that actor.
 */
import type { Key } from "./Keyed.ts"

/** What a policy sees of something that is ready to run. */
export interface Candidate {
  readonly actor: { readonly id: string }
  /** Its place among the entries of its actor, from 0. */
  readonly index: number
  /** How often it was first in line and another one was chosen. */
  readonly overtaken: number
}

export interface Schedule {
  /** Which of at least two candidates, given in the order of their coming. */
  readonly choose: (ready: ReadonlyArray<Candidate>) => number
}

/** First come, first served: what every deviation is a deviation from. */
export const fifo: Schedule = { choose: () => 0 }

/** Any of them, each as likely as the other. */
export const random = (key: Key): Schedule => {
  const keyOf = perActor((id) => key.of("turn").of(id))
  return {
    choose: (ready) => {
      const head = ready[0]!
      return keyOf(head.actor.id).of(head.index).of(head.overtaken).below(ready.length)
    }
  }
}

export interface PctOptions {
  /** How many events in a certain order a bug may need: one less is how often somebody loses its priority. */
  readonly depth: number
  /** About how many choices between processes one run makes. `choices` tells it after a run. */
  readonly length: number
  /** Who goes first among the entries of one process. First come, first served unless given. */
  readonly within?: Schedule
}

/** A policy that counts the choices it had between different processes. */
export interface Pct extends Schedule {
  readonly choices: number
}

/**
 * Strict random priorities between processes (not between fibers), changed at `depth - 1` random moments: finds a bug
 * of that depth with a probability that has a lower bound, however long the run.
 */
export const pct = (key: Key, { depth, length, within = fifo }: PctOptions): Pct => {
  const changes = new Map<number, number>()
  for (let change = 1; change < depth; change++) changes.set(1 + key.of("change").of(change).below(length), change)
  const priorities = new Map<string, number>()
  const priorityOf = (id: string): number => {
    const known = priorities.get(id)
    if (known !== undefined) return known
    const drawn = 1 + key.of("priority").of(id).unit()
    priorities.set(id, drawn)
    return drawn
  }
  const leader = (ready: ReadonlyArray<Candidate>): string => {
    let best = ready[0]!.actor.id
    for (const { actor: { id } } of ready) if (priorityOf(id) > priorityOf(best)) best = id
    return best
  }
  let choices = 0
  return {
    get choices() {
      return choices
    },
    choose: (ready) => {
      if (ready.some(({ actor }) => actor.id !== ready[0]!.actor.id)) {
        const change = changes.get(++choices)
        if (change !== undefined) priorities.set(leader(ready), change - depth)
      }
      const first = leader(ready)
      const own = ready.filter(({ actor }) => actor.id === first)
      const chosen = own.length === 1 ? own[0]! : own[within.choose(own)]!
      return ready.indexOf(chosen)
    }
  }
}

/** Somebody went before the one who was first in line. */
export interface Deviation {
  readonly head: string
  readonly chosen: string
}

export const nameOf = ({ actor, index }: Candidate): string => `${actor.id}:${index}`

/** The same policy, written down as its deviations from first come, first served. */
export const recording = (schedule: Schedule, into: Array<Deviation>): Schedule => ({
  choose: (ready) => {
    const place = schedule.choose(ready)
    if (place > 0) into.push({ head: nameOf(ready[0]!), chosen: nameOf(ready[place]!) })
    return place
  }
})

/** A policy that can say which of its deviations had no occasion. */
export interface Replay extends Schedule {
  readonly unused: () => ReadonlyArray<Deviation>
}

/** First come, first served, but for these deviations. One without an occasion is left out: others still happen. */
export const replay = (deviations: ReadonlyArray<Deviation>): Replay => {
  const waiting = new Map<string, Array<string>>()
  for (const { chosen, head } of deviations) waiting.set(head, [...waiting.get(head) ?? [], chosen])
  return {
    choose: (ready) => {
      const wanted = waiting.get(nameOf(ready[0]!))
      if (wanted === undefined) return 0
      for (let next = 0; next < wanted.length; next++) {
        const place = ready.findIndex((candidate) => nameOf(candidate) === wanted[next])
        if (place <= 0) continue
        wanted.splice(next, 1)
        return place
      }
      return 0
    },
    unused: () => [...waiting].flatMap(([head, chosen]) => chosen.map((one) => ({ head, chosen: one })))
  }
}

/** One key for each actor, made when it is first asked for. */
const perActor = (make: (id: string) => Key): (id: string) => Key => {
  const keys = new Map<string, Key>()
  return (id) => {
    const known = keys.get(id)
    if (known !== undefined) return known
    const made = make(id)
    keys.set(id, made)
    return made
  }
}
