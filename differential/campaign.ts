/** Many sequences of one kind on one server: each compared, what differs made small, and everything counted. */
import { Clock, Effect, type Redacted } from "effect"
import { type Arena, compare, type Compared, type Difference } from "./compare.ts"
import type { AnySequence, Kind } from "./kind.ts"
import { shrink } from "./shrink.ts"

export interface Options<S extends AnySequence> {
  readonly kind: Kind<S>
  readonly url: Redacted.Redacted
  readonly seed: string
  readonly sequences: number
  /** No sequence is begun after so long, in milliseconds. */
  readonly forMs?: number
  /** Compared before any other. */
  readonly kept: ReadonlyArray<S>
  /** How many are compared at the same time, each on connections of its own. */
  readonly lanes: number
  /** It ends when so many have been found. */
  readonly most: number
  /** How many comparisons it may take to make one that differs small. */
  readonly tries: number
  readonly say?: (line: string) => Effect.Effect<void>
}

export interface Found {
  readonly difference: Difference
  /** How long the sequence was before it was made small. */
  readonly from: number
  /** How many comparisons that took. */
  readonly tries: number
}

export interface Outcome {
  readonly kind: string
  readonly sequences: number
  readonly kept: number
  readonly found: ReadonlyArray<Found>
  /** What Postgres did in them, and what came up. A comparison of what never happens proves nothing. */
  readonly counts: Readonly<Record<string, number>>
}

/** So many sequences later there is word of how far it is. */
const wordAfter = 2_000

export const run = Effect.fnUntraced(function*<S extends AnySequence>(options: Options<S>) {
  const { forMs = Infinity, kept, kind, lanes, most, say, seed, sequences, tries, url } = options
  const until = (yield* Clock.currentTimeMillis) + forMs
  const counts = new Map<string, number>()
  const found: Array<Found> = []
  let next = -kept.length
  let done = 0
  const work = Effect.fnUntraced(function*(lane: number) {
    const arena: Arena<S> = { kind, ...(yield* kind.connect(url, lane)) }
    while (next < sequences && found.length < most && (yield* Clock.currentTimeMillis) < until) {
      const index = next++
      const sequence = index < 0 ? kept[index + kept.length]! : kind.generate(seed, index)
      const compared = yield* compare(arena, sequence)
      count(counts, kind, compared)
      if (compared.difference !== null) {
        const small = yield* shrink(arena, compared.difference, tries)
        found.push({ ...small, from: sequence.steps.length })
      }
      if (index >= 0 && ++done % wordAfter === 0 && say !== undefined) {
        yield* say(`${done} sequences of ${kind.name}, ${found.length} differ`)
      }
    }
  }, Effect.scoped)
  yield* Effect.forEach(Array.from({ length: lanes }, (_, lane) => lane), work, { concurrency: lanes, discard: true })
  return {
    kind: kind.name,
    sequences: done,
    kept: kept.length,
    found,
    counts: Object.fromEntries([...counts].toSorted())
  } satisfies Outcome
})

const count = <S extends AnySequence>(counts: Map<string, number>, kind: Kind<S>, { attempts, notes, server }: Compared<S>): void => {
  const add = (name: string, amount = 1) => counts.set(name, (counts.get(name) ?? 0) + amount)
  add("asked again", attempts - 1)
  for (const note of notes) add(note)
  for (const { step, told, waits } of server.moments) {
    add("steps")
    add(`do ${step.act.do}`)
    if (waits.some(({ on }) => on === step.on)) add("waits")
    if (waits.length === 2) add("two wait")
    for (const { on, what } of told) {
      const topics = kind.topics(what)
      for (const topic of topics) add(topic)
      if (on !== step.on) add(`answers after a wait${topics[0] === undefined ? "" : `: ${topics[0]}`}`)
    }
  }
}
