/** The simulated ports for suites that know of no simulation: a kernel that runs whenever the effects of a test wait. */
import { Context, Effect, Fiber, Layer, Scheduler } from "effect"
import * as Timers from "node:timers"
import type { WorkspaceId } from "../../src/domain/Ids.ts"
import { ApiKeys } from "../../src/services/ApiKeys.ts"
import { SimDatabase } from "../../src/sim/database/SimDatabase.ts"
import { environment } from "../../src/sim/Environment.ts"
import { Kernel } from "../../src/sim/Kernel.ts"
import { Process } from "../../src/sim/Process.ts"
import type { Strikes } from "../../src/sim/Strikes.ts"
import { dimension } from "../services/vectorIndexSuite.ts"

/** Nothing goes wrong. */
export const calm: Strikes = {
  strike: () => null,
  detail: (point) => {
    throw new Error(`nothing struck at ${point.label}`)
  },
  healed: true
}

/** A process that effects of the real world run on: as soon as they wait for a turn, its kernel runs until all is quiet. */
class Host extends Process {
  private due = false

  constructor(kernel: Kernel) {
    super(kernel, { name: "host", main: () => Effect.void })
  }

  override shouldYield(fiber: Fiber.Fiber<unknown, unknown>): boolean {
    if (!this.due) {
      this.due = true
      Timers.setImmediate(() => {
        this.kernel.run({ maxSteps: Infinity })
        this.due = false
      })
    }
    return super.shouldYield(fiber)
  }
}

/** The database beneath the ports of a suite. */
export class Simulated extends Context.Service<Simulated, SimDatabase>()("indelible/test/Simulated") {}

/** A kernel and a database of its own for each suite, without faults. */
export const simulated = (seed: string) =>
  Layer.effectContext(Effect.sync(() => {
    const kernel = new Kernel({ seed })
    const host = new Host(kernel)
    const database = new SimDatabase({ kernel, strikes: calm, dimension })
    return database.ports().pipe(
      Context.merge(environment(host)),
      Context.add(Scheduler.Scheduler, host),
      Context.add(Simulated, database)
    )
  }))

/** Makes a workspace and its account. */
export const open = (workspaceId: WorkspaceId) => Effect.flatMap(ApiKeys, (keys) => keys.makeWorkspace(workspaceId))

/** Returns once a transaction waits for another. */
export const blocked = Effect.flatMap(Simulated, (database) =>
  Effect.repeat(Effect.andThen(Effect.sleep("1 millis"), Effect.sync(() => database.blocked)), { until: (is) => is }))
