/**
 * The loop that a simulation runs in: one heap of events, one line of what is ready, one virtual time that moves only
 * when nothing is ready. No promise, no timer, no randomness but its key's: one seed, one history.
 */
import { EventHeap } from "./EventHeap.ts"
import { type Key, root } from "./Keyed.ts"
import { type Candidate, random, type Schedule } from "./Schedule.ts"
import { type MarkKind, type Recorder, RollingHash, type StepKind, stepKinds } from "./Trace.ts"
import * as Tripwires from "./tripwires.ts"

/** Whoever things happen to: a process incarnation, or the world. */
export class Actor {
  readonly id: string
  /** Nothing of its own happens any more. */
  dead = false
  /** What is its own waits until it is not. */
  paused = false
  /** What waits for that. */
  readonly parked: Array<Entry> = []
  /** How many entries were ever made for it. */
  entries = 0

  /** Of its name, for the hash of every step. */
  readonly word: number

  constructor(id: string) {
    this.id = id
    this.word = root(id).word()
  }
}

/** Something that is to happen. */
export interface Entry extends Candidate {
  readonly actor: Actor
  /** Dies and sleeps with its actor. What is on the wire does not. */
  readonly owned: boolean
  readonly kind: StepKind
  readonly label: string
  readonly at: number
  readonly seq: number
  readonly fire: () => void
  overtaken: number
  cancelled: boolean
}

export interface KernelOptions {
  readonly seed: string | number
  /** Unless given: any of those that are ready, with equal chances. */
  readonly schedule?: Schedule
  /** Operations that a fiber may do before others may go: `fineBudget`, more, or Infinity for "until it waits". */
  readonly budget?: number
  readonly recorder?: Recorder
  /** Hears every log line of every process, whether or not anything is recorded. */
  readonly overhear?: (actor: Actor, level: string, line: string) => void
  /** The wall time at which virtual time begins, in milliseconds. */
  readonly epochMs?: number
}

/** The smallest budget that makes progress on this Effect: one operation of the program in a turn. */
export const fineBudget = 3

export interface RunOptions {
  /** Looked at before every step; true ends the run. What it throws ends the run too: the place for invariants. */
  readonly until?: () => boolean
  /** The run ends when this much virtual time has passed, in milliseconds. */
  readonly forMs?: number
  readonly maxSteps?: number
  /** Steps without time moving. */
  readonly maxStepsAtOnce?: number
}

/** How a run ended. The last two are failures of whatever ran. */
export type Verdict =
  | { readonly _tag: "Reached" }
  | { readonly _tag: "TimeUp" }
  /** Nothing is left to happen, and nobody is alive. */
  | { readonly _tag: "Finished" }
  /** Nothing is left to happen, and these still wait for something. */
  | { readonly _tag: "Deadlock"; readonly waiting: ReadonlyArray<string> }
  /** Too many steps, in all or without time moving; these are in the middle of something. */
  | { readonly _tag: "Livelock"; readonly busy: ReadonlyArray<string> }

export class Kernel {
  readonly key: Key
  readonly epochMs: number
  readonly budget: number
  /** It happens to nobody, and never dies. */
  readonly world = new Actor("world")
  /** Everybody who is alive. */
  readonly actors = new Set<Actor>()
  private readonly schedule: Schedule
  private readonly recorder: Recorder | null
  private readonly overhear: KernelOptions["overhear"]
  private readonly future = new EventHeap<Entry>()
  private readonly ready: Array<Entry> = []
  private readonly counts = new Map<string, number>()
  private readonly rolling = new RollingHash()
  private time = 0
  private stepsTaken = 0
  private seq = 0
  private stepsAtOnce = 0
  private running = false
  private defect: Error | null = null

  constructor({ budget = fineBudget, epochMs = 1_767_225_600_000, overhear, recorder, schedule, seed }: KernelOptions) {
    this.key = root(seed)
    this.schedule = schedule ?? random(this.key.of("schedule"))
    this.budget = budget
    this.recorder = recorder ?? null
    this.overhear = overhear
    this.epochMs = epochMs
  }

  /** Virtual time since the beginning, in whole microseconds. */
  get micros(): number {
    return this.time
  }

  /** The same in milliseconds. */
  get now(): number {
    return this.time / 1_000
  }

  get steps(): number {
    return this.stepsTaken
  }

  /** Of everything that happened so far. Equal histories have equal hashes, in any process, on any machine. */
  get hash(): string {
    return this.rolling.hex
  }

  /** How often this name has been asked for before: a coordinate that nothing else can shift. */
  count(name: string): number {
    const count = this.counts.get(name) ?? 0
    this.counts.set(name, count + 1)
    return count
  }

  /** Lets something happen as soon as it is its turn. */
  post(actor: Actor, kind: StepKind, label: string, fire: () => void, owned = true): Entry {
    const entry = this.entry(this.time, actor, kind, label, fire, owned)
    this.makeReady(entry)
    return entry
  }

  /** Lets something happen when virtual time has come to `micros`. */
  postAt(micros: number, actor: Actor, kind: StepKind, label: string, fire: () => void, owned = true): Entry {
    if (micros <= this.time) return this.post(actor, kind, label, fire, owned)
    const entry = this.entry(Math.ceil(micros), actor, kind, label, fire, owned)
    this.future.push(entry)
    return entry
  }

