/** Hints: what comes while nothing else does is begun at once, and not at the next poll, as long as nothing is in the way. */
import type { Invariant } from "../../domain/Invariant.ts"
import { type Calm, promptMs } from "./CalmOracles.ts"
import { fine } from "./Oracle.ts"
import type { OperationTrack } from "./OperationTrack.ts"
import type { Tracks } from "./Tracks.ts"

export const hintOracles = (tracks: Tracks, calm: Calm): ReadonlyArray<Invariant<OperationTrack>> => {
  /** When each process was first seen to claim something. */
  const seen = new Map<string, number>()
  return [{
    name: "hints-are-heard",
    promise: "Work that comes while nothing else is done is claimed at once by a process that is there, as long as nothing is in its way.",
    check: (track) => {
      const { before, claimed, commit, versions } = track
      if (!claimed) return fine
      const there = seen.get(commit.by)
      if (there === undefined) seen.set(commit.by, tracks.now)
      const since = versions.previousAt
      if (there === undefined || since === undefined || there >= since || before!.nextAttemptAt !== null) return fine
      const waited = tracks.now - since
      if (before!.state !== "pending" || waited <= promptMs || !calm.isQuietFor(waited)) return fine
      // It had no hand free: an attempt that was cancelled lasts until the model has answered.
      if (calm.hasAskedSince(commit.by, since)) return fine
      const alone = [...tracks.operations.values()].every((other) =>
        other === track || (other.operation?.state !== "running" && (other.versions.changedAt ?? 0) <= since))
      return alone ? [`${commit.by} claimed it ${waited} ms after it could`] : fine
    }
  }]
}
