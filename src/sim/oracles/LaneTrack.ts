/** The operations of one lane that are not terminal, and how far the lane has come. */
import type { Lane, LaneRef, WorkspaceId } from "../../domain/Ids.ts"
import type { Operation } from "../../domain/Operation.ts"
import type { LaneSlice } from "../../domain/Snapshot.ts"
import { isLive, type OperationTrack } from "./OperationTrack.ts"

export class LaneTrack implements LaneSlice {
  readonly ref: LaneRef
  readonly operations: Array<Operation> = []
  touched = 0
  /** The last place that was given to an operation that waits its turn. */
  lastEntered = -1
  /** The place of the last operation that waited its turn and succeeded. */
  lastSucceeded = -1

  constructor(workspaceId: WorkspaceId, lane: Lane) {
    this.ref = { workspaceId, lane }
  }

  replace(before: Operation | null, after: Operation | null): void {
    const place = before === null ? -1 : this.operations.indexOf(before)
    if (place < 0) {
      if (isLive(after)) this.operations.push(after!)
    } else if (isLive(after)) this.operations[place] = after!
    else this.operations.splice(place, 1)
  }

  /** The first of those that wait; null when nobody does. */
  get head(): Operation | null {
    let head: Operation | null = null
    for (const operation of this.operations) if (head === null || operation.seq < head.seq) head = operation
    return head
  }

  learn({ before, entered, operation }: OperationTrack): void {
    const { seq, state } = operation!
    if (entered) this.lastEntered = Math.max(this.lastEntered, seq)
    if (before !== null && state === "succeeded") this.lastSucceeded = Math.max(this.lastSucceeded, seq)
  }
}
