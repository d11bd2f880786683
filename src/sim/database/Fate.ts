/** What becomes of a request that has arrived at the database: it is served, late, in vain, or not at all. */
import type { Exit } from "effect"
import type { OutcomeUnknown } from "../../services/Transaction.ts"
import type { FaultKind, Point } from "../Faults.ts"
import type { Call } from "../Io.ts"
import type { Kernel } from "../Kernel.ts"
import type { Key } from "../Keyed.ts"
import type { Strikes } from "../Strikes.ts"
import { connectionLost, deadlockDetected, exitOf, serializationFailure } from "./DatabaseError.ts"

export type Answer<A> = Exit.Exit<A, OutcomeUnknown>
export type Reply<A> = (exit: Answer<A>) => void

/** One request that has arrived, and what each fate means to it. */
export interface Arrival<A> {
  readonly call: Call<A, OutcomeUnknown>
  readonly key: Key
  readonly faults: ReadonlyArray<FaultKind>
  /** Does what is asked. */
  readonly serve: (reply: Reply<A>) => void
  /** The server does not do it. */
  readonly refuse: () => void
  /** The connection breaks. */
  readonly lose: () => void
  /** It is done this much later, whatever happens to the connection. */
  readonly later: (ms: number) => void
  /** The server has nothing more to do with it. */
  readonly finish: () => void
}

export const statementFaults: ReadonlyArray<FaultKind> = [
  "crash_before", "crash_after", "lost_before_send", "in_doubt", "serialization_failure", "deadlock", "slow_statement"
]
export const indexFaults: ReadonlyArray<FaultKind> = [
  "crash_before", "crash_after", "index_down", "index_slow", "index_lost_reply"
]
export const beginFaults: ReadonlyArray<FaultKind> = ["crash_before", "crash_after", "lost_before_send", "in_doubt", "slow_statement"]
export const commitFaults: ReadonlyArray<FaultKind> = [
  "crash_before", "crash_after", "lost_before_send", "lost_acknowledgement", "late_commit", "serialization_failure",
  "slow_statement"
]
export const rollbackFaults: ReadonlyArray<FaultKind> = ["crash_before", "crash_after", "lost_before_send", "in_doubt"]

export class Fate {
  private readonly kernel: Kernel
  private readonly strikes: Strikes
  private downUntil = 0
  /** How often everything was lost: what is served across one of these is lost too. */
  private outages = 0

  constructor(kernel: Kernel, strikes: Strikes) {
    this.kernel = kernel
    this.strikes = strikes
  }

  /** Whatever arrives is lost until `ms` are over. */
  down(ms: number): void {
    this.downUntil = Math.max(this.downUntil, this.kernel.now + ms)
    this.outages++
  }

  /** Decides what goes wrong with a request, if anything does, and lets it happen. */
  meet<A>(arrival: Arrival<A>): void {
    const { call, faults, finish, key, lose, refuse, serve } = arrival
    const { process } = call
    const replyMs = latencyMs(key.of(0))
    const reply = (exit: Answer<A>, delayMs = 0) => {
      finish()
      call.answer(exit, replyMs + delayMs)
    }
    const lost = () => {
      lose()
      reply(exitOf(connectionLost))
    }
    if (this.kernel.now < this.downUntil) return lost()
    const point: Point = { actor: process.id, label: call.label, index: call.index }
    const fault = process.dead || faults.length === 0 ? null : this.strikes.strike(point, faults)
    switch (fault) {
      case null:
        return serve(reply)
      case "crash_before":
        process.crash()
        return finish()
      case "crash_after":
        return serve(() => {
          process.crash()
          finish()
        })
      case "lost_before_send":
      case "index_down":
        return lost()
      case "in_doubt":
      case "index_lost_reply":
      case "lost_acknowledgement":
        return serve(lost)
      case "serialization_failure":
      case "deadlock":
        refuse()
        return reply(exitOf(fault === "deadlock" ? deadlockDetected : serializationFailure))
      case "slow_statement":
      case "index_slow":
        return this.slow(this.strikes.detail(point, fault), arrival, reply, lost)
      case "late_commit":
        arrival.later(this.strikes.detail(point, fault).logUniform(5, 8_000))
        return lost()
      default:
        throw new Error(`the database knows nothing of ${fault}`)
    }
  }

  /** Either it is done late, or it is done and takes long to say so. */
  private slow<A>(detail: Key, { serve }: Arrival<A>, reply: (exit: Answer<A>, delayMs: number) => void, lost: () => void): void {
    const ms = detail.logUniform(20, 12_000)
    if (detail.of("answer").chance(0.5)) return serve((exit) => reply(exit, ms))
    const { outages } = this
    this.kernel.after(ms, "slow statement", () => {
      if (outages === this.outages) serve((exit) => reply(exit, 0))
      else lost()
    })
  }
}

/** Short, and another one for each request. */
export const latencyMs = (key: Key): number => 0.1 + 1.4 * key.unit()
