/** How big and how bad the world of one run is. The seed draws all of it; a spec may say otherwise. */
import { type FaultKind, faultKinds, type Rates } from "./Faults.ts"
import { fineBudget } from "./Kernel.ts"
import type { Key } from "./Keyed.ts"

export interface Shape {
  /** Processes that only work. None: the API processes work too, as where everything runs in one process. */
  readonly workers: number
  readonly apis: number
  readonly workspaces: number
  /** Users of each workspace, and so its lanes. */
  readonly lanes: number
  /** Inferred adds that clients set out to make, in all workspaces together. */
  readonly operations: number
  readonly leaseMs: number
  /** About how long the model thinks. */
  readonly providerMs: number
  /** How long the chaos lasts before the world heals. */
  readonly chaosMs: number
  /** Operations that a fiber does in one turn: `fineBudget`, or 0 for "until it waits". */
  readonly budget: number
  readonly rates: Rates
}

/** The workload that figures are given for: everything can happen. */
export const standard = { workers: 3, apis: 2, workspaces: 2, operations: 12 } as const

/** What has few occasions, and would hardly ever happen at the rates of the others. */
const seldomAsked: ReadonlyArray<FaultKind> = ["client_regrets", "client_starts_over"]

/** A swarm member: each kind of fault is off in half of the runs, and of any order of magnitude in the others. */
export const drawShape = (key: Key, engine: string): Shape => {
  const at = (name: string) => key.of("shape").of(name)
  const rates: Partial<Record<FaultKind, number>> = {}
  for (const kind of Object.keys(faultKinds) as ReadonlyArray<FaultKind>) {
    const own = at("rate").of(kind)
    const [least, most] = seldomAsked.includes(kind) ? [0.1, 1] as const : [0.001, 0.2] as const
    if (own.chance(0.5)) rates[kind] = own.of("rate").logUniform(least, most)
  }
  const leaseMs = at("lease").choose([2_000, 5_000, 10_000, 30_000])
  return {
    ...standard,
    workers: at("together").chance(0.2) ? 0 : at("workers").between(1, 4),
    apis: at("apis").between(1, 2),
    workspaces: at("workspaces").between(1, 3),
    lanes: at("lanes").between(1, 3),
    operations: at("operations").between(4, 16),
    leaseMs,
    // The ratio to the lease decides which bugs can be seen at all.
    providerMs: Math.round(leaseMs * at("provider").logUniform(0.02, 3)),
    // What happens idly, happens once a lease or so.
    chaosMs: Math.round(leaseMs * at("chaos").logUniform(3, 15)),
    budget: engine !== "pct" && at("budget").chance(0.1) ? fineBudget : 0,
    rates
  }
}
