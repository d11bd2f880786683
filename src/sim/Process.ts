/**
 * One incarnation of a simulated process. Its fibers run on a scheduler, a clock, a randomness and a logger of its own;
 * a crash drops all of it at once, and no finalizer runs.
 */
import { type Context, Effect, Exit, Fiber, type Scheduler } from "effect"
import type { SecureRandom } from "effect/crypto"
import { environment } from "./Environment.ts"
import { HostClock } from "./HostClock.ts"
import { Actor, type Kernel } from "./Kernel.ts"
import type { Key } from "./Keyed.ts"

export type ProcessState =
  | "running"
  /** SIGTERM was sent: it drains, and is killed if that takes too long. */
  | "terminating"
  /** Its main effect has ended, and the process with it. */
  | "exited"
  | "crashed"

export interface SpawnOptions {
  readonly name: string
  /** What the incarnation runs; it is over when this is. Called again for every incarnation: no memory survives. */
  readonly main: (process: Process) => Effect.Effect<unknown, unknown, SecureRandom.SecureRandom>
  /** The clock of its machine. An exact one of its own, unless given. */
  readonly clock?: HostClock
}

export class Process extends Actor implements Scheduler.Scheduler {
  readonly executionMode = "async"
  readonly kernel: Kernel
  readonly name: string
  /** From 1: how often a process of this name has been started. */
  readonly incarnation: number
  readonly clock: HostClock
  readonly key: Key
  state: ProcessState = "running"
  /** How the main effect ended. Null while it runs, and for ever after a crash. */
  exit: Exit.Exit<unknown, unknown> | null = null
  private readonly options: SpawnOptions
  private readonly context: Context.Context<SecureRandom.SecureRandom>
  private readonly dispatcher: Scheduler.SchedulerDispatcher
  private readonly deathListeners = new Set<() => void>()
  private readonly calls = new Map<string, number>()
  private main: Fiber.Fiber<unknown, unknown> | null = null
  /** The fiber that has just been told to yield: the task that follows is its way back. */
  private yielder: Fiber.Fiber<unknown, unknown> | null = null
  /** The only fiber that may go on at its first operation: whoever else is resumed meanwhile gets a turn of its own. */
  private allowed: Fiber.Fiber<unknown, unknown> | null = null

  constructor(kernel: Kernel, options: SpawnOptions) {
    const incarnation = kernel.count(`process/${options.name}`) + 1
    super(`${options.name}#${incarnation}`)
    this.kernel = kernel
    this.options = options
    this.name = options.name
    this.incarnation = incarnation
    this.clock = options.clock ?? new HostClock(kernel, { name: options.name })
    this.key = kernel.key.of("process").of(options.name).of(incarnation)
    this.dispatcher = {
      scheduleTask: (task) => this.schedule(task),
      flush: () => {
        throw kernel.abort("a simulated process was told to run to its end at once")
      }
    }
    this.context = environment(this)
  }

  makeDispatcher(): Scheduler.SchedulerDispatcher {
    return this.dispatcher
  }

  shouldYield(fiber: Fiber.Fiber<unknown, unknown>): boolean {
    if (this.dead || this.paused) return this.yields(fiber)
    if (fiber.currentOpCount > 1) return fiber.currentOpCount >= this.kernel.budget && this.yields(fiber)
    if (this.allowed !== fiber) return this.yields(fiber)
    this.allowed = null
    return false
  }

  /** Runs something that resumes this one fiber, which then goes on without another turn. */
  resumeWith(fiber: Fiber.Fiber<unknown, unknown> | null, resume: () => void): void {
    this.allowed = fiber
    try {
      resume()
    } finally {
      this.allowed = null
    }
  }

  /** How many calls of this name the incarnation has made before. */
  callIndex(label: string): number {
    const index = this.calls.get(label) ?? 0
    this.calls.set(label, index + 1)
    return index
  }

