/** The machines of a world: each runs one process after another, because somebody restarts what has died. */
import { Cause, Exit } from "effect"
import { HostClock } from "./HostClock.ts"
import type { Kernel } from "./Kernel.ts"
import type { Key } from "./Keyed.ts"
import type { Process } from "./Process.ts"
import { launch, type LaunchOptions, type Server } from "./Server.ts"

/** A machine, whatever its processes serve. */
export interface AnyMachine {
  readonly name: string
  readonly clock: HostClock
  readonly driftPpm: number
  readonly process: Process | null
  readonly alive: boolean
  abandoned: boolean
  tended: boolean
  readonly start: () => void
}

export interface FleetListener {
  readonly launched: (machine: AnyMachine) => void
  readonly died: (process: Process) => void
  /** A process ended by itself, and not because it was told to. */
  readonly broke: (processId: string, why: string) => void
}

export interface MachineOptions<S> {
  readonly kernel: Kernel
  readonly name: string
  readonly layer: LaunchOptions<S, never>["layer"]
  readonly leaseMs: number
  readonly listener: FleetListener
}

export class Machine<S> implements AnyMachine {
  readonly name: string
  readonly clock: HostClock
  /** How wrong its clock always is, in parts per million. */
  readonly driftPpm: number
  process: Server<S> | null = null
  /** Nobody restarts what dies here any more. */
  abandoned = false
  /** Somebody does so whatever happens. */
  tended = false
  private readonly options: MachineOptions<S>
  private readonly key: Key

  constructor(options: MachineOptions<S>) {
    const { kernel, name } = options
    this.options = options
    this.name = name
    this.key = kernel.key.of("machine").of(name)
    this.driftPpm = Math.round(this.key.of("drift").between(-200, 200))
    const offsetMs = this.key.of("offset").between(-60_000, 60_000)
    this.clock = new HostClock(kernel, { name, offsetMs, driftPpm: this.driftPpm })
  }

  get alive(): boolean {
    return this.process !== null && !this.process.dead
  }

  /** Takes requests, or works on operations, as far as anybody outside can tell. */
  get up(): boolean {
    return this.process !== null && this.process.up && this.process.state === "running"
  }

  start(): void {
    if (this.alive) return
    const { kernel, layer, listener, name } = this.options
    const process = this.process = launch<S, never>(kernel, { name, layer, clock: this.clock })
    listener.launched(this)
    process.onDeath(() => {
      listener.died(process)
      if (process.exit !== null && Exit.isFailure(process.exit) && !Cause.hasInterruptsOnly(process.exit.cause)) {
        listener.broke(process.id, "it ended with an error")
      }
      this.restartLater(process.incarnation)
    })
  }

  /** Mostly soon, sometimes much later; now and then nobody looks until everything is mended. */
  private restartLater(incarnation: number): void {
    const { kernel, leaseMs } = this.options
    const key = this.key.of("restart").of(incarnation)
    if (this.abandoned || (!this.tended && key.of("never").chance(0.05))) return
    kernel.after(leaseMs * key.logUniform(0.02, 3), `restart ${this.name}`, () => {
      if (!this.abandoned) this.start()
    })
  }
}
