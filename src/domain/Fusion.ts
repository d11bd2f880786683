/**
 * Reciprocal-rank fusion: several rankings become one, by ranks alone, so that scores of different kinds never meet.
 * Source: Cormack, Clarke, Büttcher, "Reciprocal Rank Fusion", SIGIR 2009.
 */

/** Damps the lead of the first ranks. The value of the paper. */
export const fusionK = 60

export interface Fused<A> {
  readonly item: A
  /** 1 for an item that is first in every list; 0 is never reached. */
  readonly score: number
}

/** Best first. Ties keep the order in which the lists name them. A repeat within a list counts at its best rank. */
export const fuse = <A>(rankings: ReadonlyArray<ReadonlyArray<A>>): ReadonlyArray<Fused<A>> => {
  const scores = new Map<A, number>()
  for (const ranking of rankings) {
    for (const [rank, item] of [...new Set(ranking)].entries()) {
      scores.set(item, (scores.get(item) ?? 0) + (fusionK + 1) / (fusionK + 1 + rank) / rankings.length)
    }
  }
  return Array.from(scores, ([item, score]) => ({ item, score })).toSorted((a, b) => b.score - a.score)
}
