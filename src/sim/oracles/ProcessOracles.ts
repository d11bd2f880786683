/** Processes: what a dead one may still do, and when a live one may ask the model. */
import { Duration } from "effect"
import type { Invariant, Violation } from "../../domain/Invariant.ts"
import type { OperationRef } from "../../domain/Ids.ts"
import { refKey } from "../../domain/Ids.ts"
import type { SettingsShape } from "../../services/Settings.ts"
import { fine, hold } from "./Oracle.ts"
import { type Claim, did, type OperationTrack } from "./OperationTrack.ts"
import type { Tracks } from "./Tracks.ts"

/** When each process that is dead died, and when each that stood still went on, in virtual time. */
export class Fates {
  readonly deaths = new Map<string, number>()
  readonly wakings = new Map<string, number>()

  readonly oracle: Invariant<Tracks> = {
    name: "the-dead-write-nothing",
    promise: "A process that died changes nothing any more, but by what it had sent before.",
    check: ({ commit }) => {
      const died = this.deaths.get(commit.by)
      if (died === undefined || commit.sentAt <= died) return fine
      return [`${commit.by} died at ${died} ms and sent this at ${commit.sentAt} ms`]
    }
  }
}

/** A question to the model about an operation: when it leaves, or when its answer finds somebody who still waits. */
interface Asking {
  readonly moment: "asked" | "answered"
  readonly by: string
  readonly track: OperationTrack | undefined
  readonly claim: Claim | undefined
  /** How many questions about it this process has asked. */
  readonly asked: number
  /** For how long it has known, or should have, that its lease is over, in milliseconds. */
  readonly late: number
}

const claimedBeforeAsked: Invariant<Asking> = {
  name: "claimed-before-asked",
  promise: "A process asks the model about an operation once at most for each time that it claimed it without a plan.",
  check: ({ asked, by, track }) => {
    const allowed = track?.claims.filter((claim) => claim.by === by && !claim.planned).length ?? 0
    return asked <= allowed ? fine : [`${by} asked ${asked} times, and claimed it ${allowed} times without a plan`]
  }
}

/** A claim may be heard of when its lease is nearly over, or quite. One that was renewed had been heard of before. */
const notAskedWhenLost = (graceMs: number): Invariant<Asking> => ({
  name: "not-asked-when-lost",
  promise: "No process that kept a lease asks the model after it has lost it, but for what its clock may be wrong.",
  check: ({ by, claim, late, moment }) =>
    moment === "answered" || claim?.renewed !== true || late <= graceMs ? fine : [`${by} asked ${late} ms after its lease was over`]
})

const notWaitedForWhenLost = (graceMs: number): Invariant<Asking> => ({
  name: "not-waited-for-when-lost",
  promise: "No process goes on waiting for the model when its lease is over, but for what its clock may be wrong.",
  check: ({ by, late, moment }) =>
    moment === "asked" || late <= graceMs ? fine : [`${by} still waited ${late} ms after its lease was over`]
})

/**
 * How much slower than the database's a machine's clock may run before a worker that fences itself by it is late: what
 * the margin of the fence is for, and half of a lease on top.
 */
const graceOf = ({ fenceMargin, lease }: SettingsShape): number =>
  Duration.toMillis(fenceMargin) + Duration.toMillis(lease) / 2

export const askingOracles = (settings: SettingsShape): ReadonlyArray<Invariant<Asking>> => [
  claimedBeforeAsked,
  notAskedWhenLost(graceOf(settings)),
  notWaitedForWhenLost(graceOf(settings))
]

/** A moment by two clocks, in milliseconds. */
interface Now {
  readonly virtual: number
  readonly database: number
}

/** What one process has asked about one operation. */
interface Questions {
  count: number
  /** When it last did, in virtual time. */
  at: number
  /** How many facts each answer offered, undefined when the world does not say: two claims of one process may both ask. */
  readonly offered: Set<number | undefined>
  /** Of its latest claim: when it may go on, by those whom the model told to wait, or by whoever may go on first. */
  claims: number
  until: number
}

