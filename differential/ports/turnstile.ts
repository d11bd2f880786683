/** Where a program stands before every call of a port until it is let through: so that calls come in a chosen order. */
import { Effect, Fiber } from "effect"

/** Lets a fiber go on, in the way of its world. */
export type Wake = (fiber: Fiber.Fiber<unknown, unknown> | null, resume: () => void) => void

export class Turnstile {
  private readonly wake: Wake
  private readonly line: Array<() => void> = []

  constructor(wake: Wake) {
    this.wake = wake
  }

  /** Whether somebody stands before it. */
  get held(): boolean {
    return this.line.length > 0
  }

  /** Stands in line until it is its turn. */
  readonly pass: Effect.Effect<void> = Effect.callback((resume) => {
    const fiber = Fiber.getCurrent() ?? null
    const go = () => this.wake(fiber, () => resume(Effect.void))
    this.line.push(go)
    return Effect.sync(() => {
      const place = this.line.indexOf(go)
      if (place >= 0) this.line.splice(place, 1)
    })
  })

  /** Lets the first one through. */
  open(): void {
    this.line.shift()!()
  }
}
