/** One memory with all that follows it, as it is committed now, and what the commit in hand did to it. */
import type { MemoryId, MemoryRef, WorkspaceId } from "../../domain/Ids.ts"
import type { Memory } from "../../domain/Memory.ts"
import type { HistoryRecord, MemorySlice } from "../../domain/Snapshot.ts"
import type { Rows } from "../Commit.ts"
import { Versions } from "./Versions.ts"

export class MemoryTrack implements MemorySlice {
  readonly ref: MemoryRef
  memory: Memory | null = null
  readonly history: Array<HistoryRecord> = []
  readonly projections: Array<number> = []
  readonly vectors: Array<number> = []

  touched = 0
  /** The row before the commit in hand. */
  before: Memory | null = null
  /** The versions whose projection it began, and those whose projection it ended. */
  readonly begun: Array<number> = []
  readonly finished: Array<number> = []
  /** What it did to the vector. */
  vectorBefore: Rows["vectors"] | null = null
  vectorAfter: Rows["vectors"] | null = null

  /** The latest version that was ever in the index, and whether it has been taken out. */
  indexed = 0
  forgotten = false
  readonly versions = new Versions<Memory>()

  constructor(workspaceId: WorkspaceId, id: MemoryId) {
    this.ref = { workspaceId, id }
  }

  learn(): void {
    const { vectorAfter, vectorBefore } = this
    if (vectorAfter !== null && !vectorAfter.deleted) this.indexed = Math.max(this.indexed, vectorAfter.version)
    else if (vectorBefore !== null || vectorAfter !== null) this.forgotten = true
  }
}
