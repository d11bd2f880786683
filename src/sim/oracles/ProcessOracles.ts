/** Processes: what a dead one may still do, and when a live one may ask the model. */
import { Duration } from "effect"
import type { RetryPolicy } from "../../domain/Failure.ts"
import type { Invariant, Violation } from "../../domain/Invariant.ts"
import type { OperationRef } from "../../domain/Ids.ts"
import { refKey } from "../../domain/Ids.ts"
import type { SettingsShape } from "../../services/Settings.ts"
import type { ExtractionRequest } from "../../services/Provider.ts"
import { alike } from "./AskedOracles.ts"
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
  /** How much of that its clock may be to blame for. */
  readonly graceMs: number
  /** About how many its process waits for an answer. */
  readonly open: number
  /** For how long it has waited for the answer. */
  readonly waitedMs: number
  /** What it asks, as far as the world says. */
  readonly request: ExtractionRequest | undefined
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
const notAskedWhenLost: Invariant<Asking> = {
  name: "not-asked-when-lost",
  promise: "No process that kept a lease asks the model after it has lost it, but for what its clock may be wrong.",
  check: ({ by, claim, graceMs, late, moment }) =>
    moment === "answered" || claim?.renewed !== true || late <= graceMs ? fine : [`${by} asked ${late} ms after its lease was over`]
}

const notWaitedForWhenLost: Invariant<Asking> = {
  name: "not-waited-for-when-lost",
  promise: "No process goes on waiting for the model when its lease is over, but for what its clock may be wrong.",
  check: ({ by, graceMs, late, moment }) =>
    moment === "asked" || late <= graceMs ? fine : [`${by} still waited ${late} ms after its lease was over`]
}

/** Clocks that run slow make it longer, and whoever has just been woken needs a moment. */
const boundedByItsTime = ({ attemptBound, fenceMargin }: SettingsShape): Invariant<Asking> => {
  const mostMs = 1.25 * Duration.toMillis(attemptBound) + Duration.toMillis(fenceMargin)
  return {
    name: "attempts-are-bounded",
    promise: "No attempt waits for the model for longer than an attempt may take.",
    check: ({ by, waitedMs }) => waitedMs <= mostMs ? fine : [`${by} waited for ${waitedMs} ms`]
  }
}

/** As many at a time as the operator lets it. */
const noMoreAtOnce = ({ workerConcurrency }: SettingsShape): Invariant<Asking> => ({
  name: "no-more-at-once",
  promise: "A process asks the model about no more operations at a time than it may work on.",
  check: ({ by, moment, open }) =>
    moment === "answered" || open <= workerConcurrency ? fine : [`${by} asks about ${open}, and may work on ${workerConcurrency}`]
})

const askedAsSaid: Invariant<Asking> = {
  name: "asked-as-said",
  promise: "The model is asked about the very messages, instructions and date of an input.",
  check: ({ by, request, track }) => {
    const input = track?.input
    if (request === undefined || input == null) return fine
    const { eventDate, instructions, messages } = request
    const asSaid = alike(messages, input.messages) && instructions === input.instructions && eventDate === input.eventDate
    return asSaid ? fine : [`${by} asked about something else`]
  }
}

