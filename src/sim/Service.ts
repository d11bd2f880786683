/** The service of one world: its database, its queue, its model, and the machines on which its programs run, unmodified. */
import { Context, Layer } from "effect"
import * as Programs from "../services/Programs.ts"
import { type ExtractionRequest, Provider } from "../services/Provider.ts"
import { Queue } from "../services/Queue.ts"
import { Settings } from "../services/Settings.ts"
import type { Database, OpenDatabase } from "./Database.ts"
import { type AnyMachine, type FleetListener, Machine } from "./Fleet.ts"
import { HostClock } from "./HostClock.ts"
import type { Kernel } from "./Kernel.ts"
import { dimension, SimProvider } from "./ports/SimProvider.ts"
import { SimQueue } from "./ports/SimQueue.ts"
import type { Process } from "./Process.ts"
import type { ApiServices } from "./Requests.ts"
import type { Shape } from "./Shape.ts"
import type { SimSettings } from "./SimSettings.ts"
import type { Strikes } from "./Strikes.ts"

export interface ServiceOptions {
  readonly open: OpenDatabase
  readonly kernel: Kernel
  readonly strikes: Strikes
  readonly shape: Shape
  readonly settings: SimSettings
  readonly listener: FleetListener
  readonly asked: (request: ExtractionRequest, process: Process) => void
  readonly answered: (request: ExtractionRequest, process: Process, facts: number) => void
  readonly over: (request: ExtractionRequest, process: Process, waitMs: number | null) => void
  readonly notified: (payload: string) => void
}

export class Service {
  readonly database: Database
  readonly queue: SimQueue
  readonly provider: SimProvider
  readonly apis: ReadonlyArray<Machine<ApiServices>>
  /** The same, where everything runs in one process. */
  readonly workers: ReadonlyArray<AnyMachine>

  constructor({ answered, asked, kernel, listener, notified, open, over, settings, shape, strikes }: ServiceOptions) {
    const { leaseMs, providerMs } = shape
    const offsetMs = kernel.key.of("database clock").between(-60_000, 60_000)
    const clock = new HostClock(kernel, { name: "database", offsetMs })
    this.database = open({ kernel, strikes, dimension, clock })
    this.queue = new SimQueue({ kernel, strikes, overhear: notified })
    this.provider = new SimProvider({
      kernel,
      strikes,
      leaseMs,
      providerMs,
      timeoutMs: settings.providerTimeoutMs,
      patienceMs: settings.retry.rateLimitMaxAgeMs,
      asked,
      answered,
      over
    })
    const others = Context.make(Queue, this.queue.port).pipe(
      Context.add(Provider, this.provider.port),
      Context.add(Settings, settings)
    )
    const below = this.database.ports(others)
    const common = { kernel, leaseMs, listener }
    const together = shape.workers === 0
    const api = together ? Layer.merge(Programs.api, Programs.worker) : Programs.api
    this.apis = names("api", shape.apis).map((name) =>
      new Machine<ApiServices>({ ...common, name, layer: () => Layer.provideMerge(api, below) }))
    this.workers = together ? this.apis : names("worker", shape.workers).map((name) =>
      new Machine<never>({ ...common, name, layer: () => Layer.provide(Programs.worker, below) }))
  }

  get machines(): ReadonlyArray<AnyMachine> {
    return [...new Set<AnyMachine>([...this.apis, ...this.workers])]
  }

  /** Nobody stands still in the middle of something, and nobody waits for the model. */
  get quiet(): boolean {
    return this.provider.inFlight === 0 && this.machines.every(({ process }) => process === null || process.dead || !process.paused)
  }
}

const names = (role: string, count: number): ReadonlyArray<string> =>
  Array.from({ length: Math.max(1, count) }, (_, index) => `${role}-${index + 1}`)
