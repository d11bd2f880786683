/** Notices the named states that a run passes through: from what is committed, what goes wrong, and what is told. */
import { type OperationRef, refKey } from "../../domain/Ids.ts"
import type { Operation } from "../../domain/Operation.ts"
import type { Fault, FaultKind } from "../Faults.ts"
import { keyOf, replayedOf } from "./Book.ts"
import type { Hearing } from "./Hearing.ts"
import type { MemoryTrack } from "./MemoryTrack.ts"
import { did, isLive, type OperationTrack } from "./OperationTrack.ts"
import type { Fates } from "./ProcessOracles.ts"
import type { ReachedState } from "./Reached.ts"
import type { Tracks } from "./Tracks.ts"

/** What is done, and never heard of. */
const unheard: ReadonlySet<FaultKind> = new Set<FaultKind>(["lost_acknowledgement", "crash_after", "in_doubt"])

export class Watch {
  /** In the order in which they were first reached. */
  readonly reached = new Set<ReachedState>()
  private readonly tracks: Tracks
  private readonly fates: Fates
  /** What struck last: if the next thing to happen is a commit of its actor, that commit goes unheard. */
  private struck: Fault | null = null
  /** Operations whose last claim, or whose accept, went unheard. */
  private readonly claimUnheard = new Set<OperationTrack>()
  private readonly acceptUnheard = new Set<OperationTrack>()

  constructor(tracks: Tracks, fates: Fates) {
    this.tracks = tracks
    this.fates = fates
  }

  strike(fault: Fault): void {
    this.struck = unheard.has(fault.kind) ? fault : null
  }

  /** A process died: what it held stays behind. */
  died(by: string): void {
    for (const { claims, hasPlan, operation } of this.tracks.operations.values()) {
      if (operation?.state !== "running" || claims.at(-1)?.by !== by) continue
      this.reach(hasPlan ? "dead with a plan" : "dead without a plan")
    }
  }

  /** The model answered a process. */
  answered(ref: OperationRef, by: string): void {
    const track = this.tracks.operations.get(refKey(ref))
    const claim = track?.claims.findLast((one) => one.by === by)
    if (track === undefined || claim === undefined) return
    if (track.operation?.state === "failed" && track.operation.failure === "cancelled" && claim === track.claims.at(-1)) {
      this.reach("late success after refund refused")
    }
    if (claim !== track.claims.at(-1)) this.reach("answer for a lost lease")
  }

  /** The commit in hand of the tracks, before it is learned. */
  commit(): void {
    const { commit, touched } = this.tracks
    const isUnheard = this.struck?.actor === commit.by
    this.struck = null
    if (this.fates.deaths.has(commit.by)) this.reach("commit of the dead")
    let ended = 0
    let entered = 0
    for (const track of touched.operations) {
      if (track.operation === null) continue
      if (track.operation !== track.before) this.operation(track, track.operation, isUnheard)
      if (track.ended && track.before !== null) ended++
      if (track.entered && track.before === null) entered++
      const removed = (track.did & did.tookInput) !== 0 && track.operation.state === "failed"
      if (removed) this.reach("failed input removed")
    }
    if (entered > 1) this.reach("several accepted in one commit")
    if (ended > 1) this.reach("several settled in one commit")
    for (const track of touched.memories) this.memory(track)
    for (const { after, table } of commit.changes) {
      if (table === "projections" && after !== null && after.attempts > 1) this.reach("projection tried again")
    }
  }

  private operation(track: OperationTrack, after: Operation, isUnheard: boolean): void {
    const { before } = track
    if (before === null) {
      if (isUnheard) this.acceptUnheard.add(track)
      return
    }
    if (track.renewed) {
      if (before.leaseExpiresAt! < track.commit.at) this.reach("late renewal")
      return
    }
    if (track.claimed) this.claim(track, before, isUnheard)
    else if (before.state === "running" && after.state === "pending") this.postponed(after)
    if (track.reopened) {
      this.reach("manual retry")
      if (track.hasPlan) this.reach("manual retry with a frozen plan")
      if (!after.ready) this.reach("manual retry stands in line")
    }
    if (before.state === "running" && !track.claimed && this.isHeldElsewhere(track)) this.reach("settled beside a live holder")
    if (!track.ended) return
    if (isUnheard) this.reach("settled and never heard of")
    if (after.state === "succeeded") this.succeeded(track, after)
    else this.failed(track, before, after)
  }

