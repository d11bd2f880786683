/** What befalls machines, and the world as a whole, from time to time. A port's troubles are the port's. */
import type { Database } from "./Database.ts"
import type { FaultKind, Point } from "./Faults.ts"
import type { AnyMachine } from "./Fleet.ts"
import type { Kernel } from "./Kernel.ts"
import type { Key } from "./Keyed.ts"
import type { SimQueue } from "./ports/SimQueue.ts"
import type { Process } from "./Process.ts"
import type { Retention } from "./SimSettings.ts"
import type { Strikes } from "./Strikes.ts"

export interface MisfortunesOptions {
  readonly kernel: Kernel
  readonly strikes: Strikes
  readonly leaseMs: number
  readonly database: Pick<Database, "down">
  readonly queue: SimQueue
  readonly retention: Retention
  /** A process that stood still goes on. */
  readonly resumed: (process: Process) => void
  /** Credit is granted to some workspace. */
  readonly topUp: (detail: Key) => void
  /** A key of some workspace is revoked, and replaced after so many milliseconds. Null where nobody looks at keys. */
  readonly revoke: ((detail: Key, pauseMs: number) => void) | null
}

const machineFaults: ReadonlyArray<FaultKind> = [
  "crash_before", "pause", "terminate", "clock_forward", "clock_back", "clock_drift", "listener_disconnected"
]

const label = "tick"

export class Misfortunes {
  private readonly options: MisfortunesOptions
  private readonly worldFaults: ReadonlyArray<FaultKind>

  constructor(options: MisfortunesOptions) {
    this.options = options
    const always: ReadonlyArray<FaultKind> = ["database_down", "deliveries_lost", "top_up", "retention"]
    this.worldFaults = options.revoke === null ? always : [...always, "key_revoked"]
  }

  /** Looks after a process until it dies, about twice a lease. */
  follow(machine: AnyMachine, process: Process): void {
    const { leaseMs, strikes } = this.options
    const tick = (index: number) => {
      if (process.dead || strikes.healed) return
      const point = { actor: process.id, label, index }
      const fault = process.paused ? null : strikes.strike(point, machineFaults)
      if (fault !== null) this.befall(machine, process, fault, strikes.detail(point, fault))
      this.later(leaseMs / 2, () => tick(index + 1))
    }
    this.later(leaseMs / 2 * process.key.of(label).unit(), () => tick(0))
  }

  /** Looks after the world, about once a lease. */
  begin(): void {
    const { leaseMs, strikes } = this.options
    const tick = (index: number) => {
      if (strikes.healed) return
      const point: Point = { actor: "world", label, index }
      const fault = strikes.strike(point, this.worldFaults)
      if (fault !== null) this.happen(fault, strikes.detail(point, fault))
      this.later(leaseMs, () => tick(index + 1))
    }
    this.later(leaseMs / 3, () => tick(0))
    // No misfortune: prices change.
    const prices = this.options.kernel.key.of("prices")
    if (prices.of("change").chance(0.3)) this.later(leaseMs * prices.logUniform(0.5, 8), () => this.options.retention.repriced = true)
  }

  private befall({ clock, driftPpm }: AnyMachine, process: Process, fault: FaultKind, detail: Key): void {
    const { leaseMs, queue, resumed } = this.options
    const leases = (min: number, max: number) => leaseMs * detail.logUniform(min, max)
    switch (fault) {
      case "crash_before":
        return process.crash()
      case "pause":
        process.pause()
        return this.later(leases(0.25, 4), () => {
          if (process.dead || !process.paused) return
          process.resume()
          resumed(process)
        })
      case "terminate":
        return process.terminate(leases(0.02, 1.5))
      case "clock_forward":
        return clock.step(Math.ceil(leases(0.01, 10)))
      case "clock_back":
        return clock.step(-Math.ceil(leases(0.01, 10)))
      case "clock_drift":
        clock.drift(Math.round(detail.logUniform(100, 150_000)) * (detail.of("slow").chance(0.5) ? -1 : 1))
        return this.later(leaseMs * detail.of("until").logUniform(1, 8), () => clock.drift(driftPpm))
      default:
        return queue.disconnect(process, leases(0.1, 3))
    }
  }

  private happen(fault: FaultKind, detail: Key): void {
    const { database, leaseMs, queue, retention, revoke, strikes, topUp } = this.options
    const ms = leaseMs * detail.logUniform(0.02, 2)
    switch (fault) {
      case "database_down":
        database.down(ms)
        return queue.down(ms)
      case "deliveries_lost":
        return queue.lose(ms)
      case "top_up":
        return topUp(detail)
      case "key_revoked":
        return revoke?.(detail, ms)
      default:
        retention.atOnce = true
        return this.later(leaseMs * detail.logUniform(1, 6), () => {
          // A healed world keeps what it is told by then.
          if (!strikes.healed) retention.atOnce = false
        })
    }
  }

  private later(ms: number, then: () => void): void {
    this.options.kernel.after(ms, label, then)
  }
}
