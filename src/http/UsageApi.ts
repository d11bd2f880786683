/** The contract of usage: the balances of a workspace, and the ledger behind them. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { OperationId } from "../domain/Ids.ts"
import { Account, type Balances, route, TransferKind, type TransferRow } from "../domain/Ledger.ts"
import { Authentication, operation } from "./Authentication.ts"
import { Credits, credits, Instant, instant, pageOf, pageQuery } from "./Wire.ts"

export const BalancesView = Schema.Struct({
  available: Credits,
  reserved: Credits,
  consumed: Credits,
  issued: Credits
}).annotate({ identifier: "Usage", description: "`available + reserved + consumed = issued`, always." })

export const balancesView = (balances: Balances): typeof BalancesView.Type => ({
  available: credits(balances.available),
  reserved: credits(balances.reserved),
  consumed: credits(balances.consumed),
  issued: credits(balances.issued)
})

export const TransferView = Schema.Struct({
  seq: Schema.Int.annotate({ description: "Its place in the ledger, increasing. Numbers are missing where nothing was committed, or "
      + "where they went to other workspaces: a gap is no loss." }),
  kind: TransferKind,
  from: Account,
  to: Account,
  amount_credits: Credits,
  event_id: Schema.NullOr(OperationId),
  authorization_no: Schema.NullOr(Schema.Int),
  reference: Schema.NullOr(Schema.String).annotate({ description: "The operator's name for a grant." }),
  created_at: Instant
}).annotate({
  identifier: "Transfer",
  description: "One movement between two accounts. Transfers are only ever added."
})

export const transferView = (row: TransferRow): typeof TransferView.Type => ({
  seq: credits(row.seq),
  kind: row.kind,
  from: route[row.kind][0],
  to: route[row.kind][1],
  amount_credits: credits(row.amount),
  event_id: row.operationId,
  authorization_no: row.authorizationNo,
  reference: row.reference,
  created_at: instant(row.at)
})

const balances = HttpApiEndpoint.get("balances", "/v1/usage", { success: BalancesView })
  .annotateMerge(operation("usage:read", "Read the balances", "What is left, what is held, and what was spent."))

const transfers = HttpApiEndpoint.get("transfers", "/v1/usage/transfers", {
  query: pageQuery,
  success: pageOf(TransferView, "TransferPage")
}).annotateMerge(operation(
  "usage:read",
  "List transfers",
  "Newest first. Their numbers increase, and may have gaps."
))

export class UsageApi extends HttpApiGroup.make("usage")
  .add(balances, transfers)
  .middleware(Authentication)
  .annotateMerge(OpenApi.annotations({ description: "What it costs." }))
{}
