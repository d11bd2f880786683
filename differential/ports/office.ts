/** Those who run programs on one of the two databases, and what they are told, the same for both. */
import { type Context, Effect, type Exit } from "effect"
import type { Told } from "../history.ts"
import type { Settled, Side, Wait } from "../kind.ts"
import { type Desk, environment, type Hands } from "./hands.ts"
import * as Plain from "./plain.ts"
import { outcomeOf, script } from "./scripts.ts"
import type { Program, Step } from "./sequence.ts"
import { Turnstile, type Wake } from "./turnstile.ts"

/** One of them, with a connection of his own. */
export class Clerk implements Desk {
  readonly on: number
  readonly turnstile: Turnstile
  readonly context: Context.Context<never>
  /** A program of his has begun and has not ended. */
  running = false
  private readonly tell: (told: Told) => void
  private readonly now: () => number

  constructor({ now, on, tell, wake }: {
    readonly on: number
    readonly wake: Wake
    readonly tell: (told: Told) => void
    /** The clock of his world, in milliseconds. */
    readonly now: () => number
  }) {
    this.on = on
    this.turnstile = new Turnstile(wake)
    this.context = environment(this)
    this.tell = tell
    this.now = now
  }

  /** He has been let through, and has not come back. */
  get busy(): boolean {
    return this.running && !this.turnstile.held
  }

  hear(name: string, exit: Exit.Exit<unknown, unknown>, ordered: boolean): void {
    this.tell({ on: this.on, what: `${name}: ${Plain.told(exit, this.now(), ordered)}` })
  }

  /** A program, to be run on his database. */
  program(hands: Hands, act: Program): Effect.Effect<unknown, unknown> {
    this.running = true
    return Effect.provideContext(Effect.suspend(() => script(hands, act)), this.context).pipe(
      Effect.map(outcomeOf),
      Effect.onExit((exit) => Effect.sync(() => this.end(exit)))
    )
  }

  private end(exit: Exit.Exit<unknown, unknown>): void {
    this.running = false
    this.hear(ended, exit, false)
  }
}

/** What the end of a program is called. */
export const ended = "ended"

/** One of the two databases, in the hands of its clerks. */
export abstract class Office implements Side<Step> {
  abstract readonly rows: Effect.Effect<string>
  protected readonly clerks: ReadonlyArray<Clerk>
  private readonly told: Array<Told>

  /** They tell what they hear here. */
  constructor(clerks: ReadonlyArray<Clerk>, told: Array<Told>) {
    this.clerks = clerks
    this.told = told
  }

  /** Lets a program begin: it comes to the turnstile, or to its end. */
  protected abstract begin(clerk: Clerk, act: Program): Effect.Effect<void>

  /** Returns who waits, once nobody is busy but those who do. */
  protected abstract readonly settled: Effect.Effect<ReadonlyArray<Wait>>

  /** What has to happen before this moment. */
  protected before(_at: number): void {}

  step({ act, on }: Step, at: number): Effect.Effect<Settled> {
    return Effect.gen({ self: this }, function*() {
      const clerk = this.clerks[on]!
      this.told.length = 0
      this.before(at)
      let waits: ReadonlyArray<Wait> = []
      if (act.do !== "go") {
        yield* this.begin(clerk, act)
        waits = yield* this.settled
      }
      const calls = act.do === "go" ? act.calls : 1
      for (let call = 0; call < calls && clerk.turnstile.held; call++) {
        clerk.turnstile.open()
        waits = yield* this.settled
      }
      return { told: [...this.told], waits }
    })
  }
}
