/**
 * The clock of one simulated machine. Its wall time is off, drifts and is corrected in steps, also backwards; its
 * monotonic time runs at the same wrong rate and never goes back. Processes on one machine share it, over restarts.
 */
import type { Kernel } from "./Kernel.ts"

export interface HostClockOptions {
  /** The machine, for the trace. */
  readonly name?: string
  /** How far its wall time is ahead of the world's, in milliseconds. */
  readonly offsetMs?: number
  /** How much too fast it runs, in parts per million. Above minus one million. */
  readonly driftPpm?: number
}

export class HostClock {
  private readonly kernel: Kernel
  private readonly name: string
  private offsetMs: number
  private rate: number
  /** Where the present rate began, in microseconds of the world and of this clock. */
  private readonly anchor = { world: 0, own: 0 }

  constructor(kernel: Kernel, { driftPpm = 0, name = "", offsetMs = 0 }: HostClockOptions = {}) {
    this.kernel = kernel
    this.name = name
    this.offsetMs = offsetMs
    this.rate = rateOf(driftPpm)
    this.anchor.world = kernel.micros
    this.anchor.own = kernel.micros
  }

  /** Since the Unix epoch, as this machine has it. */
  get wallMicros(): number {
    return Math.floor((this.kernel.epochMs + this.offsetMs) * 1_000) + this.monotonicMicros
  }

  get wallMillis(): number {
    return Math.floor(this.wallMicros / 1_000)
  }

  get monotonicMicros(): number {
    return this.readingAt(this.kernel.micros)
  }

  /** Somebody sets the clock: forwards, or backwards when negative. */
  step(ms: number): void {
    this.offsetMs += ms
    this.kernel.mark(this.kernel.world, "clock", this.name, `step ${ms} ms`)
  }

  /** From now on it runs this much too fast. */
  drift(ppm: number): void {
    this.anchor.own = this.monotonicMicros
    this.anchor.world = this.kernel.micros
    this.rate = rateOf(ppm)
    this.kernel.mark(this.kernel.world, "clock", this.name, `drift ${ppm} ppm`)
  }

  /** The first moment, in microseconds of the world, at which monotonic time shows this much, at its present rate. */
  worldAt(own: number): number {
    const due = this.anchor.world + Math.ceil((own - this.anchor.own) / this.rate)
    return this.readingAt(due) < own ? due + 1 : due
  }

  private readingAt(micros: number): number {
    return this.anchor.own + Math.floor((micros - this.anchor.world) * this.rate)
  }
}

const rateOf = (ppm: number): number => {
  if (!(ppm > -1_000_000)) throw new RangeError("a clock cannot stand still or run backwards")
  return 1 + ppm / 1_000_000
}
