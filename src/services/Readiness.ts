/** Whether this process may be sent work. */
import { Context, type Effect } from "effect"

export interface ReadinessReport {
  readonly ready: boolean
  /** One entry for each thing that requests need. Names only: no hosts, no texts of errors. */
  readonly checks: Readonly<Record<string, "ok" | "failing">>
}

export class Readiness extends Context.Service<Readiness, {
  /** Looks now. Bounded in time, and never fails: what does not answer is `failing`. */
  readonly check: Effect.Effect<ReadinessReport>
}>()("indelible/services/Readiness") {}
