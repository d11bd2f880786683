/** What a process owes that is told to stop: it stops working on what it gives back, and keeps nothing for itself. */
import type { Invariant, Violation } from "../../domain/Invariant.ts"
import { type OperationRef, refKey } from "../../domain/Ids.ts"
import { fine, type Named } from "./Oracle.ts"
import type { OperationTrack } from "./OperationTrack.ts"
import type { Tracks } from "./Tracks.ts"

export const leavesNothing: Named = {
  name: "leaves-nothing-behind",
  promise: "A process that ends because it was told to, with nothing in its way, holds no operation any more."
}

/** For so long, in milliseconds, a fault may be in somebody's way: the slowest statement takes that long. */
const troubleMs = 15_000

export class Leavings {
  readonly oracle: Invariant<OperationTrack> = {
    name: "stops-before-it-gives-back",
    promise: "A process gives an operation back when it no longer asks the model about it.",
    check: ({ before, commit, operation, ref }) => {
      if (before?.state !== "running" || operation?.state !== "pending" || operation.nextAttemptAt !== null) return fine
      const open = this.open.get(keyOf(ref, commit.by)) ?? 0
      return open === 0 ? fine : [`${commit.by} gave it back, and still asks the model about it`]
    }
  }
  /** Questions to the model that somebody still waits for, by process and operation. */
  private readonly open = new Map<string, number>()
  private troubledAt = -Infinity

  asked(ref: OperationRef, by: string): void {
    this.count(ref, by, 1)
  }

  /** The question was answered, failed or was given up. */
  ended(ref: OperationRef, by: string): void {
    this.count(ref, by, -1)
  }

  /** Something went wrong, at this virtual time. */
  trouble(at: number): void {
    this.troubledAt = at
  }

  /** A process ended in good order, at this virtual time. */
  left(by: string, at: number, { operations }: Tracks): ReadonlyArray<Violation> {
    if (at - this.troubledAt < troubleMs) return []
    const kept = [...operations.values()].filter(({ holder, operation }) => operation?.state === "running" && holder === by)
    return kept.map(({ ref: { id, workspaceId } }) =>
      ({ invariant: leavesNothing.name, workspaceId, id, detail: `${by} has ended, and did not give it back` }))
  }

  private count(ref: OperationRef, by: string, change: number): void {
    const key = keyOf(ref, by)
    this.open.set(key, Math.max(0, (this.open.get(key) ?? 0) + change))
  }
}

const keyOf = (ref: OperationRef, by: string): string => `${by} ${refKey(ref)}`
