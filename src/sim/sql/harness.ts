/** The simulated world on real SQL: the same, but for its database. A thread that loads this starts a Postgres. */
import type { Harness } from "../cli/Harness.ts"
import { harness as inMemory } from "../harness.ts"
import { simulateOn } from "../Simulation.ts"
import { Pglite } from "./Pglite.ts"
import { openOn } from "./SqlDatabase.ts"

export const harness: Harness = { ...inMemory, simulate: simulateOn(openOn(await Pglite.start())) }