  /** Calls back once, when the process has exited or crashed; at once when it has. Connections break then. */
  onDeath(listener: () => void): () => void {
    if (this.dead) listener()
    else this.deathListeners.add(listener)
    return () => this.deathListeners.delete(listener)
  }

  /** From this moment on nothing of it happens. What it sent is on its way. */
  crash(): void {
    this.end("crashed", "crash", "")
  }

  /** SIGTERM: interrupts the main effect, waits for its finalizers, and kills what is left after the deadline. */
  terminate(deadlineMs: number): void {
    if (this.state !== "running") return
    this.state = "terminating"
    this.kernel.mark(this, "terminate", "SIGTERM", `${deadlineMs} ms`)
    if (this.main === null) return this.crash()
    this.interrupt(this.main, "SIGTERM")
    const kill = this.kernel.after(deadlineMs, "SIGKILL", () => this.crash())
    this.onDeath(() => this.kernel.cancel(kill))
  }

  /** Stands still while time goes on: a debugger, a full disk, a garbage collection. */
  pause(): void {
    if (this.dead || this.paused) return
    this.kernel.mark(this, "pause", "SIGSTOP")
    this.kernel.pause(this)
  }

  resume(): void {
    if (this.dead || !this.paused) return
    this.kernel.mark(this, "resume", "SIGCONT")
    this.kernel.resume(this)
  }

  /** The next incarnation, on the same machine. This one crashes if it still lives. */
  restart(): Process {
    this.crash()
    return spawn(this.kernel, { ...this.options, clock: this.clock })
  }

  /** Begins its life, once. `spawn` has done that. */
  start(): void {
    this.kernel.actors.add(this)
    this.kernel.mark(this, "spawn", this.name)
    this.kernel.post(this, "signal", "start", () => {
      this.main = this.fork(this.options.main(this))
      this.main.addObserver((exit) => {
        this.exit = exit
        const how = Exit.isSuccess(exit) ? "success" : Exit.hasInterrupts(exit) ? "interrupted" : "failure"
        this.end("exited", "exit", how)
      })
    })
  }

  /** Runs an effect on this process. Only from an event of its own: everything else is somebody else's stack. */
  protected fork<A, E>(effect: Effect.Effect<A, E, SecureRandom.SecureRandom>): Fiber.Fiber<A, E> {
    return Effect.runForkWith(this.context)(effect, { scheduler: this })
  }

  private end(state: ProcessState, mark: "crash" | "exit", detail: string): void {
    if (this.dead) return
    this.state = state
    this.kernel.bury(this)
    this.kernel.mark(this, mark, this.name, detail)
    for (const listener of this.deathListeners) listener()
    this.deathListeners.clear()
  }

  protected interrupt(fiber: Fiber.Fiber<unknown, unknown>, label: string): void {
    this.kernel.post(this, "signal", label, () => this.resumeWith(fiber, () => fiber.interruptUnsafe()))
  }

  private yields(fiber: Fiber.Fiber<unknown, unknown>): true {
    this.yielder = fiber
    return true
  }

  private schedule(task: () => void): void {
    const fiber = this.yielder
    this.yielder = null
    if (Fiber.getCurrent()?.cache.preventYield === true) throw this.kernel.abort("PreventSchedulerYield hides a fiber")
    this.kernel.post(this, "task", "", () => this.resumeWith(fiber, task))
  }
}

/** Starts the next incarnation of a process. It runs once the kernel does. */
export const spawn = (kernel: Kernel, options: SpawnOptions): Process => {
  const process = new Process(kernel, options)
  process.start()
  return process
}

/** The process that the calling fiber runs on. */
export const current: Effect.Effect<Process> = Effect.withFiber((fiber) => Effect.succeed(processOf(fiber)))

export const processOf = (fiber: Fiber.Fiber<unknown, unknown> | null): Process => {
  const scheduler = fiber?.cache.scheduler
  if (scheduler instanceof Process) return scheduler
  throw new Error("this effect runs outside the simulation")
}
