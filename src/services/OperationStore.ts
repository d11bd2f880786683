/** The rows of operations, their idempotency keys, inputs and frozen plans. Every method takes and serves a batch. */
import type { Effect } from "effect"
import type { InferInput } from "../domain/Command.ts"
import type { LaneRef, OperationId, OperationRef, Sha256Hex, WorkspaceId } from "../domain/Ids.ts"
import type { Lease, Operation, OperationKind, OperationState } from "../domain/Operation.ts"
import type { Plan } from "../domain/Plan.ts"
import type { ScopeFilter } from "../domain/Scope.ts"
import type { OutcomeUnknown } from "./Transaction.ts"

/** An idempotency key as stored: by its hash, with the hash of the command it was first used for. */
export interface KeyRow {
  readonly workspaceId: WorkspaceId
  readonly keyHash: Sha256Hex
  readonly commandVersion: number
  readonly commandHash: Sha256Hex
  readonly operationId: OperationId
}

/** An operation to insert. The store gives it its `seq`; times come from `now`. */
export interface NewOperation {
  readonly operation: Operation
  readonly key: KeyRow | null
  /** Kept until the operation ends. Null for a command that is finished when it is accepted. */
  readonly input: InferInput | null
}

/** Rows locked until the transaction ends, and the database clock at that moment, in milliseconds. */
export interface Locked {
  readonly now: number
  readonly operations: ReadonlyArray<Operation>
}

/** What an attempt needs: a row whose input is gone was purged. */
export interface Work extends OperationRef {
  readonly input: InferInput | null
  readonly plan: Plan | null
}

export interface Frozen extends OperationRef {
  readonly plan: Plan
}

/** A row to save, fenced: it is written only while the stored row still has the state and epoch it was read with. */
export interface SavedOperation {
  readonly from: Operation
  readonly to: Operation
}

export interface OperationPage {
  readonly workspaceId: WorkspaceId
  readonly state: OperationState | null
  readonly kind: OperationKind | null
  readonly scope: ScopeFilter
  /** Exclusive: operations older than this id. Newest first. */
  readonly before: OperationId | null
  readonly limit: number
}

export interface OperationStore {
  /** The database clock, in milliseconds. */
  readonly now: Effect.Effect<number, OutcomeUnknown>
  /** Serialises whoever moves operations into or out of these lanes, until the transaction ends. Taken first of all locks. */
  readonly lockLanes: (lanes: ReadonlyArray<LaneRef>) => Effect.Effect<void, OutcomeUnknown>
  /** Which of these lanes hold an operation that is not terminal. */
  readonly occupiedLanes: (lanes: ReadonlyArray<LaneRef>) => Effect.Effect<ReadonlyArray<LaneRef>, OutcomeUnknown>
  /** The stored keys among these. */
  readonly findKeys: (
    keys: ReadonlyArray<{ readonly workspaceId: WorkspaceId; readonly keyHash: Sha256Hex }>
  ) => Effect.Effect<ReadonlyArray<KeyRow>, OutcomeUnknown>
  /** Adds a key to an operation that exists (a keyed manual retry). */
  readonly insertKeys: (keys: ReadonlyArray<KeyRow>) => Effect.Effect<void, OutcomeUnknown>
  /** Inserts operations with their keys and inputs, and gives each its place in its lane, in the order given. */
  readonly insert: (rows: ReadonlyArray<NewOperation>) => Effect.Effect<void, OutcomeUnknown>
  /** The virtual time of the fair queue, which is the largest start tag served, and the database clock in milliseconds. */
  readonly fairClock: Effect.Effect<{ readonly clock: number; readonly now: number }, OutcomeUnknown>
  /** Moves the virtual time on. It never goes back. */
  readonly advanceFairClock: (to: number) => Effect.Effect<void, OutcomeUnknown>
  /**
   * Locks up to `limit` pending, ready, due operations in fair order, skipping rows that somebody else has locked.
   * Leaves out what this release cannot read.
   */
  readonly claimable: (limit: number) => Effect.Effect<Locked, OutcomeUnknown>
  /** Locks up to `limit` running operations whose lease has expired, skipping and leaving out the same. */
  readonly expired: (limit: number) => Effect.Effect<Locked, OutcomeUnknown>
  /** Locks these operations in lock order, waiting for whoever has them. Rows that do not exist are absent. */
  readonly lock: (refs: ReadonlyArray<OperationRef>) => Effect.Effect<Locked, OutcomeUnknown>
  /** Saves evolved operations, and returns those that were still as they were read. */
  readonly save: (rows: ReadonlyArray<SavedOperation>) => Effect.Effect<ReadonlyArray<OperationRef>, OutcomeUnknown>
  /**
   * Renews the leases that still hold, by the database clock, and returns them. Waits for nobody: those absent are lost,
   * or somebody has their row locked.
   */
  readonly renew: (leases: ReadonlyArray<Lease>, leaseMs: number) => Effect.Effect<ReadonlyArray<Lease>, OutcomeUnknown>
  /** Inputs and frozen plans. Leaves out what this release cannot read. */
  readonly work: (refs: ReadonlyArray<OperationRef>) => Effect.Effect<ReadonlyArray<Work>, OutcomeUnknown>
  /** Writes plans that do not exist yet, and returns the plan that is in force for each of these operations. */
  readonly freeze: (plans: ReadonlyArray<Frozen>) => Effect.Effect<ReadonlyArray<Frozen>, OutcomeUnknown>
  /** Removes the input and the plan for good. */
  readonly redact: (refs: ReadonlyArray<OperationRef>) => Effect.Effect<void, OutcomeUnknown>
  /** Records for those who follow operations that these reached their present state. Part of the same commit. */
  readonly announce: (operations: ReadonlyArray<Operation>) => Effect.Effect<void, OutcomeUnknown>
  /**
   * Makes the next operation of each of these lanes claimable, if there is one and none is ready. Returns how many. They
   * queue anew, each workspace's by `handedTag`: while they were behind, the virtual time went on.
   */
  readonly readyNext: (lanes: ReadonlyArray<LaneRef>) => Effect.Effect<number, OutcomeUnknown>
  /** A place at the end of the order of acceptance. */
  readonly nextSeq: Effect.Effect<number, OutcomeUnknown>
  readonly get: (ref: OperationRef) => Effect.Effect<Operation | null, OutcomeUnknown>
  readonly list: (page: OperationPage) => Effect.Effect<ReadonlyArray<Operation>, OutcomeUnknown>
  /** Those of these operations whose input is still kept. */
  readonly withInput: (refs: ReadonlyArray<OperationRef>) => Effect.Effect<ReadonlyArray<OperationRef>, OutcomeUnknown>
  /**
   * Looks at up to `scan` lanes after `after` for those that hold work of which none is ready: the mark of a lost
   * hand-over. `next` is where to go on, null at the end.
   */
  readonly stalledLanes: (
    after: LaneRef | null,
    scan: number
  ) => Effect.Effect<{ readonly stalled: ReadonlyArray<LaneRef>; readonly next: LaneRef | null }, OutcomeUnknown>
  /** Failed operations that ended at least `ageMs` ago by the database clock and still keep their input. */
  readonly expiredInputs: (ageMs: number, limit: number) => Effect.Effect<ReadonlyArray<OperationRef>, OutcomeUnknown>
  /** Removes announcements older than this; returns how many, at most `limit`. */
  readonly pruneAnnouncements: (ageMs: number, limit: number) => Effect.Effect<number, OutcomeUnknown>
}