/** Who has asked the model what. The provider's world reports it. */
export class Askings {
  /** A plan and the answer that it was made of. */
  readonly planIsTheAnswer: Invariant<OperationTrack> = {
    name: "plan-is-the-answer",
    promise: "A plan has one step for each fact of an answer that the model gave to the process that froze it.",
    check: (track) => {
      const questions = this.questions.get(keyOf(track.ref, track.commit.by))
      if ((track.did & did.froze) === 0 || questions === undefined || questions.offered.has(undefined)) return fine
      const steps = track.written!.steps.length
      const { offered } = questions
      if (offered.size === 0) return [`${track.commit.by} froze ${steps} steps before the model had answered`]
      return offered.has(steps) ? fine : [`the model offered ${[...offered].join(", ")} facts, and the plan has ${steps} steps`]
    }
  }
  /** How long somebody waits, and how long he was told to. */
  readonly waitsAsAsked: Invariant<OperationTrack> = {
    name: "waits-as-asked",
    promise: "Where the model says how long to wait, no other attempt begins before.",
    check: ({ before, commit, operation, ref }) => {
      if (before?.state !== "running" || operation?.state !== "pending" || operation.nextAttemptAt === null) return fine
      const early = (this.questions.get(keyOf(ref, commit.by))?.until ?? 0) - operation.nextAttemptAt
      return early <= 1 ? fine : [`the next attempt is due ${early} ms before the model wants to be asked again`]
    }
  }
  private readonly questions = new Map<string, Questions>()
  private readonly oracles: ReadonlyArray<Invariant<Asking>>
  private readonly tracks: Tracks
  private readonly fates: Fates

  constructor(settings: SettingsShape, tracks: Tracks, fates: Fates) {
    this.oracles = askingOracles(settings)
    this.tracks = tracks
    this.fates = fates
  }

  ask(ref: OperationRef, by: string, now: Now): ReadonlyArray<Violation> {
    const questions = this.questionsOf(ref, by)
    questions.count++
    questions.at = now.virtual
    return this.look("asked", ref, by, now)
  }

  answer(ref: OperationRef, by: string, now: Now, facts: number | undefined): ReadonlyArray<Violation> {
    this.questionsOf(ref, by).offered.add(facts)
    return this.look("answered", ref, by, now)
  }

  over(ref: OperationRef, by: string, now: Now, waitMs: number | null): void {
    const questions = this.questionsOf(ref, by)
    const claims = this.tracks.operations.get(refKey(ref))?.claims.length ?? 0
    const until = now.database + (waitMs ?? 0)
    questions.until = questions.claims === claims ? Math.min(questions.until, until) : until
    questions.claims = claims
  }

  private look(moment: Asking["moment"], ref: OperationRef, by: string, now: Now): ReadonlyArray<Violation> {
    const { at, count } = this.questionsOf(ref, by)
    const track = this.tracks.operations.get(refKey(ref))
    const claim = track?.claims.findLast((claim) => claim.by === by)
    // It knew of the lease when it asked, and nothing while it stood still.
    const since = Math.max(moment === "answered" ? at : -Infinity, this.fates.wakings.get(by) ?? -Infinity)
    const late = Math.min(now.virtual - since, now.database - (claim?.until ?? Infinity))
    const found: Array<Violation> = []
    hold(this.oracles, { moment, by, track, claim, asked: count, late }, ref, found)
    return found
  }

  private questionsOf(ref: OperationRef, by: string): Questions {
    const key = keyOf(ref, by)
    let questions = this.questions.get(key)
    if (questions === undefined) this.questions.set(key, questions = { ...unasked, offered: new Set() })
    return questions
  }
}

const unasked = { count: 0, at: -Infinity, claims: 0, until: 0 }

const keyOf = (ref: OperationRef, by: string): string => `${by} ${refKey(ref)}`
