/** Balances and the ledger, for whoever pays. */
import { Context, Effect, Layer } from "effect"
import type { WorkspaceId } from "../domain/Ids.ts"
import type { Balances, TransferRow } from "../domain/Ledger.ts"
import type { ComeBackLater } from "../domain/Refusal.ts"
import { againOrLater } from "./Again.ts"
import { Ledger } from "./Ledger.ts"

export class Usage extends Context.Service<Usage, {
  readonly balances: (workspaceId: WorkspaceId) => Effect.Effect<Balances, ComeBackLater>
  /** Newest first; `before` is exclusive. */
  readonly transfers: (page: {
    readonly workspaceId: WorkspaceId
    readonly before: bigint | null
    readonly limit: number
  }) => Effect.Effect<ReadonlyArray<TransferRow>, ComeBackLater>
}>()("indelible/services/Usage") {
  static readonly layer = Layer.effect(
    Usage,
    Effect.gen(function*() {
      const ledger = yield* Ledger
      return Usage.of({
        balances: Effect.fn("Usage.balances")((workspaceId) => againOrLater(ledger.balances(workspaceId))),
        transfers: Effect.fn("Usage.transfers")((page) => againOrLater(ledger.transfers(page)))
      })
    })
  )
}
