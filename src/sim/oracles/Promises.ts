/** All promises that are held against commits, by what they are about. */
import type { Invariant } from "../../domain/Invariant.ts"
import { perLane, perMemory, perOperation, perWorkspace } from "../../domain/Invariants.ts"
import { memoryTransitions, operationTransitions } from "../../domain/TransitionInvariants.ts"
import { refKey } from "../../domain/Ids.ts"
import type { SettingsShape } from "../../services/Settings.ts"
import type { Calm } from "./CalmOracles.ts"
import { handOverOracles, type Locked, queueOracles, tagOracles } from "./FairnessOracles.ts"
import { hintOracles } from "./HintOracles.ts"
import { holderOracles } from "./HolderOracles.ts"
import { laneOracles, laneOrderOracles } from "./LaneOracles.ts"
import { planOracles } from "./PlanOracles.ts"
import type { Askings, Fates } from "./ProcessOracles.ts"
import { projectionOracles, type VectorOf } from "./ProjectionOracles.ts"
import { togetherOracles } from "./TogetherOracles.ts"
import type { Tracks } from "./Tracks.ts"

export interface World {
  readonly settings: SettingsShape
  readonly tracks: Tracks
  readonly fates: Fates
  readonly locked: Locked
  readonly askings: Askings
  readonly calm: Calm
  readonly vectorOf: VectorOf
  readonly blind: ReadonlySet<string>
}

/** Those of the domain, which need one slice, and those of a commit, which see what it did. */
export const promisesOf = ({ askings, blind, calm, fates, locked, settings, tracks, vectorOf }: World) => {
  const but = <Seen>(promises: ReadonlyArray<Invariant<Seen>>) => promises.filter(({ name }) => !blind.has(name))
  return {
    slices: {
      operation: but(perOperation),
      lane: but(perLane),
      memory: but(perMemory),
      workspace: but(perWorkspace)
    },
    transitions: { operation: but(operationTransitions), memory: but(memoryTransitions) },
    steps: {
      holder: but([...holderOracles(settings), calm.renewedWhenDue]),
      operation: but([
        ...planOracles((workspaceId, id) => tracks.memories.get(refKey({ workspaceId, id })) ?? null),
        ...togetherOracles,
        ...laneOrderOracles,
        ...handOverOracles(tracks),
        ...hintOracles(tracks, calm),
        askings.planIsTheAnswer,
        askings.waitsAsAsked,
        askings.waitsItOut,
        calm.leasesAreKept,
        calm.stopsFirst,
        calm.keptForItsTime
      ]),
      lane: but(laneOracles),
      memory: but(projectionOracles(vectorOf)),
      workspace: but(tagOracles(tracks)),
      commit: but([fates.oracle, ...queueOracles(locked)])
    }
  }
}
