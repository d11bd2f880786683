/**
 * A world small enough to know by heart, on the real kernel: workers that claim, charge and store, and a bank. Bugs can
 * be planted that need one fault, two faults, or nothing but an unlucky schedule.
 */
import { WorkspaceId } from "../../src/domain/Ids.ts"
import * as Faults from "../../src/sim/Faults.ts"
import { Actor, Kernel } from "../../src/sim/Kernel.ts"
import { root } from "../../src/sim/Keyed.ts"
import type { Run, Simulate } from "../../src/sim/Run.ts"
import * as Schedule from "../../src/sim/Schedule.ts"
import { drawShape } from "../../src/sim/Shape.ts"
import { Striker, type Strikes } from "../../src/sim/Strikes.ts"
import { keeping } from "../../src/sim/Trace.ts"

/**
 * `charge`: who takes over charges again, which one crash shows. `answer`: a lost acknowledgement that comes after a
 * crash elsewhere loses the operation, which takes two faults. `order`: whoever comes first has to be worker-1. `never`:
 * an operation that was in doubt is never done, which only the end shows. `leak`: something of earlier runs shows.
 * `error`: the simulation itself fails now and then.
 */
export type Bug = "charge" | "answer" | "order" | "never" | "leak" | "error"

/** Of all runs of this thread, which no run may know. */
let runsEver = 0

interface Operation {
  readonly id: number
  holder: Actor | null
  charges: number
  stored: number
}

const statementKinds = ["crash_before", "crash_after", "in_doubt", "lost_before_send"] as const
const commitKinds = ["crash_before", "crash_after", "lost_acknowledgement"] as const

export const toy = (...bugs: ReadonlyArray<Bug>): Simulate => (spec, keep = {}) => {
  const key = root(spec.seed)
  const shape = { ...drawShape(key, spec.engine), ...spec.shape }
  const { events, record } = keeping()
  const deviations: Array<Schedule.Deviation> = []
  const replay = spec.deviations === undefined ? null : Schedule.replay(spec.deviations)
  const schedule = replay ?? Schedule.random(key.of("schedule"))
  const kernel = new Kernel({
    seed: spec.seed,
    schedule: keep.deviations === true ? Schedule.recording(schedule, deviations) : schedule,
    ...(keep.trace === true ? { recorder: record } : {})
  })
  const faults = Faults.decided(spec, key.of("faults"), shape.rates)
  const striker = new Striker({ kernel, faults, keep })
  const bank = new Bank(kernel, striker, bugs, shape.operations)
  runsEver++
  if (bugs.includes("leak")) kernel.mark(kernel.world, "note", "leak", String(runsEver))
  if (bugs.includes("error") && key.of("error").chance(0.1)) throw new Error("the toy is broken")
  for (let worker = 1; worker <= Math.max(1, shape.workers); worker++) bank.employ(`worker-${worker}`)
  const until = () => bank.broken !== null
  const patience = keep.forMs ?? Infinity
  kernel.run({ forMs: Math.min(shape.chaosMs, patience), until })
  striker.healed = true
  if (patience > shape.chaosMs) kernel.run({ forMs: Math.min(10_000, patience - shape.chaosMs), until })
  const broken = bank.broken ?? (kernel.now < patience ? bank.unfinished : null)
  const violations = broken === null || spec.blind?.includes(broken.invariant) === true ? [] : [broken]
  return {
    spec,
    shape,
    violations,
    steps: kernel.steps,
    virtualMs: kernel.now,
    hash: kernel.hash,
    fired: striker.fired,
    unused: { faults: faults.unused(), deviations: replay?.unused() ?? [] },
    reached: bank.takeovers > 0 ? ["takeover"] : [],
    states: bank.states,
    outcomes: { stored: bank.operations.filter(({ stored }) => stored > 0).length },
    trace: events(),
    occasions: striker.occasions,
    moments: striker.moments,
    deviations
  } satisfies Run
}

