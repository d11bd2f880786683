/** Many sequences on one server: each compared, what differs made small, and everything counted. */
import { Effect, type Redacted } from "effect"
import { compare, type Compared, type Difference } from "./compare.ts"
import { generate } from "./generate.ts"
import { isError } from "./history.ts"
import type { Sequence } from "./sequence.ts"
import * as Server from "./server.ts"
import { shrink } from "./shrink.ts"

export interface Options {
  readonly url: Redacted.Redacted
  readonly seed: string
  readonly sequences: number
  /** Compared before any other. */
  readonly kept: ReadonlyArray<Sequence>
  /** How many are compared at the same time, each on connections of its own. */
  readonly lanes: number
  /** It ends when so many have been found. */
  readonly most: number
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
  readonly sequences: number
  readonly kept: number
  readonly found: ReadonlyArray<Found>
  /** What Postgres did in them. A comparison of what never happens proves nothing. */
  readonly counts: Readonly<Record<string, number>>
}

export const run = Effect.fnUntraced(function*({ kept, lanes, most, say, seed, sequences, url }: Options) {
  const counts = new Map<string, number>()
  const found: Array<Found> = []
  let next = -kept.length
  let done = 0
  const work = Effect.fnUntraced(function*(number: number) {
    const lane = yield* Server.make(url, number)
    while (next < sequences && found.length < most) {
      const index = next++
      const sequence = index < 0 ? kept[index + kept.length]! : generate(seed, index)
      const compared = yield* compare(lane, sequence)
      count(counts, compared)
      if (compared.difference !== null) {
        const small = yield* shrink(lane, compared.difference)
        found.push({ ...small, from: sequence.steps.length })
      }
      if (index >= 0 && ++done % 2_000 === 0 && say !== undefined) yield* say(`${done} sequences, ${found.length} differ`)
    }
  }, Effect.scoped)
  yield* Effect.forEach(Array.from({ length: lanes }, (_, lane) => lane), work, { concurrency: lanes, discard: true })
  return { sequences: done, kept: kept.length, found, counts: Object.fromEntries([...counts].toSorted()) } satisfies Outcome
})

const count = (counts: Map<string, number>, { attempts, server }: Compared): void => {
  const add = (name: string, amount = 1) => counts.set(name, (counts.get(name) ?? 0) + amount)
  add("asked again", attempts - 1)
  for (const { step, told, waits } of server.moments) {
    add("steps")
    add(`do ${step.act.do}`)
    if (waits.some(({ on }) => on === step.on)) add("waits")
    if (waits.length === 2) add("two wait")
    for (const { on, what } of told) {
      if (on !== step.on) add("answers after a wait")
      if (isError(what)) add(`error ${what}`)
    }
  }
}
