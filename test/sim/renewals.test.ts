/** A lease is renewed as often as it takes, and not once more for every time that its third is no whole millisecond. */
import { assert, describe, it } from "@effect/vitest"
import { simulate } from "../../src/sim/Simulation.ts"
import { workloads } from "../../src/sim/Engines.ts"

describe("renewals", () => {
  for (const leaseMs of [5_000, 6_000, 10_000]) {
    it(`of a lease of ${leaseMs} ms come a third of it apart`, () => {
      const slow = workloads("sweep", "renewals").at(-1)!
      const shape = { ...slow.shape, leaseMs, providerMs: 3 * leaseMs }
      const { trace } = simulate({ ...slow, shape }, { trace: true })
      const renewed = trace.filter(({ kind, label }) => kind === "arrive" && label === "operations.renew")
      const gaps = [...Map.groupBy(renewed, ({ actor }) => actor).values()].flatMap((ofOne) =>
        ofOne.slice(1).map(({ at }, index) => at - ofOne[index]!.at)
      )
      assert.isAbove(gaps.length, 5)
      assert.isAbove(Math.min(...gaps), leaseMs / 4)
    })
  }
})
