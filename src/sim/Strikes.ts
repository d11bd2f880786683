/** How a port learns whether something goes wrong: decided once for each point, counted, and marked in the trace. */
import { type Fault, type FaultKind, type Faults, keyOf, nameOf, type Occasion, type Point } from "./Faults.ts"
import type { Kernel } from "./Kernel.ts"
import type { Key } from "./Keyed.ts"

export interface Strikes {
  /** Decides, counts and marks. `null` always after healing. */
  readonly strike: (point: Point, kinds: ReadonlyArray<FaultKind>) => FaultKind | null
  /** A key for the details of a fault that struck. */
  readonly detail: (point: Point, kind: FaultKind) => Key
  readonly healed: boolean
}

export interface StrikerOptions {
  readonly kernel: Kernel
  readonly faults: Faults
  /** Told of each fault when it strikes, before it does anything. */
  readonly listen?: (fault: Fault) => void
  /** Whether every occasion is kept, for whoever wants to try them all. */
  readonly keepOccasions?: boolean
  /** Whoever is spared: nothing that these do goes wrong, nor could it. */
  readonly spares?: (actor: string) => boolean
}

/** Whoever decides for all ports of one run. */
export class Striker implements Strikes {
  readonly fired: Array<Fault> = []
  readonly occasions: Array<Occasion> = []
  healed = false
  private readonly kernel: Kernel
  private readonly faults: Faults
  private readonly listen: (fault: Fault) => void
  private readonly keepOccasions: boolean
  private readonly spares: (actor: string) => boolean

  constructor({ faults, keepOccasions = false, kernel, listen = () => {}, spares = () => false }: StrikerOptions) {
    this.kernel = kernel
    this.faults = faults
    this.listen = listen
    this.keepOccasions = keepOccasions
    this.spares = spares
  }

  strike(point: Point, kinds: ReadonlyArray<FaultKind>): FaultKind | null {
    if (this.healed || this.spares(point.actor)) return null
    if (this.keepOccasions) this.occasions.push({ ...point, kinds })
    const kind = this.faults.strike(point, kinds)
    if (kind === null) return null
    const fault = { kind, actor: point.actor, label: point.label, index: point.index }
    this.fired.push(fault)
    this.kernel.mark(this.kernel.world, "note", kind, nameOf(point))
    this.listen(fault)
    return kind
  }

  detail(point: Point, kind: FaultKind): Key {
    return keyOf(this.kernel.key, point, kind)
  }
}