class Bank {
  readonly operations: ReadonlyArray<Operation>
  readonly states: Array<number> = []
  takeovers = 0
  broken: Run["violations"][number] | null = null
  private readonly kernel: Kernel
  private readonly strikes: Strikes
  private readonly bugs: ReadonlyArray<Bug>

  constructor(kernel: Kernel, strikes: Strikes, bugs: ReadonlyArray<Bug>, operations: number) {
    this.kernel = kernel
    this.strikes = strikes
    this.bugs = bugs
    this.operations = Array.from({ length: operations }, (_, id) => ({ id, holder: null, charges: 0, stored: 0 }))
  }

  get unfinished(): Run["violations"][number] | null {
    const left = this.operations.find(({ stored }) => stored === 0)
    return left === undefined ? null : violation("every operation ends", left, "still open")
  }

  employ(name: string): void {
    const worker = new Actor(`${name}#${this.kernel.count(name) + 1}`)
    this.kernel.actors.add(worker)
    this.kernel.mark(worker, "spawn", name)
    this.claim(name, worker)
  }

  private claim(name: string, worker: Actor): void {
    this.statement(worker, name, "claim", statementKinds, () => {
      const open = this.operations.find(({ holder, stored }) => stored === 0 && (holder === null || holder.dead))
      if (open === undefined) return this.retire(worker)
      if (open.id === 0 && open.holder === null && this.bugs.includes("order") && name !== "worker-1") {
        this.broken ??= violation("first come, first served", open, `${name} was first`)
      }
      if (open.holder !== null) this.takeovers++
      open.holder = worker
      this.charge(name, worker, open)
    })
  }

  private charge(name: string, worker: Actor, operation: Operation): void {
    this.statement(worker, name, "charge", statementKinds, (fault) => {
      if (operation.charges === 0 || this.bugs.includes("charge")) operation.charges++
      if (operation.charges > 1) this.broken ??= violation("charged once", operation, `${operation.charges} times`)
      if (fault === "in_doubt" && this.bugs.includes("never")) return this.claim(name, worker)
      this.store(name, worker, operation)
    })
  }

  private store(name: string, worker: Actor, operation: Operation): void {
    this.statement(worker, name, "store", commitKinds, (fault) => {
      const forgotten = fault === "lost_acknowledgement" && this.takeovers > 0 && this.bugs.includes("answer")
      if (forgotten) this.broken ??= violation("stored once", operation, "forgotten")
      operation.stored++
      this.states.push(root(this.operations.map(({ charges, stored }) => `${charges}${stored}`).join()).word())
      this.claim(name, worker)
    })
  }

  /** One statement, a millisecond away. A worker that dies is replaced a little later. */
  private statement(
    worker: Actor,
    name: string,
    label: string,
    kinds: ReadonlyArray<Faults.FaultKind>,
    done: (fault: Faults.FaultKind | null) => void
  ): void {
    const { kernel } = this
    kernel.postAt(kernel.micros + 1_000, worker, "arrive", label, () => {
      const point = { actor: worker.id, label, index: kernel.count(`${worker.id}/${label}`) }
      const kind = this.strikes.strike(point, kinds)
      if (kind === "crash_before") return this.crash(name, worker)
      if (kind === "lost_before_send") return this.statement(worker, name, label, kinds, done)
      done(kind)
      if (kind === "crash_after") this.crash(name, worker)
    })
  }

  private crash(name: string, worker: Actor): void {
    this.kernel.mark(worker, "crash", "")
    this.kernel.bury(worker)
    this.kernel.after(10, `restart ${name}`, () => this.employ(name))
  }

  private retire(worker: Actor): void {
    this.kernel.mark(worker, "exit", "nothing left")
    this.kernel.bury(worker)
  }
}

const violation = (invariant: string, { id }: Operation, detail: string): Run["violations"][number] => ({
  invariant,
  workspaceId: WorkspaceId.make("toy"),
  id: `operation-${id}`,
  detail
})
