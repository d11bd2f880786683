/**
 * Whether Postgres and the model agree on a sequence. Where Postgres is free, any of its outcomes will do: which of those
 * in a circle gives up depends on when each of them looks, so that the model is given every order of looks; rows come in
 * any order where none is asked for, so that it is given several; and who goes first when several wake at once is seen by
 * asking again.
 */
import { Effect } from "effect"
import { follow, type History, type Moment } from "./history.ts"
import type { AnySequence, Kind, Luck, Side, StepOf } from "./kind.ts"

/** Both databases, for sequences of one kind. */
export interface Arena<S extends AnySequence> {
  readonly kind: Kind<S>
  /** The tables of Postgres as every sequence finds them, and nobody in a transaction. */
  readonly begin: Effect.Effect<Side<StepOf<S>>>
}

export interface Difference<S extends AnySequence = AnySequence> {
  readonly sequence: S
  readonly server: History
  readonly model: History
  /** The first moment that is not the same. As many as there are, if only the rows differ in the end. */
  readonly at: number
}

export interface Compared<S extends AnySequence> {
  /** Null: they agree. */
  readonly difference: Difference<S> | null
  /** What Postgres did, and what the model had to decide when it did the same, for counting. */
  readonly server: History
  readonly notes: ReadonlyArray<string>
  /** How often Postgres was asked. */
  readonly attempts: number
}

/** How often Postgres is asked before its outcome counts as the only one. */
const patience = 12
/** How many times as many draws the model has the last time. */
const lastDraws = 8
/** The most orders of looks that the model is given. */
const mostOrders = 64

export const compare = Effect.fnUntraced(function*<S extends AnySequence>({ begin, kind }: Arena<S>, sequence: S) {
  /** The model has one history for each luck, however often Postgres is asked. */
  const known = new Map<string, readonly [History, ReadonlyArray<string>]>()
  const modelled = Effect.fnUntraced(function*(luck: Luck) {
    const name = `${luck.draw} ${[...luck.pauses].join()}`
    const before = known.get(name)
    if (before !== undefined) return before
    const side = kind.model(sequence, luck)
    const history = yield* follow(kind, side, sequence)
    const made = [history, side.notes ?? []] as const
    known.set(name, made)
    return made
  })
  let difference: Difference<S> | null = null
  for (let attempts = 1; ; attempts++) {
    const server = yield* follow(kind, yield* begin, sequence)
    // Plans and orders that Postgres rarely takes are rarely drawn: before it counts as a difference the model has more draws.
    const draws = attempts < patience ? kind.draws : lastDraws * kind.draws
    for (const luck of chances(server.moments, draws)) {
      const [model, notes] = yield* modelled(luck)
      const at = firstDifference(server, model)
      if (at === null) return { difference: null, server, notes, attempts } satisfies Compared<S>
      if (difference === null || at > difference.at) difference = { sequence, server, model, at }
    }
    if (attempts >= patience) return { difference, server, notes: [], attempts } satisfies Compared<S>
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

const isVictim = (what: string): boolean => /\b40P01\b|"contention"/.test(what)

function* chances(moments: ReadonlyArray<Moment>, draws: number): Generator<Luck> {
  for (let draw = 0; draw < draws; draw++) for (const pauses of orders(moments)) yield { pauses, draw }
}

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
