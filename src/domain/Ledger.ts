/**
 * Double entry in whole credits, one set of accounts per workspace. Every movement is a transfer between two accounts;
 * an authorization is one grant to spend and ends in exactly one charge or refund.
 */
import { Schema } from "effect"
import { OperationId, Text, Timestamp, WorkspaceId } from "./Ids.ts"

/** Whole credits. Money is never a float. */
export const Credits = Schema.BigInt.check(Schema.isGreaterThanOrEqualToBigInt(0n))
export type Credits = bigint

export const Account = Schema.Literals(["issued", "available", "reserved", "consumed"])
export type Account = typeof Account.Type

export const TransferKind = Schema.Literals(["grant", "reserve", "charge", "release", "refund"])
export type TransferKind = typeof TransferKind.Type

/** The two accounts of each kind of movement: from, to. */
export const route: Record<TransferKind, readonly [from: Account, to: Account]> = {
  grant: ["issued", "available"],
  reserve: ["available", "reserved"],
  charge: ["reserved", "consumed"],
  release: ["reserved", "available"],
  refund: ["reserved", "available"]
}

/** The longest name of a grant, in UTF-16 code units: it is a key, and an index takes no row of any length. */
export const referenceMaxLength = 255

/** The operator's name for a grant. */
export const GrantReference = Text.check(
  Schema.makeFilter((reference: string) => reference.trim() !== "", { message: "must be a name that is not empty" }),
  Schema.makeFilter((reference: string) => reference.length <= referenceMaxLength, {
    message: `must be at most ${referenceMaxLength} characters`
  })
)

/** One row of the ledger. `authorizationNo` is null for a grant. */
export interface Transfer {
  readonly workspaceId: WorkspaceId
  readonly kind: TransferKind
  readonly operationId: OperationId | null
  readonly authorizationNo: number | null
  readonly amount: bigint
  /** Set for a grant: the operator's name for it, unique per workspace, so that a repeat grants nothing. */
  readonly reference: string | null
}

export const TransferRow = Schema.Struct({
  workspaceId: WorkspaceId,
  /** Its place in the ledger, increasing; one sequence serves all workspaces, and no number is used twice. Gaps are no loss. */
  seq: Schema.BigInt,
  kind: TransferKind,
  operationId: Schema.NullOr(OperationId),
  authorizationNo: Schema.NullOr(Schema.Int),
  amount: Schema.BigInt,
  reference: Schema.NullOr(Schema.String),
  at: Timestamp
})
export type TransferRow = typeof TransferRow.Type

/** The balances of a workspace. `issued` counts every credit ever granted. */
export const Balances = Schema.Struct({
  available: Credits,
  reserved: Credits,
  consumed: Credits,
  issued: Credits
})
export type Balances = typeof Balances.Type

export const emptyBalances: Balances = { available: 0n, reserved: 0n, consumed: 0n, issued: 0n }

/** The most that a workspace is issued in all. Amounts are JSON integers to whoever asks, and no balance is beyond it. */
export const issuedMax = BigInt(Number.MAX_SAFE_INTEGER)

/** A price, recorded where it was applied. Whole credits. */
export const Price = Schema.Struct({
  policy: Schema.Literals(["infer-add", "verbatim-add"]),
  stored: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)),
  noMemory: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
})
export type Price = typeof Price.Type

/** One grant to spend on one operation. Numbered from 1; a manual retry takes the next number. */
export const Authorization = Schema.Struct({
  workspaceId: WorkspaceId,
  operationId: OperationId,
  no: Schema.Int,
  state: Schema.Literals(["open", "charged", "refunded"]),
  reserved: Credits,
  charged: Credits,
  /** The price in force when it was opened: what success costs, and what an empty extraction does. */
  price: Price
})
export type Authorization = typeof Authorization.Type

/** Moves one transfer through the balances. The caller checks `conserves` and `neverNegative`, as the database does. */
export const post = (balances: Balances, transfer: Transfer): Balances => {
  const [from, to] = route[transfer.kind]
  if (from === "issued") {
    return { ...balances, issued: balances.issued + transfer.amount, [to]: balances[to] + transfer.amount }
  }
  return { ...balances, [from]: balances[from] - transfer.amount, [to]: balances[to] + transfer.amount }
}

/** Every credit ever issued is somewhere. */
export const conserves = (balances: Balances): boolean =>
  balances.available + balances.reserved + balances.consumed === balances.issued

/** No account is ever overdrawn. */
export const neverNegative = (balances: Balances): boolean =>
  balances.available >= 0n && balances.reserved >= 0n && balances.consumed >= 0n && balances.issued >= 0n

/** Whether `amount` can be granted, and every balance still be told. */
export const canIssue = (balances: Balances, amount: bigint): boolean => balances.issued + amount <= issuedMax

/** Whether `amount` can be reserved now. */
export const canReserve = (balances: Balances, amount: bigint): boolean => balances.available >= amount

/** An authorization that has ended is never ended again: whoever tries has a defect. */
const assertOpen = (authorization: Authorization): void => {
  if (authorization.state !== "open") throw new Error(`an authorization that is ${authorization.state} was ended again`)
}

const movement = (authorization: Authorization, kind: TransferKind, amount: bigint): Transfer => ({
  workspaceId: authorization.workspaceId,
  kind,
  operationId: authorization.operationId,
  authorizationNo: authorization.no,
  amount,
  reference: null
})

/** Opens an authorization. */
export const reserve = (
  grant: Omit<Authorization, "state" | "charged">
): { readonly authorization: Authorization; readonly transfers: ReadonlyArray<Transfer> } => {
  const authorization: Authorization = { ...grant, state: "open", charged: 0n }
  return { authorization, transfers: [movement(authorization, "reserve", authorization.reserved)] }
}

/** Ends an open authorization in a charge of at most what it reserved; the rest is released beside it. */
export const charge = (
  authorization: Authorization,
  amount: bigint
): { readonly authorization: Authorization; readonly transfers: ReadonlyArray<Transfer> } => {
  assertOpen(authorization)
  const charged = amount < 0n ? 0n : amount > authorization.reserved ? authorization.reserved : amount
  const rest = authorization.reserved - charged
  return {
    authorization: { ...authorization, state: "charged", charged },
    transfers: [
      movement(authorization, "charge", charged),
      ...(rest > 0n ? [movement(authorization, "release", rest)] : [])
    ]
  }
}

/** Ends an open authorization in a refund of all it reserved. */
export const refund = (
  authorization: Authorization
): { readonly authorization: Authorization; readonly transfers: ReadonlyArray<Transfer> } => {
  assertOpen(authorization)
  return {
    authorization: { ...authorization, state: "refunded" },
    transfers: [movement(authorization, "refund", authorization.reserved)]
  }
}
