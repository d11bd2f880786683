/**
 * Whether Postgres and the model agree on a sequence. Where Postgres is free, any of its outcomes will do: which of those
 * in a circle gives up depends on when each of them looks, so that the model is given every order of looks; and who goes
 * first when several wake at once is seen by asking again.
 */
import { Effect } from "effect"
import { follow, type History, type Moment } from "./history.ts"
import * as Model from "./model.ts"
import type { Sequence } from "./sequence.ts"
import type { Lane } from "./server.ts"

export interface Difference {
  readonly sequence: Sequence
  readonly server: History
  readonly model: History
  /** The first moment that is not the same. As many as there are, if only the rows differ in the end. */
  readonly at: number
}

export interface Compared {
  /** Null: they agree. */
  readonly difference: Difference | null
  /** What Postgres did, for counting. */
  readonly server: History
  /** How often Postgres was asked. */
  readonly attempts: number
}

/** How often Postgres is asked before its outcome counts as the only one. */
const patience = 12
/** The most orders of looks that the model is given. */
const mostOrders = 64

export const compare = Effect.fnUntraced(function*(lane: Lane, sequence: Sequence) {
  let difference: Difference | null = null
  for (let attempts = 1; ; attempts++) {
    const server = yield* follow(yield* lane.begin, sequence)
    const candidates: Array<Difference> = []
    for (const pauses of orders(server.moments)) {
      const model = yield* follow(Model.make(sequence.name, pauses), sequence)
      const at = firstDifference(server, model)
      if (at === null) return { difference: null, server, attempts } satisfies Compared
      candidates.push({ sequence, server, model, at })
    }
    const closest = candidates.reduce((one, other) => other.at > one.at ? other : one)
    if (difference === null || closest.at > difference.at) difference = closest
    if (attempts >= patience) return { difference, server, attempts } satisfies Compared
  }
})

/** The first moment at which they differ; the number of moments if only what is left does; null if nothing does. */
const firstDifference = (one: History, other: History): number | null => {
  const length = Math.max(one.moments.length, other.moments.length)
  for (let at = 0; at < length; at++) {
    if (JSON.stringify(one.moments[at]) !== JSON.stringify(other.moments[at])) return at
  }
  return one.rows === other.rows ? null : length
}

const isVictim = (what: string): boolean => what === "40P01"

/** Before which moments those who wait already must have looked in vain, for the same to give up as here. */
const orders = (moments: ReadonlyArray<Moment>): ReadonlyArray<ReadonlySet<number>> => {
  let all: ReadonlyArray<ReadonlySet<number>> = [new Set()]
  for (const [at, { told }] of moments.entries()) {
    for (const { on } of told.filter(({ what }) => isVictim(what))) {
      // Its last wait has begun at this moment, or at any since it was asked.
      const asked = moments.findLastIndex(({ step }, index) => index <= at && step.on === on)
      const begun = Array.from({ length: at - asked + 1 }, (_, index) => at - index)
      all = begun.flatMap((moment) => all.map((pauses) => new Set([...pauses, moment]))).slice(0, mostOrders)
    }
  }
  return all
}
