/**
 * What is promised as long as nothing goes wrong: no lease is lost by a process that lives, and one that is told to stop
 * stops working on what it gives back, and keeps nothing.
 */
import { Duration } from "effect"
import type { Invariant, Violation } from "../../domain/Invariant.ts"
import { type OperationRef, refKey } from "../../domain/Ids.ts"
import { isTerminal } from "../../domain/Operation.ts"
import type { SettingsShape } from "../../services/Settings.ts"
import type { FaultKind } from "../Faults.ts"
import type { Hearing } from "./Hearing.ts"
import { fine, type Named } from "./Oracle.ts"
import { did, type OperationTrack } from "./OperationTrack.ts"
import type { Fates } from "./ProcessOracles.ts"
import type { Tracks } from "./Tracks.ts"

export const leavesNothing: Named = {
  name: "leaves-nothing-behind",
  promise: "A process that ends because it was told to, with nothing in its way, holds no operation any more."
}

/** For so long, in milliseconds, something may still be on its way that went wrong. */
const echoMs = 15_000
/** For how many leases at most these last. Whatever else goes wrong is over at once. */
const lastingLeases: Readonly<Partial<Record<FaultKind, number>>> = { pause: 4, database_down: 2, clock_drift: 8 }

/** Hints come late, twice or never: nothing else of the service is in anybody's way. */
const hints: ReadonlySet<FaultKind> = new Set<FaultKind>([
  "delivery_dropped", "delivery_duplicated", "delivery_delayed", "delivery_reordered", "deliveries_lost", "listener_disconnected"
])
/** What may be taken for something that waits for nothing. */
export const promptMs = 1_000

export class Calm {
  readonly leasesAreKept: Invariant<OperationTrack> = {
    name: "leases-are-kept",
    promise: "Nobody loses its lease that lives and has nothing in its way, however long the model takes.",
    check: ({ before, claimed, commit, holder }) => {
      if (!claimed || before!.state !== "running" || holder === null || this.fates.deaths.has(holder)) return fine
      const overFor = commit.at - before!.leaseExpiresAt!
      if (!this.isCalmFor(overFor + this.leaseMs)) return fine
      return [`${commit.by} took it over from ${holder}, which lives`]
    }
  }
  readonly renewedWhenDue: Invariant<OperationTrack> = {
    name: "renewed-when-due",
    promise: "A lease is renewed about every third of it, and not again at once, as long as nothing is in the way.",
    check: ({ before, claims, commit, operation, renewed }) => {
      if (!renewed || claims.at(-1)?.renewed !== true || !this.isCalmFor(0)) return fine
      const since = operation!.leaseExpiresAt! - before!.leaseExpiresAt!
      return since > this.leaseMs / 6 ? fine : [`${commit.by} renewed it ${since} ms after it had renewed it`]
    }
  }
  readonly stopsFirst: Invariant<OperationTrack> = {
    name: "stops-before-it-gives-back",
    promise: "A process gives an operation back when it no longer asks the model about it.",
    check: ({ before, commit, operation, ref }) => {
      if (before?.state !== "running" || operation?.state !== "pending" || operation.nextAttemptAt !== null) return fine
      const open = this.open.get(keyOf(ref, commit.by)) ?? 0
      return open === 0 ? fine : [`${commit.by} gave it back, and still asks the model about it`]
    }
  }
  readonly keptForItsTime: Invariant<OperationTrack> = {
    name: "kept-for-its-time",
    promise: "The input of a failed operation is kept for as long as the operator says, unless a caller has it removed.",
    check: ({ before, commit, did: done, operation }) => {
      if ((done & did.tookInput) === 0 || before?.state !== "failed" || operation?.state !== "failed") return fine
      // Callers come by way of an API process.
      if (this.retentionChanges || !commit.by.startsWith("worker")) return fine
      const early = operation.completedAt! + this.retentionMs - commit.at
      return early <= 0 ? fine : [`${commit.by} removed it ${early} ms before its time`]
    }
  }
  readonly waitsEnd: Invariant<Hearing> = {
    name: "waits-end",
    promise: "Whoever waits for the end of an operation hears of it at once when it has ended, without hints at the next poll.",
    check: ({ told, track }) => {
      const { answer, answeredAt, askedAt, question } = told
      if (track === null || question._tag !== "Event" || question.seconds === 0 || answer._tag !== "Event") return fine
      const { operation, versions } = track
      if (!isTerminal(answer.event.status) || operation === null || !isTerminal(operation.state)) return fine
      const waited = answeredAt - Math.max(askedAt, versions.changedAt!)
      const mostMs = promptMs + (this.isCalmFor(waited) ? 0 : this.pollMs)
      if (waited <= mostMs || this.now() - this.hinderedUntil < waited) return fine
      return [`it had ended ${waited} ms before`]
    }
  }
  private readonly leaseMs: number
  private readonly pollMs: number
  private readonly retentionMs: number
  /** How long giving back may take. */
  private readonly farewellMs: number
  private readonly fates: Fates
  private readonly now: () => number
  /** Questions to the model that somebody still waits for, by process and operation. */
  private readonly open = new Map<string, number>()
  /** When each process had an answer last, or none, to such a question. */
  private readonly overAt = new Map<string, number>()
  /** Until when something may be in somebody's way. */
  private troubledUntil = -Infinity
  /** The same, but for hints. */
  private hinderedUntil = -Infinity
  private retentionChanges = false

