/** What has to be true once a healed world has had its time: nothing waits, nothing is held, nothing is left over. */
import type { Invariant, Violation } from "../../domain/Invariant.ts"
import { isTerminal } from "../../domain/Operation.ts"
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

export const livenessNames: ReadonlyArray<Named> =
  named([...ofOperations, ...ofMemories, ...ofLanes, ...ofWorkspaces])

/** Everything that is stuck. */
export const stuck = (tracks: Tracks): ReadonlyArray<Violation> => {
  const found: Array<Violation> = []
  for (const track of tracks.operations.values()) hold(ofOperations, track, track.ref, found)
  for (const track of tracks.memories.values()) hold(ofMemories, track, track.ref, found)
  for (const track of tracks.lanes.values()) hold(ofLanes, track, { ...track.ref, id: track.ref.lane }, found)
  for (const track of tracks.workspaces.values()) hold(ofWorkspaces, track, { ...track, id: track.workspaceId }, found)
  return found
}
