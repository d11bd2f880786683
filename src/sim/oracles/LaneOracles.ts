/** The order of a lane: who comes in, who has his turn, who is done. */
import type { Invariant } from "../../domain/Invariant.ts"
import { fine } from "./Oracle.ts"
import type { LaneTrack } from "./LaneTrack.ts"
import type { OperationTrack } from "./OperationTrack.ts"

const laneOrder: Invariant<OperationTrack> = {
  name: "lane-order",
  promise: "Operations of a lane succeed in the order of their places, and whoever comes in, or comes back, is the last.",
  check: ({ before, ended, entered, lane, operation }) => {
    if (operation === null || lane === null) return fine
    const { seq, state } = operation
    if (entered && seq <= lane.lastEntered) return [`it came in at ${seq}, and ${lane.lastEntered} was there before`]
    // Born at its end, it never stood in line.
    if (!ended || before === null || state !== "succeeded") return fine
    const { head, lastSucceeded } = lane
    const problems: Array<string> = []
    if (head !== null && head.seq < seq) problems.push(`it succeeded at ${seq} while ${head.id} waits at ${head.seq}`)
    if (seq <= lastSucceeded) problems.push(`it succeeded at ${seq} after ${lastSucceeded} had`)
    return problems
  }
}

const laneHasItsHead: Invariant<LaneTrack> = {
  name: "lane-has-its-head",
  promise: "While anybody waits in a lane the first is ready: the lane is handed over in the commit that frees it.",
  check: ({ head }) => head === null || head.ready ? fine : [`${head.id} is the first, and not ready`]
}

export const laneOrderOracles: ReadonlyArray<Invariant<OperationTrack>> = [laneOrder]
export const laneOracles: ReadonlyArray<Invariant<LaneTrack>> = [laneHasItsHead]