  /** Lets something happen to the world `ms` from now, whoever dies until then. */
  after(ms: number, label: string, fire: () => void): Entry {
    return this.postAt(this.time + ms * 1_000, this.world, "event", label, fire, false)
  }

  cancel(entry: Entry): void {
    entry.cancelled = true
    const place = this.ready.indexOf(entry)
    if (place >= 0) this.ready.splice(place, 1)
  }

  /** Everything of the dead is dropped, and what is theirs on the wire goes on. */
  bury(actor: Actor): void {
    actor.dead = true
    actor.parked.length = 0
    this.actors.delete(actor)
    this.takeOwned(actor)
  }

  pause(actor: Actor): void {
    actor.paused = true
    actor.parked.push(...this.takeOwned(actor))
  }

  /** Everything that came due in the meantime is ready now, all at once. */
  resume(actor: Actor): void {
    actor.paused = false
    for (const entry of actor.parked.splice(0)) this.makeReady(entry)
  }

  /** Remembers something in the trace and in the hash. A log line is only for people. */
  mark(actor: Actor, kind: MarkKind, label: string, detail = ""): void {
    if (kind === "log") this.overhear?.(actor, label, detail)
    else {
      for (const text of [kind, actor.id, label, detail]) this.rolling.text(text)
    }
    this.record(actor, kind, label, detail)
  }

  /** Ends the run with an error that no program can swallow: the simulation itself is not what it should be. */
  abort(message: string): Error {
    return this.defect ??= new Error(message)
  }

  /** Lets things happen until `until`, or the end of the time given, or the end of patience. */
  run(options: RunOptions = {}): Verdict {
    if (this.running) throw new Error("a simulation cannot run itself")
    this.running = true
    const tripwires = Tripwires.arm()
    try {
      return this.loop(options, tripwires)
    } finally {
      tripwires.disarm()
      this.running = false
    }
  }

  private loop(options: RunOptions, tripwires: Tripwires.Tripwires): Verdict {
    const { forMs = Infinity, maxSteps = 1_000_000, maxStepsAtOnce = 100_000, until } = options
    const end = Math.ceil(this.time + forMs * 1_000)
    const patience = this.stepsTaken + maxSteps
    while (true) {
      if (until?.() === true) return { _tag: "Reached" }
      if (this.ready.length === 0) {
        const verdict = this.moveTime(end)
        if (verdict !== null) return verdict
        continue
      }
      if (this.stepsTaken >= patience || this.stepsAtOnce >= maxStepsAtOnce) {
        return { _tag: "Livelock", busy: [...new Set(this.ready.map(({ actor }) => actor.id))] }
      }
      this.step()
      const defect = tripwires.touched() ?? this.defect
      if (defect !== null) throw defect
    }
  }

  private step(): void {
    const { ready } = this
    const place = ready.length > 1 ? this.schedule.choose(ready) : 0
    const entry = ready[place]
    if (entry === undefined) throw new RangeError("a schedule chose nobody")
    if (place > 0) ready[0]!.overtaken++
    ready.splice(place, 1)
    this.stepsTaken++
    this.stepsAtOnce++
    this.rolling.word(entry.actor.word)
    this.rolling.word(entry.index)
    this.rolling.word(stepKinds.indexOf(entry.kind))
    this.rolling.word(this.time)
    this.record(entry.actor, entry.kind, entry.label, "")
    entry.fire()
  }

  /** To the next event that still concerns anybody. Everything that is due then is ready at once, in any order. */
  private moveTime(end: number): Verdict | null {
    const { future } = this
    let next = future.peek()
    while (next !== undefined && isVoid(next)) {
      future.pop()
      next = future.peek()
    }
    if (next === undefined) {
      if (this.actors.size === 0) return { _tag: "Finished" }
      return { _tag: "Deadlock", waiting: [...this.actors].map(({ id }) => id) }
    }
    this.stepsAtOnce = 0
    if (next.at > end) {
      this.time = end
      return { _tag: "TimeUp" }
    }
    this.time = next.at
    while (future.peek()?.at === this.time) this.makeReady(future.pop()!)
    return null
  }

  private makeReady(entry: Entry): void {
    if (isVoid(entry)) return
    if (entry.owned && entry.actor.paused) entry.actor.parked.push(entry)
    else this.ready.push(entry)
  }

  private takeOwned(actor: Actor): ReadonlyArray<Entry> {
    const isTaken = (entry: Entry) => entry.owned && entry.actor === actor
    const taken = this.ready.filter(isTaken)
    if (taken.length > 0) this.ready.splice(0, this.ready.length, ...this.ready.filter((entry) => !isTaken(entry)))
    return taken
  }

  private entry(at: number, actor: Actor, kind: StepKind, label: string, fire: () => void, owned: boolean): Entry {
    const seq = this.seq++
    return { at, seq, actor, kind, label, fire, owned, index: actor.entries++, overtaken: 0, cancelled: false }
  }

  private record(actor: Actor, kind: StepKind | MarkKind, label: string, detail: string): void {
    if (this.recorder === null) return
    this.recorder({ step: this.stepsTaken, at: this.now, actor: actor.id, kind, label, detail, hash: this.hash })
  }
}

/** It will never happen: somebody cancelled it, or whose it is has died. */
const isVoid = (entry: Entry): boolean => entry.cancelled || (entry.owned && entry.actor.dead)
