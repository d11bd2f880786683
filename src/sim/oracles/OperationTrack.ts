/** One operation with all that refers to it, as it is committed now, and what the commit in hand did to it. */
import type { InferInput } from "../../domain/Command.ts"
import type { OperationId, OperationRef, WorkspaceId } from "../../domain/Ids.ts"
import type { Authorization, TransferRow } from "../../domain/Ledger.ts"
import { isTerminal, type Operation, type OperationState } from "../../domain/Operation.ts"
import type { Plan } from "../../domain/Plan.ts"
import type { HistoryRecord, OperationSlice } from "../../domain/Snapshot.ts"
import type { KeyRow } from "../../services/OperationStore.ts"
import type { Commit } from "../Commit.ts"
import type { LaneTrack } from "./LaneTrack.ts"
import { Versions } from "./Versions.ts"

/** What authorizations come to: what was ever reserved, and how that ended. */
export interface Usage {
  readonly reserved: bigint
  readonly charged: bigint
  readonly refunded: bigint
}

const usageOf = (authorizations: ReadonlyArray<Authorization>): Usage => {
  let [reserved, charged, refunded] = [0n, 0n, 0n]
  for (const row of authorizations) {
    reserved += row.reserved
    charged += row.charged
    if (row.state !== "open") refunded += row.reserved - row.charged
  }
  return { reserved, charged, refunded }
}

/** What a commit may do to an operation beside changing its row. */
export const did = {
  keyed: 1,
  unkeyed: 2,
  gaveInput: 4,
  tookInput: 8,
  froze: 16,
  thawed: 32,
  authorized: 64,
  reserved: 128,
  charged: 256,
  refunded: 512,
  recorded: 1_024,
  announced: 2_048,
  /** Anything else to its authorizations, its transfers and the versions that it made. */
  rewrote: 4_096
} as const

/** One claim: who made it, whether there was a plan to go by, and how long it was granted for. */
export interface Claim {
  readonly epoch: number
  readonly by: string
  readonly planned: boolean
  /** By the database clock. */
  until: number
  /** It was renewed, so that its process is known to have heard of it. */
  renewed: boolean
}

export class OperationTrack implements OperationSlice {
  readonly ref: OperationRef
  operation: Operation | null = null
  readonly keys: Array<KeyRow> = []
  readonly authorizations: Array<Authorization> = []
  readonly transfers: Array<TransferRow> = []
  readonly history: Array<HistoryRecord> = []
  hasPlan = false
  hasInput = false

  /** The commit in hand, and its number. */
  commit!: Commit
  touched = 0
  /** The row before it. */
  before: Operation | null = null
  did = 0
  /** The plan that it wrote, and the state that it announced. */
  written: Plan | null = null
  announced: OperationState | null = null

  lane: LaneTrack | null = null
  /** The first plan ever committed before the commit in hand, and by whom. */
  plan: Plan | null = null
  planBy: string | null = null
  /** Who claimed the epoch that was current before it. */
  holder: string | null = null
  readonly claims: Array<Claim> = []
  /** Its rows but for renewals, by virtual time. */
  readonly versions = new Versions<Operation>()
  /** The input that it came with, and from when to when that was kept. */
  input: InferInput | null = null
  readonly inputs = new Versions<boolean>()
  inputGoneAt: number | null = null
  /** What its authorizations came to. */
  readonly usages = new Versions<Usage>()
  /** When the lease of its first claim was to end, of those since it was accepted or retried by hand. */
  firstLease: number | null = null
  /** When it was retried by hand, in virtual time. */
  readonly reopenings: Array<number> = []
  /** Versions of memories that it made and that wait to be projected. */
  waiting = 0
  readonly waitings = new Versions<number>()
  /** What the clock of the fair queue showed when its row was last changed. */
  clock = 0
  /** What it adds to the hash of the abstract state. */
  word = 0

  constructor(workspaceId: WorkspaceId, id: OperationId) {
    this.ref = { workspaceId, id }
  }

  /** It waits to be done now, and did not before: accepted, or retried by hand. */
  get entered(): boolean {
    return isLive(this.operation) && !isLive(this.before)
  }

  /** It came to an end, or was born at it. */
  get ended(): boolean {
    return this.operation !== null && isTerminal(this.operation.state) && (this.before === null || isLive(this.before))
  }

  get reopened(): boolean {
    return this.before?.state === "failed" && isLive(this.operation)
  }

  /** Somebody began an epoch of it. */
  get claimed(): boolean {
    return this.operation !== null && this.before !== null && this.operation.epoch > this.before.epoch
  }

  /** It became the head of its lane, having been behind somebody. */
  get handed(): boolean {
    return this.before?.ready === false && isLive(this.before) && isLive(this.operation) && this.operation!.ready
  }

  /** Only the end of its lease moved: whatever is true of its rows was true before. */
  get renewed(): boolean {
    const { before, operation } = this
    return before !== null && operation !== null && before !== operation && this.did === 0 && isRenewal(before, operation)
  }

  /** What the commit in hand did is known from now on, in virtual time. */
  learn(now: number): void {
    const { before, commit, operation } = this
    if ((this.did & (did.gaveInput | did.tookInput)) !== 0) this.inputs.push(now, this.hasInput)
    if ((this.did & (did.authorized | did.rewrote)) !== 0) this.usages.push(now, usageOf(this.authorizations))
    if (this.waiting !== (this.waitings.last ?? 0)) this.waitings.push(now, this.waiting)
    if (this.claimed) {
      this.holder = commit.by
      this.claims.push({ epoch: operation!.epoch, by: commit.by, planned: this.hasPlan, until: 0, renewed: false })
    }
    if (this.claimed) this.firstLease ??= operation!.leaseExpiresAt
    else if (this.reopened) this.firstLease = null
    const claim = this.claims.at(-1)
    if (claim !== undefined && operation?.leaseExpiresAt != null) {
      claim.until = operation.leaseExpiresAt
      claim.renewed ||= this.renewed
    }
    if (this.plan === null && this.written !== null) {
      this.plan = this.written
      this.planBy = commit.by
    }
    if (this.lane !== null && operation !== null && before !== operation) this.lane.learn(this)
  }
}

export const isLive = (operation: Operation | null): boolean => operation !== null && !isTerminal(operation.state)

/** Whether nothing but the end of a lease differs. */
export const isRenewal = (a: Operation, b: Operation): boolean =>
  a.state === "running" && b.state === "running" && a.epoch === b.epoch && a.leaseOwner === b.leaseOwner &&
  a.leaseExpiresAt !== null && b.leaseExpiresAt !== null && a.attempts === b.attempts && a.seq === b.seq &&
  a.ready === b.ready && a.fairTag === b.fairTag && a.nextAttemptAt === b.nextAttemptAt &&
  a.invalidOutputs === b.invalidOutputs && a.windowStartedAt === b.windowStartedAt &&
  a.authorizationNo === b.authorizationNo && a.failure === b.failure && a.outcome === b.outcome &&
  a.results === b.results && a.evidence === b.evidence && a.createdAt === b.createdAt && a.startedAt === b.startedAt &&
  a.completedAt === b.completedAt && a.kind === b.kind && a.lane === b.lane && a.scope === b.scope &&
  a.workspaceId === b.workspaceId && a.id === b.id
