/** How a port learns whether something goes wrong: decided once for each point, counted, and marked in the trace. */
import { type Fault, type FaultKind, type Faults, keyOf, type Moment, nameOf, type Occasion, placeOf, type Point } from "./Faults.ts"
import type { Kernel } from "./Kernel.ts"
import type { Key } from "./Keyed.ts"
import type { Keep } from "./Run.ts"

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
  /** `occasions` for whoever wants to try them all, `moments` for whoever wants to leave some out. */
  readonly keep?: Pick<Keep, "occasions" | "moments">
  /** Whoever is spared: nothing that these do goes wrong, nor could it. */
  readonly spares?: (actor: string) => boolean
}

/** Whoever decides for all ports of one run. */
export class Striker implements Strikes {
  readonly fired: Array<Fault> = []
  readonly occasions: Array<Occasion> = []
  readonly moments: Array<Moment> = []
  healed = false
  private readonly kernel: Kernel
  private readonly faults: Faults
  private readonly listen: (fault: Fault) => void
  private readonly keep: Pick<Keep, "occasions" | "moments">
  private readonly visits = new Map<string, number>()
  private readonly likes = new Map<string, Point>()
  private readonly spares: (actor: string) => boolean

  constructor({ faults, keep = {}, kernel, listen = () => {}, spares = () => false }: StrikerOptions) {
    this.kernel = kernel
    this.faults = faults
    this.listen = listen
    this.keep = keep
    this.spares = spares
  }

  strike(point: Point, kinds: ReadonlyArray<FaultKind>): FaultKind | null {
    if (this.healed || this.spares(point.actor)) return null
    if (this.keep.occasions === true) this.occasions.push({ ...point, kinds })
    const fault = this.faults.strike(point, kinds, this.kernel.now)
    if (this.keep.moments === true) this.pass(point, fault)
    if (fault === null) return null
    const { kind } = fault
    this.fired.push(fault)
    if (fault.like !== undefined) this.likes.set(nameOf(point), fault.like)
    this.kernel.mark(this.kernel.world, "note", kind, nameOf(point))
    this.listen(fault)
    return kind
  }

  detail(point: Point, kind: FaultKind): Key {
    return keyOf(this.kernel.key, this.likes.get(nameOf(point)) ?? point, kind)
  }

  /** A moment reaches halfway back to whoever was at this place before: it is not meant for him. */
  private pass(point: Point, fault: Fault | null): void {
    const { now } = this.kernel
    const place = placeOf(point)
    const before = this.visits.get(place) ?? -Infinity
    this.visits.set(place, now)
    if (fault !== null) this.moments.push({ ...fault, notBefore: Math.max((before + now) / 2, now - earlyMs) })
  }
}

/** How much earlier than it did a fault may strike when it is looked for by its time. */
const earlyMs = 200
