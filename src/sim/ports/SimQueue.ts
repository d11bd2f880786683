/**
 * `Queue` between simulated processes, as the adapter on NOTIFY has it: hints reach the own process at once, and others
 * a little later, in order and together with what gathers meanwhile, unless something goes wrong on their way.
 */
import { Effect, Fiber } from "effect"
import { Queue, type WakeUp } from "../../services/Queue.ts"
import type { FaultKind, Point } from "../Faults.ts"
import type { Kernel } from "../Kernel.ts"
import type { Key } from "../Keyed.ts"
import { type Process, processOf } from "../Process.ts"
import type { Strikes } from "../Strikes.ts"

export interface SimQueueOptions {
  readonly kernel: Kernel
  readonly strikes: Strikes
  /** Hears everything that goes over the wire. */
  readonly overhear?: (payload: string) => void
}

/** How long hints gather after a notification, in milliseconds. */
const gatherMs = 5
/** How far a subscriber may be behind, in hints, before the oldest are dropped. */
const capacity = 4_096
/** What somebody who may have missed anything looks at. */
const everything: ReadonlyArray<WakeUp> = [{ _tag: "Work" }, { _tag: "Projection" }]

const deliveryFaults: ReadonlyArray<FaultKind> = [
  "delivery_dropped", "delivery_duplicated", "delivery_delayed", "delivery_reordered"
]
const label = "queue.deliver"

export class SimQueue {
  readonly port: Queue["Service"]
  private readonly kernel: Kernel
  private readonly strikes: Strikes
  private readonly overhear: (payload: string) => void
  private readonly stations = new Map<Process, Station>()
  private lostUntil = 0

  constructor({ kernel, overhear = () => {}, strikes }: SimQueueOptions) {
    this.kernel = kernel
    this.strikes = strikes
    this.overhear = overhear
    this.port = Queue.of({
      send: (wakeUps) =>
        wakeUps.length === 0 ? Effect.void : Effect.withFiber((fiber) => {
          const station = this.stationOf(processOf(fiber))
          station.publish(wakeUps)
          this.gather(station, wakeUps)
          return Effect.void
        }),
      subscribe: Effect.map(
        Effect.acquireRelease(
          Effect.withFiber((fiber) => Effect.sync(() => this.stationOf(processOf(fiber)).subscribe())),
          (subscription) => Effect.sync(() => subscription.end())
        ),
        (subscription) => subscription.hints
      )
    })
  }

  /** Every hint on the wire is lost from now on, until `ms` are over. */
  lose(ms: number): void {
    this.lostUntil = Math.max(this.lostUntil, this.kernel.now + ms)
  }

  /** A process hears nothing from outside until `ms` are over, and then looks at everything, as after every connection. */
  disconnect(process: Process, ms: number): void {
    const station = this.stationOf(process)
    station.deafUntil = Math.max(station.deafUntil, this.kernel.now + ms)
    this.kernel.after(ms, "listener connects", () => {
      if (this.kernel.now >= station.deafUntil) this.arrive(station, 0, everything)
    })
  }

  /** The database is gone for a while, and with it every connection. */
  down(ms: number): void {
    this.lose(ms)
    for (const process of this.stations.keys()) this.disconnect(process, ms)
  }

  /** Nothing is lost any more. */
  heal(): void {
    this.lostUntil = 0
    for (const station of this.stations.values()) {
      if (station.deafUntil > this.kernel.now) this.arrive(station, 0, everything)
      station.deafUntil = 0
    }
  }

  private stationOf(process: Process): Station {
    const known = this.stations.get(process)
    if (known !== undefined) return known
    const station = new Station(process)
    this.stations.set(process, station)
    process.onDeath(() => this.stations.delete(process))
    return station
  }

  /** The first hint goes at once, and those that follow it gather. */
  private gather(from: Station, wakeUps: ReadonlyArray<WakeUp>): void {
    if (from.gathered !== null) return void from.gathered.push(...wakeUps)
    this.notify(from, wakeUps)
    from.gathered = []
    this.kernel.postAt(this.kernel.micros + gatherMs * 1_000, from.process, "timer", "queue.gather", () => {
      const gathered = from.gathered!
      from.gathered = null
      if (gathered.length > 0) this.gather(from, gathered)
    })
  }

