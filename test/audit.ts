/** Holds every invariant of the domain against the whole database of a test. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import * as PgSnapshot from "../src/adapters/PgSnapshot.ts"
import { checkSnapshot } from "../src/domain/Invariants.ts"

export const assertHealthy = Effect.map(PgSnapshot.load, (snapshot) => {
  assert.isAbove(snapshot.operations.length, 0, "there is nothing to be healthy about")
  assert.deepStrictEqual(checkSnapshot(snapshot), [])
})
