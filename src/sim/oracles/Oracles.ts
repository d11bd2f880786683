/**
 * Everything that must be true of a simulated run, held against what it does while it does it: a commit costs what it
 * touches, and now and then everything is looked at, to show that nothing was overlooked.
 */
import type { OperationRef } from "../../domain/Ids.ts"
import type { Violation } from "../../domain/Invariant.ts"
import { checkSnapshot } from "../../domain/Invariants.ts"
import type { ExtractionRequest } from "../../services/Provider.ts"
import { defaultSettings, type SettingsShape } from "../../services/Settings.ts"
import type { Commit, Committed } from "../Commit.ts"
import type { Fault } from "../Faults.ts"
import type { Told } from "../Told.ts"
import { AbstractStates } from "./AbstractStates.ts"
import { Book, keyOf, operationOf } from "./Book.ts"
import { Calm, leavesNothing } from "./CalmOracles.ts"
import { Canary, canaryPromise, madeUpPromise } from "./Canary.ts"
import { endOracles, missing } from "./EndOracles.ts"
import { hearing } from "./Hearing.ts"
import { livenessNames, overdue, stuck } from "./Liveness.ts"
import { hold, named, type Named } from "./Oracle.ts"
import { Askings, askingOracles, Fates } from "./ProcessOracles.ts"
import { promisesOf } from "./Promises.ts"
import type { ReachedState } from "./Reached.ts"
import { toldOracles } from "./ToldOracles.ts"
import { Tracks } from "./Tracks.ts"
import { Watch } from "./Watch.ts"
import { disagreements, foundOnTheWay, nowhere, snapshotOf, toldInFull, untold } from "./Whole.ts"

export interface OraclesOptions {
  readonly settings: SettingsShape
  /** Virtual time, in milliseconds. */
  readonly now: () => number
  /** The database clock, in milliseconds. Without it, time passes there as it does in the world. */
  readonly databaseNow?: () => number
  /** Names of promises that are not looked at. */
  readonly blind?: ReadonlyArray<string>
  /** Texts that were planted in inputs. */
  readonly canaries?: ReadonlyArray<string>
  /** Texts that the model makes up about what it was never shown. */
  readonly neverStored?: ReadonlyArray<string>
  /** Whether somebody has the row of an operation locked now. */
  readonly locked?: (ref: OperationRef) => boolean
  /** What the model makes of a text. */
  readonly vectorOf?: (text: string) => Float32Array
  /** After how many commits everything is looked at. */
  readonly wholeEvery?: number
}

export class Oracles {
  /** What was found, in the order of finding. Empty: everything held. */
  readonly violations: Array<Violation> = []
  private readonly now: () => number
  private readonly databaseNow: () => number
  private readonly blind: ReadonlySet<string>
  private readonly wholeEvery: number
  private readonly tracks = new Tracks()
  private readonly book = new Book()
  private readonly fates = new Fates()
  private readonly abstract = new AbstractStates()
  private readonly watch = new Watch(this.tracks, this.fates)
  private readonly settings: SettingsShape
  private healedAt: number | null = null
  private readonly canary: Canary
  private readonly madeUp: Canary
  private readonly askings: Askings
  private readonly calm: Calm
  private readonly promises: ReturnType<typeof promisesOf>

  constructor(options: OraclesOptions) {
    const { blind = [], canaries = [], databaseNow, locked = null, neverStored = [], now, settings } = options
    const { vectorOf = null, wholeEvery = 512 } = options
    const { fates, tracks } = this
    this.settings = settings
    this.now = now
    this.databaseNow = databaseNow ?? (() => (tracks.count === 0 ? 0 : tracks.commit.at + now() - tracks.now))
    this.blind = new Set(blind)
    this.wholeEvery = wholeEvery
    this.canary = new Canary(canaries)
    this.madeUp = new Canary(neverStored)
    const askings = this.askings = new Askings(settings, tracks, fates)
    const calm = this.calm = new Calm(settings, fates, now)
    this.promises = promisesOf({ settings, tracks, fates, askings, calm, locked, vectorOf, blind: this.blind })
  }