export const askingOracles = (settings: SettingsShape): ReadonlyArray<Invariant<Asking>> => [
  claimedBeforeAsked,
  notAskedWhenLost,
  notWaitedForWhenLost,
  boundedByItsTime(settings),
  noMoreAtOnce(settings),
  askedAsSaid
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
  /** Of its latest claim: when whoever may go on first may go on, and the longest that anybody was told to wait. */
  claims: number
  until: number
  longestMs: number
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
  /** How long somebody puts up with being told to come back. */
  readonly waitsItOut: Invariant<OperationTrack> = {
    name: "rate-limits-are-waited-out",
    promise: "Nobody gives up for a rate limit before it has lasted as long as the policy says, from the first claim on.",
    check: ({ commit, ended, firstLease, operation, ref }) => {
      const questions = this.questions.get(keyOf(ref, commit.by))
      if (!ended || operation!.failure !== "provider_rate_limited" || questions === undefined || firstLease === null) return fine
      const { backoffBaseMs, backoffCapMs, rateLimitMaxAgeMs } = this.retry
      const age = commit.at - (firstLease - this.leaseMs)
      // The wait begins when the failure is written down, however long that takes.
      const wait = Math.max(questions.longestMs, Math.min(backoffCapMs, Math.max(backoffBaseMs, age)))
      return age + wait >= rateLimitMaxAgeMs ? fine : [`given up ${age} ms after it was first claimed`]
    }
  }
  private readonly questions = new Map<string, Questions>()
  /** How many questions each process has asked that are not over. */
  private readonly open = new Map<string, number>()
  /** Machines whose clocks have gone wrong. */
  private readonly astray = new Set<string>()
  private readonly marginMs: number
  private readonly leaseMs: number
  private readonly retry: RetryPolicy
  private readonly oracles: ReadonlyArray<Invariant<Asking>>
  private readonly tracks: Tracks
  private readonly fates: Fates

  constructor(settings: SettingsShape, tracks: Tracks, fates: Fates) {
    this.oracles = askingOracles(settings)
    this.marginMs = Duration.toMillis(settings.fenceMargin)
    this.leaseMs = Duration.toMillis(settings.lease)
    this.retry = settings.retry
    this.tracks = tracks
    this.fates = fates
  }

  /** From now on the clocks of this process run at another rate than they should. */
  drifts(by: string): void {
    this.astray.add(machineOf(by))
  }

  ask(ref: OperationRef, by: string, now: Now, request?: ExtractionRequest): ReadonlyArray<Violation> {
    const questions = this.questionsOf(ref, by)
    questions.count++
    this.open.set(by, (this.open.get(by) ?? 0) + 1)
    questions.at = now.virtual
    return this.look("asked", ref, by, now, request)
  }

  answer(ref: OperationRef, by: string, now: Now, facts: number | undefined): ReadonlyArray<Violation> {
    this.questionsOf(ref, by).offered.add(facts)
    return this.look("answered", ref, by, now)
  }

  over(ref: OperationRef, by: string, now: Now, waitMs: number | null): void {
    const questions = this.questionsOf(ref, by)
    this.open.set(by, (this.open.get(by) ?? 0) - 1)
    const claims = this.tracks.operations.get(refKey(ref))?.claims.length ?? 0
    const until = now.database + (waitMs ?? 0)
    questions.longestMs = Math.max(questions.claims === claims ? questions.longestMs : 0, waitMs ?? 0)
    questions.until = questions.claims === claims ? Math.min(questions.until, until) : until
    questions.claims = claims
  }

  private look(
    moment: Asking["moment"],
    ref: OperationRef,
    by: string,
    now: Now,
    request?: ExtractionRequest
  ): ReadonlyArray<Violation> {
    const { at, count } = this.questionsOf(ref, by)
    const track = this.tracks.operations.get(refKey(ref))
    const claim = track?.claims.findLast((claim) => claim.by === by)
    // It knew of the lease when it asked, and nothing while it stood still.
    const since = Math.max(moment === "answered" ? at : -Infinity, this.fates.wakings.get(by) ?? -Infinity)
    const late = Math.min(now.virtual - since, now.database - (claim?.until ?? Infinity))
    const found: Array<Violation> = []
    // How much slower than the database's a clock may run is what the margin of the fence is for, and half of a lease on top.
    const graceMs = this.marginMs + (this.astray.has(machineOf(by)) ? this.leaseMs / 2 : 0)
    const waitedMs = moment === "answered" && count > 0 ? now.virtual - since : 0
    const open = this.open.get(by) ?? 0
    hold(this.oracles, { moment, by, track, claim, asked: count, late, graceMs, open, waitedMs, request }, ref, found)
    return found
  }

  private questionsOf(ref: OperationRef, by: string): Questions {
    const key = keyOf(ref, by)
    let questions = this.questions.get(key)
    if (questions === undefined) this.questions.set(key, questions = { ...unasked, offered: new Set() })
    return questions
  }
}

const unasked = { count: 0, at: -Infinity, claims: 0, until: 0, longestMs: 0 }

const machineOf = (by: string): string => by.replace(/#.*/, "")

const keyOf = (ref: OperationRef, by: string): string => `${by} ${refKey(ref)}`
