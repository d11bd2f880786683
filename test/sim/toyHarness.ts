/**
 * The toy as a harness of the command line. `TOY_BUGS` says what is planted in it; `TOY_LOUD` makes it tell of runs, and in
 * those of the seed `TOY_HANGS`, and after as many as `TOY_TIRES` says, it computes for ever.
 */
import { writeSync } from "node:fs"
import type { Harness } from "../../src/sim/cli/Harness.ts"
import type { Simulate } from "../../src/sim/Run.ts"
import { type Bug, toy } from "./toy.ts"

const bugs = (process.env["TOY_BUGS"] ?? "").split(",").filter(Boolean) as ReadonlyArray<Bug>

const sane = toy(...bugs)

const enough = Number(process.env["TOY_TIRES"] ?? Infinity)
let runs = 0

const simulate: Simulate = (spec, keep) => {
  runs++
  if (spec.seed === process.env["TOY_HANGS"] || runs > enough) {
    for (;;) continue
  }
  return sane(spec, keep)
}

const loud: Simulate = (spec, keep) => {
  // At once, also by a thread that never comes back.
  writeSync(2, "a run\n")
  return simulate(spec, keep)
}

export const harness: Harness = {
  simulate: process.env["TOY_LOUD"] === undefined ? simulate : loud,
  invariants: [
    { name: "charged once", promise: "An operation is charged once, however often it is tried." },
    { name: "stored once", promise: "What is stored is not forgotten." },
    { name: "first come, first served", promise: "The first operation is done by the first worker." },
    { name: "every operation ends", promise: "Every operation is stored in the end." }
  ],
  quotas: [
    { state: "takeover", meaning: "a worker takes over what a dead one held", perThousand: 50 },
    { state: "never seen", meaning: "nothing reaches it", perThousand: 1 }
  ]
}
