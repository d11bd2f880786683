/**
 * The money and the keys of one workspace, in so few rows that they can be summed after every commit: one transfer for
 * each kind, one authorization for all that are open, and only those keys that occur twice. Sums and verdicts are the
 * same as those of all the rows.
 */
import { OperationId, type Sha256Hex, type WorkspaceId } from "../../domain/Ids.ts"
import type { Authorization, Transfer, TransferKind } from "../../domain/Ledger.ts"
import type { WorkspaceSlice } from "../../domain/Snapshot.ts"
import type { AccountRow } from "../../services/Ledger.ts"
import type { KeyRow } from "../../services/OperationStore.ts"
import type { OperationTrack } from "./OperationTrack.ts"
import { Versions } from "./Versions.ts"

type Sum<Row, Amount extends keyof Row> = Omit<Row, Amount> & { -readonly [Name in Amount]: Row[Name] }

const kinds: ReadonlyArray<TransferKind> = ["grant", "reserve", "charge", "release", "refund"]
const nobody = OperationId.make("00000000-0000-7000-8000-000000000000")

export class WorkspaceTrack implements WorkspaceSlice {
  readonly workspaceId: WorkspaceId
  readonly accounts: Array<AccountRow> = []
  readonly authorizations: ReadonlyArray<Sum<Authorization, "reserved">>
  readonly transfers: ReadonlyArray<Sum<Transfer, "amount">>
  keys: ReadonlyArray<KeyRow> = []

  touched = 0
  /** The account before the commit in hand. */
  before: AccountRow | null = null
  /** The operations that it let in, in no order. */
  readonly entered: Array<OperationTrack> = []
  /** What the clock of the fair queue showed when the account was last changed. */
  clock = 0
  /** By virtual time. */
  readonly versions = new Versions<AccountRow>()
  private readonly byHash = new Map<Sha256Hex, ReadonlyArray<KeyRow>>()

  constructor(workspaceId: WorkspaceId) {
    this.workspaceId = workspaceId
    this.transfers = kinds.map((kind) => ({
      workspaceId,
      kind,
      operationId: null,
      authorizationNo: null,
      amount: 0n,
      reference: null
    }))
    const price = { policy: "infer-add", stored: 0, noMemory: 0 } as const
    this.authorizations = [
      { workspaceId, operationId: nobody, no: 1, state: "open", reserved: 0n, charged: 0n, price }
    ]
  }

  transfer(before: Transfer | null, after: Transfer | null): void {
    if (before !== null) this.transfers[kinds.indexOf(before.kind)]!.amount -= before.amount
    if (after !== null) this.transfers[kinds.indexOf(after.kind)]!.amount += after.amount
  }

  authorization(before: Authorization | null, after: Authorization | null): void {
    const open = this.authorizations[0]!
    if (before?.state === "open") open.reserved -= before.reserved
    if (after?.state === "open") open.reserved += after.reserved
  }

  key(before: KeyRow | null, after: KeyRow | null): void {
    if (before !== null) this.put(before.keyHash, this.withHash(before.keyHash).filter((row) => row !== before))
    if (after !== null) this.put(after.keyHash, [...this.withHash(after.keyHash), after])
  }

  private withHash(keyHash: Sha256Hex): ReadonlyArray<KeyRow> {
    return this.byHash.get(keyHash) ?? []
  }

  private put(keyHash: Sha256Hex, rows: ReadonlyArray<KeyRow>): void {
    const repeated = rows.length > 1 || this.withHash(keyHash).length > 1
    this.byHash.set(keyHash, rows)
    if (repeated) this.keys = [...this.byHash.values()].filter((same) => same.length > 1).flat()
  }
}
