/** The simulated ports for suites that know of no simulation: a kernel that runs whenever the effects of a test wait. */
import { Context, Effect, type Fiber, Layer, Scheduler } from "effect"
import * as Timers from "node:timers"
import type { WorkspaceId } from "../../src/domain/Ids.ts"
import { ApiKeys } from "../../src/services/ApiKeys.ts"
import { Provider } from "../../src/services/Provider.ts"
import { Queue } from "../../src/services/Queue.ts"
import { SimDatabase } from "../../src/sim/database/SimDatabase.ts"
import { environment } from "../../src/sim/Environment.ts"
import { type FaultKind, keyOf, type Point } from "../../src/sim/Faults.ts"
import { Kernel } from "../../src/sim/Kernel.ts"
import { SimProvider } from "../../src/sim/ports/SimProvider.ts"
import { SimQueue } from "../../src/sim/ports/SimQueue.ts"
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

/**
 * A process whose fibers belong to the real world: when they wait, its kernel runs until one of them can go on, which it
 * does outside of the run. So a test may fail in its own way, which reads the clock.
 */
class Host extends Process {
  private readonly resumed: Array<() => void> = []
  private due = false

  constructor(kernel: Kernel) {
    super(kernel, { name: "host", main: () => Effect.void })
  }

  override shouldYield(fiber: Fiber.Fiber<unknown, unknown>): boolean {
    if (!this.due) {
      this.due = true
      Timers.setImmediate(() => this.drive())
    }
    return super.shouldYield(fiber)
  }

  override resumeWith(fiber: Fiber.Fiber<unknown, unknown> | null, resume: () => void): void {
    this.resumed.push(() => super.resumeWith(fiber, resume))
  }

  private drive(): void {
    const until = () => this.resumed.length > 0
    while (this.kernel.run({ until })._tag === "Reached") this.resumed.shift()!()
    this.due = false
  }
}

/** What the model meets next, once. Nothing else goes wrong. */
export class Mishap extends Context.Service<Mishap, { next: FaultKind | null }>()("indelible/test/Mishap") {}

/** The database beneath the ports of a suite. */
export class Simulated extends Context.Service<Simulated, SimDatabase>()("indelible/test/Simulated") {}

/** A kernel, a database, a queue and a model of its own for each suite, without faults but what a test asks for. */
export const simulated = (seed: string) =>
  Layer.effectContext(Effect.sync(() => {
    const kernel = new Kernel({ seed, budget: Infinity })
    const host = new Host(kernel)
    const database = new SimDatabase({ kernel, strikes: calm, dimension })
    const mishap: Mishap["Service"] = { next: null }
    const strikes: Strikes = {
      strike: (_point, kinds) => {
        const { next } = mishap
        if (next === null || !kinds.includes(next)) return null
        mishap.next = null
        return next
      },
      detail: (point: Point, kind) => keyOf(kernel.key, point, kind),
      healed: false
    }
    const minute = 60_000
    const model = new SimProvider({ kernel, strikes, leaseMs: minute, providerMs: 100, timeoutMs: minute, patienceMs: minute })
    return database.ports().pipe(
      Context.merge(environment(host)),
      Context.add(Queue, new SimQueue({ kernel, strikes: calm }).port),
      Context.add(Provider, model.port),
      Context.add(Mishap, mishap),
      Context.add(Scheduler.Scheduler, host),
      Context.add(Simulated, database)
    )
  }))

/** Makes a workspace and its account. */
export const open = (workspaceId: WorkspaceId) => Effect.flatMap(ApiKeys, (keys) => keys.makeWorkspace(workspaceId))

/** Returns once a transaction waits for another. */
export const blocked = Effect.flatMap(Simulated, (database) =>
  Effect.repeat(Effect.andThen(Effect.sleep("1 millis"), Effect.sync(() => database.blocked)), { until: (is) => is }))
