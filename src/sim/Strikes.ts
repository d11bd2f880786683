/** How a port learns whether something goes wrong: decided once for each point, counted, and marked in the trace. */
import type { FaultKind, Point } from "./Faults.ts"
import type { Key } from "./Keyed.ts"

export interface Strikes {
  /** Decides, counts and marks. `null` always after healing. */
  readonly strike: (point: Point, kinds: ReadonlyArray<FaultKind>) => FaultKind | null
  /** A key for the details of a fault that struck. */
  readonly detail: (point: Point, kind: FaultKind) => Key
  readonly healed: boolean
}
