/** Credits under every sequence of grants, holds and ends: conserved, never overdrawn, each hold ended once. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as Arbitrary from "effect/Arbitrary"
import {
  type Authorization,
  type Balances,
  canReserve,
  charge,
  conserves,
  emptyBalances,
  neverNegative,
  post,
  refund,
  reserve,
  type Transfer
} from "../../src/domain/Ledger.ts"
import { accountInvariants, authorizationInvariants } from "../../src/domain/MoneyInvariants.ts"
import { oneOf } from "./arbitraries.ts"
import { grantOf, operationId, workspaceId } from "./samples.ts"

const amounts = Arbitrary.schema(Schema.BigInt.check(Schema.isBetweenBigInt({ minimum: -3n, maximum: 30n })))
const moves = Arbitrary.array(
  Arbitrary.all({
    what: oneOf("grant", "reserve", "reserve", "charge", "charge", "refund", "refund"),
    amount: amounts,
    target: oneOf(0, 0, 1, 2, 5)
  }),
  { maxLength: 80 }
)
type Move = { readonly what: string; readonly amount: bigint; readonly target: number }

interface Books {
  readonly balances: Balances
  readonly authorizations: ReadonlyArray<Authorization>
  readonly transfers: ReadonlyArray<Transfer>
  /** How often an authorization that had ended was to be ended again. */
  readonly refused: number
}

const closed: Books = { balances: emptyBalances, authorizations: [], transfers: [], refused: 0 }
const absolute = (amount: bigint) => amount < 0n ? -amount : amount

const entered = (books: Books, transfers: ReadonlyArray<Transfer>, authorizations: Books["authorizations"]): Books => ({
  ...books,
  balances: transfers.reduce(post, books.balances),
  transfers: [...books.transfers, ...transfers],
  authorizations
})

const play = (books: Books, { amount, target, what }: Move): Books => {
  if (what === "grant") {
    const grant = { workspaceId, operationId: null, authorizationNo: null, reference: `g${books.transfers.length}` }
    return entered(books, [{ ...grant, kind: "grant", amount: absolute(amount) }], books.authorizations)
  }
  if (what === "reserve") {
    if (!canReserve(books.balances, absolute(amount))) return books
    const { authorization, transfers } = reserve(grantOf(books.authorizations.length, 1, absolute(amount)))
    return entered(books, transfers, [authorization, ...books.authorizations])
  }
  const held = books.authorizations[target]
  if (held === undefined) return books
  const end = () => what === "charge" ? charge(held, amount) : refund(held)
  if (held.state !== "open") {
    assert.throws(end, /was ended again$/)
    return { ...books, refused: books.refused + 1 }
  }
  const { authorization, transfers } = end()
  return entered(books, transfers, books.authorizations.with(target, authorization))
}

describe("the ledger", () => {
  it.effect("is shown every kind of movement, and tries to end what has ended, in the sequences below", () =>
    Effect.gen(function*() {
      const samples = yield* Arbitrary.sampleEffect(moves, { count: 50, size: 80, seed: 1 })
      const books = samples.map((sequence) => sequence.reduce(play, closed))
      const kinds = books.flatMap(({ transfers }) => transfers.map(({ kind }) => kind))
      assert.deepStrictEqual([...new Set(kinds)].toSorted(), ["charge", "grant", "refund", "release", "reserve"])
      assert.isTrue(books.some(({ refused }) => refused > 0))
    }))

  it.prop("conserves every credit, overdraws nothing and ends every hold once, whatever is posted", {
    moves
  }, ({ moves }) => {
    let books = closed
    for (const move of moves) {
      books = play(books, move)
      const { authorizations, balances, transfers } = books
      assert.isTrue(conserves(balances) && neverNegative(balances))
      const account = { workspaceId, accounts: [{ workspaceId, balances }], authorizations, transfers, keys: [] }
      assert.deepStrictEqual(accountInvariants.flatMap(({ check }) => check(account)), [])
    }
    const endsOnce = authorizationInvariants.find(({ name }) => name === "authorization-ends-once")!
    for (const authorization of books.authorizations) {
      const mine = books.transfers.filter((transfer) => transfer.operationId === authorization.operationId)
      const ref = { workspaceId, id: authorization.operationId }
      const nothingElse = { operation: null, keys: [], history: [], hasPlan: false, hasInput: false }
      const slice = { ref, authorizations: [authorization], transfers: mine, ...nothingElse }
      assert.deepStrictEqual(endsOnce.check(slice), [])
    }
  }, { arbitrary: { runs: 300, size: 80 } })

  it("an authorization that has ended cannot be ended again, either way", () => {
    const { authorization } = reserve(grantOf(1, 1, 2n))
    for (const ended of [charge(authorization, 2n).authorization, refund(authorization).authorization]) {
      assert.throws(() => charge(ended, 1n), /was ended again$/)
      assert.throws(() => refund(ended), /was ended again$/)
    }
  })

  it("a charge takes at most what was held, at least nothing, and releases the rest beside it", () => {
    const { authorization } = reserve(grantOf(1, 1, 5n))
    const moved = (amount: bigint) => charge(authorization, amount).transfers.map(({ amount, kind }) => [kind, amount])
    assert.deepStrictEqual(moved(5n), [["charge", 5n]])
    assert.deepStrictEqual(moved(9n), [["charge", 5n]])
    assert.deepStrictEqual(moved(2n), [["charge", 2n], ["release", 3n]])
    assert.deepStrictEqual(moved(0n), [["charge", 0n], ["release", 5n]])
    assert.deepStrictEqual(moved(-1n), [["charge", 0n], ["release", 5n]])
    assert.strictEqual(charge(authorization, 9n).authorization.charged, 5n)
  })

  it("every transfer names its authorization, and a hold needs what it holds", () => {
    const { authorization, transfers } = reserve(grantOf(7, 3, 5n))
    const all = [...transfers, ...charge(authorization, 1n).transfers, ...refund(authorization).transfers]
    for (const transfer of all) {
      assert.deepStrictEqual([transfer.operationId, transfer.authorizationNo], [operationId(7), 3])
    }
    const balances = { ...emptyBalances, available: 5n, issued: 5n }
    assert.deepStrictEqual([canReserve(balances, 5n), canReserve(balances, 6n)], [true, false])
  })
})
