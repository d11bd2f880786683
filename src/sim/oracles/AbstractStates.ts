/**
 * Where a run has been, in few words: for each operation its state, whether it has a plan, how its money stands, whether
 * its input is kept, and whether anything of it waits to be projected. Who is who does not matter.
 */
import type { OperationTrack } from "./OperationTrack.ts"

export class AbstractStates {
  /** Of those that were passed through, each once, in the order of their first time. */
  readonly seen = new Set<number>()
  /** The sum over all operations: it does not depend on their order. */
  private sum = 0

  take(touched: ReadonlyArray<OperationTrack>): void {
    for (const track of touched) {
      const word = track.operation === null ? 0 : avalanche(codeOf(track))
      this.sum = (this.sum + word - track.word) | 0
      track.word = word
    }
    this.seen.add(avalanche(this.sum ^ 0x5bd1e995))
  }
}

const states = ["pending", "running", "succeeded", "failed"] as const
const monies = ["open", "charged", "refunded"] as const

/** From 1, so that no operation is worth nothing. */
const codeOf = ({ authorizations, hasInput, hasPlan, operation, waiting }: OperationTrack): number => {
  const latest = authorizations.at(-1)
  const money = latest === undefined ? 0 : 1 + monies.indexOf(latest.state)
  const flags = (hasPlan ? 1 : 0) + (hasInput ? 2 : 0) + (waiting > 0 ? 4 : 0)
  return 1 + states.indexOf(operation!.state) + 4 * money + 16 * flags
}

/** 32 bits, each of which depends on all of them. */
const avalanche = (word: number): number => {
  const once = Math.imul(word ^ (word >>> 16), 0x85ebca6b)
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35)
  return (twice ^ (twice >>> 16)) >>> 0
}
