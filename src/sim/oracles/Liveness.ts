/** What has to be true once a healed world has had its time: nothing waits, nothing is held, nothing is left over. */
import { Duration } from "effect"
import type { Invariant, Violation } from "../../domain/Invariant.ts"
import { isTerminal } from "../../domain/Operation.ts"
import type { SettingsShape } from "../../services/Settings.ts"
import type { LaneTrack } from "./LaneTrack.ts"
import type { MemoryTrack } from "./MemoryTrack.ts"
import { fine, hold, named, type Named } from "./Oracle.ts"
import type { OperationTrack } from "./OperationTrack.ts"
import type { Tracks } from "./Tracks.ts"
import type { WorkspaceTrack } from "./WorkspaceTrack.ts"

const ofOperations: ReadonlyArray<Invariant<OperationTrack>> = [
  {
    name: "every-operation-ends",
    promise: "Every accepted operation comes to its end.",
    check: ({ holder, operation }) => {
      if (operation === null || isTerminal(operation.state)) return fine
      const { attempts, epoch, leaseExpiresAt, nextAttemptAt, ready, state } = operation
      const place = ready ? "the head of its lane" : "not the head of its lane"
      return [
        `${state}, ${place}, attempt ${attempts}, epoch ${epoch} of ${holder}, leased until ${leaseExpiresAt}, due ${nextAttemptAt}`
      ]
    }
  },
  {
    name: "every-hold-ends",
    promise: "Every authorization is charged or refunded.",
    check: ({ authorizations }) =>
      authorizations.flatMap(({ no, reserved, state }) =>
        state === "open" ? [`authorization ${no} holds ${reserved}`] : fine)
  },
  {
    name: "nothing-is-left-of-a-success",
    promise: "Of an operation that succeeded neither input nor plan is left, and it stands in no line.",
    check: ({ hasInput, hasPlan, operation }) => {
      if (operation?.state !== "succeeded" || (!hasInput && !hasPlan && !operation.ready)) return fine
      return [`left: ${[hasInput ? "input" : "", hasPlan ? "plan" : "", operation.ready ? "its turn" : ""].join(" ").trim()}`]
    }
  }
]

const ofMemories: ReadonlyArray<Invariant<MemoryTrack>> = [
  {
    name: "every-memory-is-projected",
    promise: "The latest version of every live memory is in the index, no deleted one is, and no projection waits.",
    check: ({ memory, projections, vectors }) => {
      if (memory === null) return fine
      if (projections.length > 0) return [`at ${memory.version}, and these wait: ${projections.join(", ")}`]
      const there = memory.deleted ? vectors.length === 0 : vectors.length === 1 && vectors[0] === memory.version
      return there ? fine : [`at ${memory.version}${memory.deleted ? ", deleted" : ""}, and indexed: ${vectors.join(", ")}`]
    }
  }
]

const ofLanes: ReadonlyArray<Invariant<LaneTrack>> = [
  {
    name: "every-lane-empties",
    promise: "Nobody waits in any lane.",
    check: ({ operations }) => operations.length === 0 ? fine : [`${operations.length} wait, ${operations[0]!.id} among them`]
  }
]

const ofWorkspaces: ReadonlyArray<Invariant<WorkspaceTrack>> = [
  {
    name: "nothing-stays-reserved",
    promise: "No credit of any workspace is reserved.",
    check: ({ accounts }) => {
      const reserved = accounts[0]?.balances.reserved ?? 0n
      return reserved === 0n ? fine : [`${reserved} are reserved`]
    }
  }
]

const retentionIsKept: Named = {
  name: "expired-inputs-go",
  promise: "The input of a failed operation is gone soon after its retention is over."
}

export const livenessNames: ReadonlyArray<Named> =
  named([...ofOperations, ...ofMemories, ...ofLanes, ...ofWorkspaces, retentionIsKept])

/** How the world stands when time is over. */
export interface End {
  /** As they are by now. */
  readonly settings: SettingsShape
  /** Virtual time, in milliseconds. Null in a world that never had to be healed: settings may just have changed. */
  readonly healedAt: number | null
  readonly now: number
}

/** Inputs that repair has left where they are. In a healed world each sweep takes away one at least. */
export const overdue = (tracks: Tracks, { healedAt, now, settings }: End): ReadonlyArray<Violation> => {
  if (healedAt === null) return []
  const kept = [...tracks.operations.values()].filter(({ hasInput, operation }) => hasInput && operation?.state === "failed")
  const sweepMs = 1.25 * Duration.toMillis(settings.repairInterval)
  const patienceMs = Duration.toMillis(settings.failedInputRetention) + (kept.length + 2) * sweepMs
  return kept.flatMap(({ ref, versions }) => {
    const since = now - Math.max(healedAt, versions.changedAt!)
    const detail = `it failed ${since} ms ago, and its input is still there`
    return since <= patienceMs ? [] : [{ invariant: retentionIsKept.name, workspaceId: ref.workspaceId, id: ref.id, detail }]
  })
}

/** Everything that is stuck. */
export const stuck = (tracks: Tracks): ReadonlyArray<Violation> => {
  const found: Array<Violation> = []
  for (const track of tracks.operations.values()) hold(ofOperations, track, track.ref, found)
  for (const track of tracks.memories.values()) hold(ofMemories, track, track.ref, found)
  for (const track of tracks.lanes.values()) hold(ofLanes, track, { ...track.ref, id: track.ref.lane }, found)
  for (const track of tracks.workspaces.values()) hold(ofWorkspaces, track, { ...track, id: track.workspaceId }, found)
  return found
}
