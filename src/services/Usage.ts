/** Balances and the ledger, for whoever pays. */
import { Context, type Effect } from "effect"
import type { WorkspaceId } from "../domain/Ids.ts"
import type { Balances, TransferRow } from "../domain/Ledger.ts"
import type { ComeBackLater } from "../domain/Refusal.ts"

export class Usage extends Context.Service<Usage, {
  readonly balances: (workspaceId: WorkspaceId) => Effect.Effect<Balances, ComeBackLater>
  /** Newest first; `before` is exclusive. */
  readonly transfers: (page: {
    readonly workspaceId: WorkspaceId
    readonly before: bigint | null
    readonly limit: number
  }) => Effect.Effect<ReadonlyArray<TransferRow>, ComeBackLater>
}>()("indelible/services/Usage") {}