  private claim(track: OperationTrack, before: Operation, isUnheard: boolean): void {
    if (before.state === "running") {
      this.reach("takeover")
      if (track.holder === track.commit.by) this.reach("own lease taken over")
      if (this.claimUnheard.has(track)) this.reach("takeover of a claim that nobody heard of")
    }
    if (track.operation!.epoch >= 3) this.reach("three holders")
    this.claimUnheard.delete(track)
    if (isUnheard) this.claimUnheard.add(track)
  }

  private postponed({ failure, nextAttemptAt }: Operation): void {
    if (nextAttemptAt === null) this.reach("shutdown gives a lease back")
    else if (failure === "provider_rate_limited") this.reach("429 keeps the attempt")
    else if (failure !== "invalid_output") this.reach("provider trouble is waited out")
  }

  /** Whether a process that held it before, and is not the one that writes, is still alive. */
  private isHeldElsewhere({ claims, commit }: OperationTrack): boolean {
    return claims.slice(0, -1).some(({ by }) => by !== commit.by && !this.fates.deaths.has(by))
  }

  private succeeded(track: OperationTrack, { attempts, outcome, results }: Operation): void {
    const { before, claims, planBy } = track
    if (attempts > 1 && before!.failure !== null) this.reach("success after a failure")
    if (outcome === "no_memory") this.reach("nothing to remember")
    if (claims.at(-1)?.planned === true) this.reach("plan of an earlier claim used")
    if (planBy !== null && this.fates.deaths.has(planBy)) this.reach("plan of the dead used")
    for (const { change, reason } of results) {
      if (reason === "target_changed") this.reach("update skipped because its target moved")
      if (reason === "target_gone") this.reach("change skipped because its target is gone")
      if (change === "update" || change === "delete") this.reach("changed by a plan")
    }
  }

  private failed({ lane }: OperationTrack, before: Operation, { failure }: Operation): void {
    if (failure === "cancelled") this.reach(before.state === "running" ? "cancelled while running" : "cancelled before any claim")
    else if (failure === "attempts_exhausted") this.reach("attempts exhausted at claim")
    else if (failure === "invalid_output") this.reach("invalid output ends it")
    else if (failure === "extraction_refused") this.reach("refused by the model")
    if (before.ready && lane!.head !== null) this.reach("handed over after a failure")
  }

  private memory({ before, begun, finished, indexed, memory, projections, vectors }: MemoryTrack): void {
    if (memory === null) return
    if (memory !== before && begun.length > 0 && projections.length > 1) {
      this.reach(memory.deleted ? "deleted while it waits" : "edited while it waits")
    }
    const never = (version: number) => version < memory.version && version > indexed && !vectors.includes(version)
    if (finished.some(never)) this.reach("projection older than the record skipped")
  }

  /** An answer, before it is written into the book. */
  told({ book, told, track }: Hearing): void {
    const { answer, askedAt, question, workspaceId } = told
    const replayed = replayedOf(told)
    const keyHash = keyOf(told)
    const notes = keyHash === null ? undefined : book.keys.get(`${workspaceId}/${keyHash}`)
    if (answer._tag === "Refused" && answer.refusal._tag === "InputGone") this.reach("retry refused, the input is gone")
    if (answer._tag === "Refused" && answer.refusal._tag === "IdempotencyConflict") this.reach("conflict")
    if (question._tag === "Cancel" && track !== null) this.cancelled(track, askedAt)
    if (replayed === null || question._tag === "Retry" || track === null) return
    if (notes !== undefined && notes.unknown > 0) this.reach("unknown, then found")
    if (notes !== undefined && notes.refused.size > 0 && !replayed) this.reach("402 then the same key accepted")
    if (notes !== undefined && notes.firsts + notes.repeats >= 2) this.reach("several with one key")
    if (replayed && track.versions.missing(askedAt)) this.reach("replay of a key while the first accept is uncommitted")
    if (this.acceptUnheard.has(track)) this.reach("lost acknowledgement then retry finds it done")
  }

  private cancelled({ operation, versions }: OperationTrack, askedAt: number): void {
    const waited = versions.some(askedAt, askedAt, isLive)
    if (operation?.state === "succeeded" && waited) this.reach("cancel meets commit")
  }

  private reach(state: ReachedState): void {
    this.reached.add(state)
  }
}
