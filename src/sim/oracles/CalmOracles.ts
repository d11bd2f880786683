/**
 * What is promised as long as nothing goes wrong: no lease is lost by a process that lives, and one that is told to stop
 * stops working on what it gives back, and keeps nothing.
 */
import { Duration } from "effect"
import type { Invariant, Violation } from "../../domain/Invariant.ts"
import { type OperationRef, refKey } from "../../domain/Ids.ts"
import type { SettingsShape } from "../../services/Settings.ts"
import type { FaultKind } from "../Faults.ts"
import { fine, type Named } from "./Oracle.ts"
import type { OperationTrack } from "./OperationTrack.ts"
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
  private readonly leaseMs: number
  /** How long giving back may take. */
  private readonly farewellMs: number
  private readonly fates: Fates
  private readonly now: () => number
  /** Questions to the model that somebody still waits for, by process and operation. */
  private readonly open = new Map<string, number>()
  /** Until when something may be in somebody's way. */
  private troubledUntil = -Infinity

  constructor({ drainTimeout, lease }: SettingsShape, fates: Fates, now: () => number) {
    this.leaseMs = Duration.toMillis(lease)
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
  }

  /** Something goes wrong, or has just ceased to. */
  trouble(kind?: FaultKind): void {
    if (kind === "terminate") return
    const leases = kind === undefined ? 0 : lastingLeases[kind] ?? 0
    this.troubledUntil = Math.max(this.troubledUntil, this.now() + echoMs + leases * this.leaseMs)
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

  private isCalmFor(ms: number): boolean {
    return this.now() - this.troubledUntil >= ms
  }

  private count(ref: OperationRef, by: string, change: number): void {
    const key = keyOf(ref, by)
    this.open.set(key, Math.max(0, (this.open.get(key) ?? 0) + change))
  }
}

const keyOf = (ref: OperationRef, by: string): string => `${by} ${refKey(ref)}`
