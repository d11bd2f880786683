/** The simulated world, with the names of all that is watched in it: what the command line works on. */
import type { Harness } from "./cli/Harness.ts"
import { catalogue } from "./oracles/Oracles.ts"
import { quotas, type ReachedState, reachedStates } from "./oracles/Reached.ts"
import { simulate } from "./Simulation.ts"
import { worldPromises } from "./Verdicts.ts"

export const harness: Harness = {
  simulate,
  invariants: [...catalogue, ...worldPromises],
  quotas: (Object.keys(reachedStates) as ReadonlyArray<ReachedState>).map((state) => ({
    state,
    meaning: reachedStates[state],
    perThousand: quotas[state]
  }))
}