  /** Something became durable. */
  commit(commit: Commit, committed: Committed): void {
    const { tracks } = this
    if (tracks.count === 0) tracks.begin(commit.changes, committed)
    tracks.take(commit, this.now())
    const found: Array<Violation> = []
    this.holdSlices(found)
    if (found.length > 0) found.push(...disagreements(found, this.inTheWhole(committed)))
    this.holdSteps(found)
    for (const place of tracks.torn) found.push(violation(toldInFull, place, "it does not begin where the last one ended"))
    for (const change of commit.changes) {
      if (this.canary.inChange(change)) found.push(violation(canaryPromise, change.table, `written by ${commit.by}`))
      if (this.madeUp.isKept(change)) found.push(violation(madeUpPromise, change.table, `written by ${commit.by}`))
    }
    this.watch.commit()
    this.abstract.take(tracks.touched.operations)
    tracks.learn()
    if (found.length > 0) this.add(found)
    if (tracks.count % this.wholeEvery === 0) this.whole(committed)
  }

  /** A client was told something, or will not be told any more. */
  told(told: Told): void {
    const found: Array<Violation> = []
    const heard = hearing(told, this.tracks, this.book)
    const { client, workspaceId } = told
    hold([...toldOracles, this.calm.waitsEnd], heard, { workspaceId, id: operationOf(told) ?? keyOf(told) ?? client }, found)
    this.watch.told(heard)
    this.book.write(told)
    if (found.length > 0) this.add(found)
    if (told.answer._tag !== "Events") return
    // Each of them as if it had been asked for by itself.
    for (const event of told.answer.events) {
      this.told({ ...told, question: { _tag: "Event", operationId: event.id, seconds: 0 }, answer: { _tag: "Event", event } })
    }
  }

  /** A fault struck: called before what it does. */
  struck(fault: Fault): void {
    this.watch.strike(fault)
    this.calm.trouble(fault.kind)
    if (fault.kind === "clock_drift") this.askings.drifts(fault.actor)
  }

  /** A process incarnation ended, at this virtual time. */
  died(by: string, at: number): void {
    this.fates.deaths.set(by, at)
    this.watch.died(by)
  }

  /** A process that died has ended by itself, because it was told to. */
  left(by: string): void {
    this.add(this.calm.left(by, this.tracks, this.databaseNow()))
  }

  /** A process that stood still went on, at this virtual time. */
  resumed(by: string, at: number): void {
    this.fates.wakings.set(by, at)
    this.calm.trouble()
  }

  /** From now on nothing goes wrong any more. */
  healed(): void {
    this.healedAt = this.now()
    this.calm.trouble()
  }

  /** A process asks the model about the input of this operation. */
  extracting(ref: OperationRef, by: string, request?: ExtractionRequest): void {
    this.calm.asked(ref, by)
    this.add(this.askings.ask(ref, by, this.moment, request))
  }

  /** The model answered a process that still waited, with so many facts. */
  extracted(ref: OperationRef, by: string, facts?: number): void {
    this.watch.answered(ref, by)
    this.add(this.askings.answer(ref, by, this.moment, facts))
  }

  /** A process no longer waits for the model. It may have been told for how long to wait, in milliseconds. */
  extractionOver(ref: OperationRef, by: string, waitMs: number | null = null): void {
    this.calm.over(ref, by)
    this.askings.over(ref, by, this.moment, waitMs)
  }

  /** A text that leaves the records: a log line, the label of a trace event, a hint in a queue. */
  overheard(place: string, text: string): void {
    if (this.canary.in(text)) this.add([violation(canaryPromise, place, "it was said here")])
  }

  /** A healed world has had its time. Returns everything that was ever found. */
  atEnd(committed: Committed): ReadonlyArray<Violation> {
    this.whole(committed)
    this.add(stuck(this.tracks))
    this.add(overdue(this.tracks, { settings: this.settings, healedAt: this.healedAt, now: this.now() }))
    this.add(missing(this.tracks, this.book))
    this.add(this.canary.inTables(committed).map((name) => violation(canaryPromise, name, "it is there at the end")))
    return this.violations
  }

