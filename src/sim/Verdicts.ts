/** What a world itself finds wrong, beside the oracles: programs with defects, nothing that moves, clients left alone. */
import { WorkspaceId } from "../domain/Ids.ts"
import type { Violation } from "../domain/Invariant.ts"
import type { Verdict } from "./Kernel.ts"

/** Each with its sentence. */
export const worldPromises = [
  {
    name: "no-defects",
    promise: "No program ends with a defect, serves a request with one, or logs that something is not as it must be."
  },
  { name: "no-deadlock", promise: "As long as somebody is alive, something is still going to happen." },
  { name: "no-livelock", promise: "Everything that is done comes to something, in a bounded number of steps." },
  { name: "clients-are-served", promise: "In a healed world every client that goes on asking gets its answer." },
  { name: "revoked-is-revoked", promise: "Once a key was revoked, nobody who asks after that is let in with it." }
] as const

export type WorldPromise = (typeof worldPromises)[number]["name"]

export class Verdicts {
  readonly violations: Array<Violation> = []
  private readonly blind: ReadonlySet<string>

  constructor(blind: ReadonlyArray<string> = []) {
    this.blind = new Set(blind)
  }

  add(invariant: WorldPromise, id: string, detail: string): void {
    if (!this.blind.has(invariant)) this.violations.push({ invariant, workspaceId: nowhere, id, detail })
  }

  /** How the loop ended: there should have been a reason. */
  ended(verdict: Verdict): void {
    if (verdict._tag === "Deadlock") this.add("no-deadlock", verdict.waiting.join(" "), "nothing is left to happen")
    if (verdict._tag === "Livelock") this.add("no-livelock", verdict.busy.join(" "), "too many steps")
  }

  /** A log line. Errors are how programs say that an invariant broke, but for one that is about the world outside. */
  overhear(processId: string, level: string, line: string): void {
    if (level === "Error" && !line.startsWith(operatorsFault)) this.add("no-defects", processId, line)
  }
}

/** An error for the operator to mend, and no defect. */
const operatorsFault = "The provider refuses our requests"

const nowhere = WorkspaceId.make("world")
