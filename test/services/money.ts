/** A workspace with credit, and operations to spend it on, for tests of the ledger. */
import { Effect } from "effect"
import * as Money from "../../src/domain/Ledger.ts"
import type { Operation } from "../../src/domain/Operation.ts"
import { Ledger } from "../../src/services/Ledger.ts"
import { Store } from "../../src/services/Store.ts"
import { Transaction } from "../../src/services/Transaction.ts"
import { bare, done, type Open } from "./operations.ts"
import { workspaceOf } from "./records.ts"

/** What `begin` needs. */
export type Ports = Ledger | Store | Transaction

const price: Money.Price = { policy: "infer-add", stored: 5, noMemory: 1 }

export const balancesOf = (available: bigint, reserved: bigint, consumed: bigint): Money.Balances => ({
  available,
  reserved,
  consumed,
  issued: available + reserved + consumed
})

/** A workspace with this much credit, and operations of it to spend on. */
export const begin = Effect.fnUntraced(function*<R>(test: string, credits: bigint, open: Open<R>) {
  const workspaceId = workspaceOf(test)
  yield* open(workspaceId)
  const ledger = yield* Ledger
  const { operations } = yield* Store
  const { run } = yield* Transaction
  if (credits > 0n) yield* ledger.grant(workspaceId, credits, "initial")

  /** Operations that no worker looks at. */
  const spenders = Effect.fnUntraced(function*(count: number) {
    const rows = Array.from({ length: count }, () => done(workspaceId))
    yield* operations.insert(rows.map((row) => bare(row)))
    return rows
  })
  const grantOf = (operation: Operation, reserved: bigint, no = 1) =>
    Money.reserve({ workspaceId: operation.workspaceId, operationId: operation.id, no, reserved, price })
  /** Reserves for an operation, and returns its open authorization. */
  const reserve = Effect.fnUntraced(function*(operation: Operation, amount: bigint, no = 1) {
    const { authorization, transfers } = grantOf(operation, amount, no)
    yield* run(ledger.post([authorization], transfers))
    return authorization
  })
  const post = (...moves: ReadonlyArray<ReturnType<typeof Money.reserve>>) =>
    run(ledger.post(moves.map(({ authorization }) => authorization), moves.flatMap(({ transfers }) => transfers)))
  const transfers = (before: bigint | null = null, limit = 100) => ledger.transfers({ workspaceId, before, limit })
  const kinds = Effect.map(transfers(), (rows) => rows.map(({ amount, kind }) => `${kind} ${amount}`).toReversed())
  return {
    ledger,
    run,
    workspaceId,
    spenders,
    grantOf,
    reserve,
    post,
    transfers,
    kinds,
    balances: ledger.balances(workspaceId)
  }
})
