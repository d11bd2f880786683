/**
 * An operation of a process on the world: it leaves, it arrives, and perhaps an answer comes back. The port that serves
 * it decides at each of these points whether anybody dies, and a dead process hears no answer.
 */
import { Effect, type Exit, Fiber } from "effect"
import { type Process, processOf } from "./Process.ts"

export interface Request<A, E> {
  /** What is asked, for the trace and for coordinates: `store.claim`, `provider.extract`. */
  readonly label: string
  /** How long it is on its way, in milliseconds. */
  readonly latencyMs: number
  /**
   * Called when it arrives, as an event of the world: also when its process has died since, is paused, or waits no
   * more. What is done here is done, whether or not it is ever answered.
   */
  readonly arrive: (call: Call<A, E>) => void
  /** Called when the caller is interrupted before it has an answer: at once, and not for the dead. */
  readonly abandoned?: (call: Call<A, E>) => void
}

/** One request, in the hands of the port. */
export interface Call<A, E> {
  readonly process: Process
  readonly label: string
  /** How many calls with this label its incarnation has made before: with the label, its place in a plan of faults. */
  readonly index: number
  /** Whether an answer would still reach somebody. A paused process waits. */
  readonly waiting: boolean
  /** Sends the answer, once; later ones go nowhere. Not answering at all is a lost reply. */
  readonly answer: (exit: Exit.Exit<A, E>, latencyMs?: number) => void
}

/** Asks the world and waits for its answer. Without one it waits for ever. */
export const io = <A, E = never>(request: Request<A, E>): Effect.Effect<A, E> =>
  Effect.callback<A, E>((resume) => {
    const caller = Fiber.getCurrent() ?? null
    const process = processOf(caller)
    const { kernel } = process
    let open = true
    const call: Call<A, E> = {
      process,
      label: request.label,
      index: process.callIndex(request.label),
      get waiting() {
        return open && !process.dead
      },
      answer: (exit, latencyMs = 0) => {
        kernel.postAt(kernel.micros + latencyMs * 1_000, process, "reply", request.label, () => {
          if (!open) return
          open = false
          process.resumeWith(caller, () => resume(exit))
        })
      }
    }
    const arrival = kernel.micros + request.latencyMs * 1_000
    kernel.postAt(arrival, process, "arrive", request.label, () => request.arrive(call), false)
    return Effect.sync(() => {
      if (!open) return
      open = false
      request.abandoned?.(call)
    })
  })
