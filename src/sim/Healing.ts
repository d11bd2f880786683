/**
 * The end of a world's troubles: from one moment on nothing goes wrong any more, a part of the service stays alive, the
 * rest is gone for good, and everything that was promised has to come true within a bounded time.
 */
import { Duration } from "effect"
import type { AnyMachine } from "./Fleet.ts"
import type { Key } from "./Keyed.ts"
import type { Process } from "./Process.ts"
import type { Shape } from "./Shape.ts"
import type { SimSettings } from "./SimSettings.ts"

/** Those of these machines that stay: one, some, or all of them. */
export const core = <M extends AnyMachine>(key: Key, machines: ReadonlyArray<M>): ReadonlySet<M> => {
  const shuffled = key.of("who").shuffled(machines)
  const count = key.of("how many").choose([1, key.of("some").between(1, machines.length), machines.length])
  return new Set(shuffled.slice(0, count))
}

/** What stays is alive from now on, whatever became of it; what does not is dead for ever. */
export const settle = (
  key: Key,
  machines: ReadonlyArray<AnyMachine>,
  stays: ReadonlySet<AnyMachine>,
  resumed: (process: Process) => void
): void => {
  for (const machine of machines) {
    const { process } = machine
    machine.clock.drift(machine.driftPpm)
    machine.abandoned = !stays.has(machine)
    // What was told to stop before may end only now.
    machine.tended = stays.has(machine)
    if (process !== null && !process.dead && process.paused && stays.has(machine) && key.of(machine.name).chance(0.5)) {
      process.resume()
      resumed(process)
    } else if (process !== null && (process.paused || !stays.has(machine))) process.crash()
    if (stays.has(machine)) machine.start()
  }
}

/**
 * How long a healed world may take until nothing waits any more, in milliseconds: what still holds it back when it heals
 * (an outage, leases of the dead, a question to the model, waits between attempts), then each lane to its end, then the
 * clients, who may do something more.
 */
export const patienceMs = (settings: SimSettings, { leaseMs, operations }: Shape): number => {
  const { attemptBound, pollInterval, projectionBackoffCapMs, providerTimeoutMs, repairInterval, retry } = settings
  const pollMs = Duration.toMillis(pollInterval)
  const waitsMs = Math.max(retry.backoffCapMs, retry.rateLimitMaxAgeMs, projectionBackoffCapMs)
  const heldMs = 4 * leaseMs + Math.max(Duration.toMillis(attemptBound), providerTimeoutMs) + waitsMs
  const laneMs = 2 * operations * pollMs
  const clientsMs = 60 * leaseMs
  return heldMs + laneMs + clientsMs + 4 * Duration.toMillis(repairInterval)
}