  /** Everything that is committed, at once. */
  whole(committed: Committed): void {
    if (this.tracks.count === 0) return
    const found = this.inTheWhole(committed)
    this.add(untold(this.tracks, committed).map((detail) => violation(toldInFull, "database", detail)))
    const known = this.violations
    const fresh = found.filter(({ id, invariant }) => !known.some((one) => one.id === id && one.invariant === invariant))
    this.add([...fresh, ...disagreements([], fresh)])
  }

  /** Named states that were passed through, once each. */
  reached(): ReadonlyArray<ReachedState> {
    return [...this.watch.reached]
  }

  /** Hashes of the abstract states that were passed through, once each. */
  states(): ReadonlyArray<number> {
    return [...this.abstract.seen]
  }

  /** What has to agree after every commit: the promises of the domain, on what was touched. */
  private holdSlices(found: Array<Violation>): void {
    const { slices } = this.promises
    const { lanes, memories, operations, workspaces } = this.tracks.touched
    for (const track of operations) {
      if ((track.operation !== track.before && !track.renewed) || track.did !== 0) hold(slices.operation, track, track.ref, found)
    }
    for (const track of lanes) hold(slices.lane, track, { ...track.ref, id: track.ref.lane }, found)
    for (const track of memories) hold(slices.memory, track, track.ref, found)
    for (const track of workspaces) hold(slices.workspace, track, { ...track, id: track.workspaceId }, found)
  }

  /** What the commit in hand may do, and who may do it. */
  private holdSteps(found: Array<Violation>): void {
    const { steps, transitions } = this.promises
    const { tracks } = this
    const { lanes, memories, operations, workspaces } = tracks.touched
    for (const track of operations) {
      const { before, operation, ref } = track
      if (before === operation && track.did === 0) continue
      hold(steps.holder, track, ref, found)
      if (track.renewed) continue
      hold(steps.operation, track, ref, found)
      if (before !== null && operation !== null && before !== operation) {
        hold(transitions.operation, { before, after: operation }, ref, found)
      }
    }
    for (const track of lanes) hold(steps.lane, track, { ...track.ref, id: track.ref.lane }, found)
    for (const track of memories) {
      const { before, memory, ref } = track
      hold(steps.memory, track, ref, found)
      if (before !== null && memory !== null && before !== memory) {
        hold(transitions.memory, { before, after: memory }, ref, found)
      }
    }
    for (const track of workspaces) hold(steps.workspace, track, { ...track, id: track.workspaceId }, found)
    hold(steps.commit, tracks, { workspaceId: nowhere, id: tracks.commit.by }, found)
  }

  private get moment() {
    return { virtual: this.now(), database: this.databaseNow() }
  }

  private inTheWhole(committed: Committed): ReadonlyArray<Violation> {
    return checkSnapshot(snapshotOf(committed)).filter(({ invariant }) => !this.blind.has(invariant))
  }

  private add(found: ReadonlyArray<Violation>): void {
    for (const one of found) if (!this.blind.has(one.invariant)) this.violations.push(one)
  }
}

const violation = ({ name }: Named, id: string, detail: string): Violation =>
  ({ invariant: name, workspaceId: nowhere, id, detail })

/** Every promise that is looked at, each with its sentence. */
export const catalogue: ReadonlyArray<Named> = (() => {
  const world = { settings: defaultSettings, tracks: new Tracks(), fates: new Fates() }
  const askings = new Askings(defaultSettings, world.tracks, world.fates)
  const calm = new Calm(defaultSettings, world.fates, () => 0)
  const { slices, steps, transitions } = promisesOf({ ...world, askings, calm, locked: null, vectorOf: null, blind: new Set() })
  const ofCommits = [slices, transitions, steps].flatMap((lists) => Object.values(lists).flatMap(named))
  return [
    ...ofCommits,
    ...named(askingOracles(defaultSettings)),
    ...named([...toldOracles, calm.waitsEnd]),
    ...named(endOracles),
    ...livenessNames,
    canaryPromise,
    madeUpPromise,
    leavesNothing,
    toldInFull,
    foundOnTheWay
  ]
})()
