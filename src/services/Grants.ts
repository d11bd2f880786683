/** Credit from whoever runs the service: once for each reference, and never more than an answer can say. */
import { Data, Effect } from "effect"
import type { WorkspaceId } from "../domain/Ids.ts"
import { canIssue, emptyBalances, issuedMax } from "../domain/Ledger.ts"
import { Ledger } from "./Ledger.ts"
import { Transaction } from "./Transaction.ts"

/** The workspace would have been issued more than can be told. Nothing was granted. */
export class IssuedTooMuch extends Data.TaggedError("IssuedTooMuch")<{ readonly message: string }> {}

/**
 * Grants credit to a workspace. Null when it was granted now; otherwise what this reference granted before, and nothing
 * more is granted. The account is locked first, so that grants of a workspace are added up one after the other.
 */
export const give = Effect.fn("Grants.give")(function*(workspaceId: WorkspaceId, amount: bigint, reference: string) {
  const ledger = yield* Ledger
  const { run } = yield* Transaction
  return yield* run(Effect.gen(function*() {
    const [account] = yield* ledger.lock([workspaceId])
    const before = yield* ledger.granted(workspaceId, reference)
    if (before !== null) return before
    const balances = account?.balances ?? emptyBalances
    if (!canIssue(balances, amount)) {
      return yield* new IssuedTooMuch({
        message: `workspace ${workspaceId} was issued ${balances.issued} credits, and may be issued ${issuedMax} in all: ` +
          "nothing was granted"
      })
    }
    yield* ledger.grant(workspaceId, amount, reference)
    return null
  }))
})