  private notify(from: Station, wakeUps: ReadonlyArray<WakeUp>): void {
    this.overhear(payloadOf(wakeUps))
    if (this.kernel.now < this.lostUntil) return
    for (const to of this.stations.values()) if (to !== from && to.listens) this.transmit(to, wakeUps)
  }

  private transmit(to: Station, wakeUps: ReadonlyArray<WakeUp>): void {
    const { now } = this.kernel
    const index = to.process.callIndex(label)
    const point: Point = { actor: to.process.id, label, index }
    const fault = this.strikes.strike(point, deliveryFaults)
    if (fault === "delivery_dropped") return
    const detail = fault === null ? null : this.strikes.detail(point, fault)
    // One that overtakes is there before those that are on their way.
    if (fault === "delivery_reordered") return this.arrive(to, 0, wakeUps)
    const latencyMs = to.key.of(index).logUniform(0.2, 2)
    const delayMs = fault === "delivery_delayed" ? detail!.logUniform(50, 20_000) : 0
    if (delayMs === 0) to.lastArrival = Math.max(to.lastArrival, now + latencyMs)
    this.arrive(to, delayMs > 0 ? latencyMs + delayMs : to.lastArrival - now, wakeUps)
    if (fault === "delivery_duplicated") this.arrive(to, latencyMs + detail!.logUniform(0.1, 5_000), wakeUps)
  }

  private arrive(to: Station, delayMs: number, wakeUps: ReadonlyArray<WakeUp>): void {
    this.kernel.postAt(this.kernel.micros + delayMs * 1_000, to.process, "reply", label, () => {
      if (this.kernel.now >= to.deafUntil) to.publish(wakeUps)
    })
  }
}

/** All of a process that has to do with hints. */
class Station {
  readonly process: Process
  readonly key: Key
  /** Hints that wait for the next notification; null when the next one may go at once. */
  gathered: Array<WakeUp> | null = null
  /** When the last of those that keep their order is there. */
  lastArrival = 0
  deafUntil = 0
  private readonly subscriptions = new Set<Subscription>()

  constructor(process: Process) {
    this.process = process
    this.key = process.key.of("hints")
  }

  get listens(): boolean {
    return this.subscriptions.size > 0
  }

  publish(wakeUps: ReadonlyArray<WakeUp>): void {
    for (const subscription of this.subscriptions) subscription.offer(wakeUps)
  }

  subscribe(): Subscription {
    const subscription = new Subscription(this.process, () => this.subscriptions.delete(subscription))
    this.subscriptions.add(subscription)
    return subscription
  }
}

class Subscription {
  readonly hints: Effect.Effect<ReadonlyArray<WakeUp>>
  readonly end: () => void
  private readonly process: Process
  private readonly pending: Array<ReadonlyArray<WakeUp>> = []
  /** Lets whoever waits go on. */
  private wake: (() => void) | null = null
  private woken = false

  constructor(process: Process, end: () => void) {
    this.process = process
    this.end = end
    const wait = Effect.callback<ReadonlyArray<WakeUp>>((resume) => {
      const caller = Fiber.getCurrent() ?? null
      this.wake = () => process.resumeWith(caller, () => resume(Effect.succeed(this.take())))
      return Effect.sync(() => {
        this.wake = null
      })
    })
    this.hints = Effect.suspend(() => this.pending.length > 0 ? Effect.succeed(this.take()) : wait)
  }

  offer(wakeUps: ReadonlyArray<WakeUp>): void {
    this.pending.push(wakeUps)
    if (this.pending.length > capacity) this.pending.shift()
    if (this.wake === null || this.woken) return
    this.woken = true
    this.process.kernel.post(this.process, "reply", "queue.hint", () => {
      this.woken = false
      if (this.pending.length > 0) this.wake?.()
    })
  }

  private take(): ReadonlyArray<WakeUp> {
    this.wake = null
    return this.pending.splice(0).flat()
  }
}

/** As it would be written on the wire, but for its form. */
const payloadOf = (wakeUps: ReadonlyArray<WakeUp>): string => {
  let payload = ""
  for (const wakeUp of wakeUps) {
    payload += wakeUp._tag
    if (wakeUp._tag === "Changed") for (const { id, workspaceId } of wakeUp.operations) payload += ` ${workspaceId}/${id}`
  }
  return payload
}