  constructor({ drainTimeout, failedInputRetention, lease, pollInterval }: SettingsShape, fates: Fates, now: () => number) {
    this.leaseMs = Duration.toMillis(lease)
    this.pollMs = Duration.toMillis(pollInterval)
    this.retentionMs = Duration.toMillis(failedInputRetention)
    this.farewellMs = Math.max(1_000, Duration.toMillis(drainTimeout))
    this.fates = fates
    this.now = now
  }

  asked(ref: OperationRef, by: string): void {
    this.count(ref, by, 1)
  }

  /** The question was answered, failed or was given up. */
  over(ref: OperationRef, by: string): void {
    this.count(ref, by, -1)
    this.overAt.set(by, this.now())
  }

  /** Whether a process has waited for the model since then, perhaps about what is not its business any more. */
  hasAskedSince(by: string, since: number): boolean {
    return (this.overAt.get(by) ?? -Infinity) >= since
  }

  /** Something goes wrong, or has just ceased to. */
  trouble(kind?: FaultKind): void {
    if (kind === "retention") this.retentionChanges = true
    const leases = kind === undefined ? 0 : lastingLeases[kind] ?? 0
    const until = this.now() + echoMs + leases * this.leaseMs
    if (kind === undefined || !hints.has(kind)) this.hinderedUntil = Math.max(this.hinderedUntil, until)
    if (kind !== "terminate") this.troubledUntil = Math.max(this.troubledUntil, until)
  }

  /** A process ended in good order, at this time of the database. */
  left(by: string, { operations }: Tracks, now: number): ReadonlyArray<Violation> {
    if (!this.isCalmFor(this.farewellMs)) return []
    const kept = [...operations.values()].filter(({ holder, operation }) => {
      if (operation?.state !== "running" || holder !== by) return false
      // It has heard of the lease: nothing was in the way when that was granted.
      return this.isCalmFor(now - operation.leaseExpiresAt! + this.leaseMs)
    })
    return kept.map(({ ref: { id, workspaceId } }) =>
      ({ invariant: leavesNothing.name, workspaceId, id, detail: `${by} has ended, and did not give it back` }))
  }

  /** Nothing of the service has been in anybody's way for so long, hints and farewells included. */
  isQuietFor(ms: number): boolean {
    return this.isCalmFor(ms) && this.now() - this.hinderedUntil >= ms
  }

  private isCalmFor(ms: number): boolean {
    return this.now() - this.troubledUntil >= ms
  }

  private count(ref: OperationRef, by: string, change: number): void {
    const key = keyOf(ref, by)
    this.open.set(key, Math.max(0, (this.open.get(key) ?? 0) + change))
  }
}

const keyOf = (ref: OperationRef, by: string): string => `${by} ${refKey(ref)}`
