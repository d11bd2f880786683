/** The accounts of every workspace. Balances move only by transfers; whoever touches them does so last. */
import { Context, type Effect } from "effect"
import type { OperationRef, WorkspaceId } from "../domain/Ids.ts"
import type { Authorization, Balances, Transfer, TransferRow } from "../domain/Ledger.ts"
import type { OutcomeUnknown } from "./Transaction.ts"

/** A workspace's account row: its balances, and its virtual time in the fair queue. */
export interface AccountRow {
  readonly workspaceId: WorkspaceId
  readonly balances: Balances
  readonly fairTime: number
}

export class Ledger extends Context.Service<Ledger, {
  /** Locks these account rows in lock order until the transaction ends. Serialises the accepts of a workspace. */
  readonly lock: (workspaceIds: ReadonlyArray<WorkspaceId>) => Effect.Effect<ReadonlyArray<AccountRow>, OutcomeUnknown>
  /** Writes a workspace's virtual time. Its account must be locked. */
  readonly setFairTimes: (
    rows: ReadonlyArray<{ readonly workspaceId: WorkspaceId; readonly fairTime: number }>
  ) => Effect.Effect<void, OutcomeUnknown>
  /** Locks the open authorizations of these operations. */
  readonly openAuthorizations: (refs: ReadonlyArray<OperationRef>) => Effect.Effect<ReadonlyArray<Authorization>, OutcomeUnknown>
  /** Writes authorizations (new ones, and ends of open ones) and their transfers, and moves the balances. */
  readonly post: (
    authorizations: ReadonlyArray<Authorization>,
    transfers: ReadonlyArray<Transfer>
  ) => Effect.Effect<void, OutcomeUnknown>
  /** All authorizations of these operations, oldest first. */
  readonly authorizations: (refs: ReadonlyArray<OperationRef>) => Effect.Effect<ReadonlyArray<Authorization>, OutcomeUnknown>
  readonly balances: (workspaceId: WorkspaceId) => Effect.Effect<Balances, OutcomeUnknown>
  /** Newest first; `before` is exclusive. */
  readonly transfers: (page: {
    readonly workspaceId: WorkspaceId
    readonly before: bigint | null
    readonly limit: number
  }) => Effect.Effect<ReadonlyArray<TransferRow>, OutcomeUnknown>
  /** Grants credit once per reference: false when the reference was used before. */
  readonly grant: (workspaceId: WorkspaceId, amount: bigint, reference: string) => Effect.Effect<boolean, OutcomeUnknown>
  /** What was granted under this reference; null when nothing was. */
  readonly granted: (workspaceId: WorkspaceId, reference: string) => Effect.Effect<bigint | null, OutcomeUnknown>
}>()("indelible/services/Ledger") {}
