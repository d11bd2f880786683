/** A process that lives for its layer, as a service does, and serves requests with what the layer makes. */
import { Context, Effect, type Exit, type Fiber, Layer } from "effect"
import type { SecureRandom } from "effect/crypto"
import type { HostClock } from "./HostClock.ts"
import type { Kernel } from "./Kernel.ts"
import { Process } from "./Process.ts"

export interface LaunchOptions<S, E> {
  readonly name: string
  /** Built anew for every incarnation, and closed when it is terminated: its finalizers are the shutdown. */
  readonly layer: (process: Process) => Layer.Layer<S, E, SecureRandom.SecureRandom>
  readonly clock?: HostClock
}

export class Server<S> extends Process {
  /** What the layer made. Null until it is up. */
  services: Context.Context<S> | null = null
  private readonly launchOptions: LaunchOptions<S, unknown>

  constructor(kernel: Kernel, options: LaunchOptions<S, unknown>) {
    super(kernel, {
      ...options,
      main: (process) =>
        Layer.build(options.layer(process)).pipe(
          Effect.andThen((services) => {
            this.services = services
            return Effect.never
          }),
          Effect.scoped
        )
    })
    this.launchOptions = options
  }

  get up(): boolean {
    return this.services !== null && !this.dead
  }

  /**
   * Runs an effect as a request from outside. A server that is not up does nothing, and one that dies before the end
   * does not call back: `onDeath` tells. Returns how to tell it that nobody waits any more.
   */
  serve<A, E>(label: string, effect: Effect.Effect<A, E, S>, onExit: (exit: Exit.Exit<A, E>) => void): () => void {
    let fiber: Fiber.Fiber<A, E> | null = null
    const arrival = this.kernel.post(this, "signal", label, () => {
      if (this.services === null) return
      fiber = this.fork(Effect.provideContext(effect, this.services))
      fiber.addObserver(onExit)
    })
    return () => {
      this.kernel.cancel(arrival)
      if (fiber !== null) this.interrupt(fiber, label)
    }
  }

  override restart(): Server<S> {
    this.crash()
    return launch(this.kernel, { ...this.launchOptions, clock: this.clock })
  }
}

/** Starts the next incarnation of a server. It runs once the kernel does. */
export const launch = <S, E>(kernel: Kernel, options: LaunchOptions<S, E>): Server<S> => {
  const server = new Server<S>(kernel, options)
  server.start()
  return server
}
