/** What every `Ledger` promises: balances that only transfers move, authorizations that end once, grants given once. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, type Layer } from "effect"
import * as Money from "../../src/domain/Ledger.ts"
import { balancesOf, begin, type Ports } from "./money.ts"
import type { Open } from "./operations.ts"
import { operationId, workspaceOf } from "./records.ts"

export const suite = <R, E>(name: string, ports: Layer.Layer<Ports | R, E>, open: Open<R>) =>
  layer(ports, { excludeTestServices: true, timeout: "60 seconds" })(`Ledger: ${name}`, (it) => {
    it.effect("a workspace begins with nothing, and one that does not exist has nothing", () =>
      Effect.gen(function*() {
        const { balances, kinds, ledger, workspaceId } = yield* begin("nothing", 0n, open)
        assert.deepStrictEqual(yield* balances, Money.emptyBalances)
        assert.deepStrictEqual(yield* kinds, [])
        const [account] = yield* ledger.lock([workspaceId])
        assert.deepStrictEqual(account, { workspaceId, balances: Money.emptyBalances, fairTime: 0 })
        assert.deepStrictEqual(yield* ledger.balances(workspaceOf("nowhere")), Money.emptyBalances)
        assert.deepStrictEqual(yield* ledger.lock([workspaceOf("nowhere")]), [])
      }))

    it.effect("a lock shows each account once, in lock order, with its virtual time", () =>
      Effect.gen(function*() {
        const a = yield* begin("lock-a", 1n, open)
        const b = yield* begin("lock-b", 2n, open)
        const c = yield* begin("lock-c", 3n, open)
        yield* a.ledger.setFairTimes([
          { workspaceId: c.workspaceId, fairTime: Number.MAX_SAFE_INTEGER },
          { workspaceId: a.workspaceId, fairTime: 7 }
        ])
        const named = [c, a, b, a].map(({ workspaceId }) => workspaceId)
        assert.deepStrictEqual(yield* a.run(a.ledger.lock([...named, workspaceOf("nowhere")])), [
          { workspaceId: a.workspaceId, balances: balancesOf(1n, 0n, 0n), fairTime: 7 },
          { workspaceId: b.workspaceId, balances: balancesOf(2n, 0n, 0n), fairTime: 0 },
          { workspaceId: c.workspaceId, balances: balancesOf(3n, 0n, 0n), fairTime: Number.MAX_SAFE_INTEGER }
        ])
      }))

    it.effect("credit is reserved, then charged with the rest released, or refunded, and every balance says so", () =>
      Effect.gen(function*() {
        const { balances, kinds, post, reserve, spenders } = yield* begin("moves", 100n, open)
        const [one, two, three] = yield* spenders(3)
        const [whole, part, none] = [yield* reserve(one!, 5n), yield* reserve(two!, 7n), yield* reserve(three!, 11n)]
        assert.deepStrictEqual(yield* balances, balancesOf(77n, 23n, 0n))
        yield* post(Money.charge(whole, 5n))
        assert.deepStrictEqual(yield* balances, balancesOf(77n, 18n, 5n))
        yield* post(Money.charge(part, 3n))
        assert.deepStrictEqual(yield* balances, balancesOf(81n, 11n, 8n))
        yield* post(Money.refund(none))
        assert.deepStrictEqual(yield* balances, balancesOf(92n, 0n, 8n))
        assert.deepStrictEqual(yield* kinds, [
          "grant 100", "reserve 5", "reserve 7", "reserve 11", "charge 5", "charge 3", "release 4", "refund 11"
        ])
      }))

    it.effect("what costs nothing is charged too, and what is done at once is reserved and charged at once", () =>
      Effect.gen(function*() {
        const { balances, grantOf, kinds, ledger, post, reserve, run, spenders } = yield* begin("at-once", 10n, open)
        const [free, sync, worthless] = yield* spenders(3)
        yield* post(Money.charge(yield* reserve(free!, 4n), 0n))
        const grant = grantOf(sync!, 3n)
        const end = Money.charge(grant.authorization, 3n)
        yield* run(ledger.post([end.authorization], [...grant.transfers, ...end.transfers]))
        yield* post(Money.refund(yield* reserve(worthless!, 0n)))
        assert.deepStrictEqual(yield* balances, balancesOf(7n, 0n, 3n))
        assert.deepStrictEqual(yield* kinds, [
          "grant 10", "reserve 4", "charge 0", "release 4", "reserve 3", "charge 3", "reserve 0", "refund 0"
        ])
      }))

    it.effect("one post moves many operations of many workspaces", () =>
      Effect.gen(function*() {
        const [a, b] = [yield* begin("many-a", 10n, open), yield* begin("many-b", 20n, open)]
        const [one, two] = yield* a.spenders(2)
        const [three] = yield* b.spenders(1)
        const [first, third] = [yield* a.reserve(one!, 1n), yield* b.reserve(three!, 4n)]
        yield* a.post(Money.charge(first, 1n), b.grantOf(two!, 2n), Money.refund(third))
        assert.deepStrictEqual(yield* a.balances, balancesOf(7n, 2n, 1n))
        assert.deepStrictEqual(yield* b.balances, balancesOf(20n, 0n, 0n))
        assert.deepStrictEqual(yield* a.kinds, ["grant 10", "reserve 1", "charge 1", "reserve 2"])
        assert.deepStrictEqual(yield* b.kinds, ["grant 20", "reserve 4", "refund 4"])
      }))

    it.effect("amounts are exact, far beyond what a float holds", () =>
      Effect.gen(function*() {
        const most = 2n ** 62n + 1n
        const { balances, ledger, post, reserve, spenders, transfers } = yield* begin("exact", most, open)
        const [one] = yield* spenders(1)
        const authorization = yield* reserve(one!, most - 1n)
        assert.deepStrictEqual((yield* ledger.openAuthorizations([one!]))[0]!.reserved, most - 1n)
        yield* post(Money.charge(authorization, 2n ** 60n + 3n))
        assert.deepStrictEqual(yield* balances, balancesOf(most - 2n ** 60n - 3n, 0n, 2n ** 60n + 3n))
        assert.deepStrictEqual((yield* transfers()).map(({ amount }) => amount), [
          most - 1n - (2n ** 60n + 3n), 2n ** 60n + 3n, most - 1n, most
        ])
      }))

    it.effect("an authorization never ends twice: whoever tries has a defect, and changes nothing", () =>
      Effect.gen(function*() {
        const { balances, kinds, ledger, post, reserve, spenders } = yield* begin("ended", 20n, open)
        const [charged, refunded] = yield* spenders(2)
        const [a, b] = [yield* reserve(charged!, 5n), yield* reserve(refunded!, 7n)]
        yield* post(Money.charge(a, 2n), Money.refund(b))
        const everything = Effect.all([balances, kinds, ledger.authorizations([charged!, refunded!])])
        const before = yield* everything
        const ends = [Money.refund(a), Money.charge(a, 2n), Money.charge(a, 5n), Money.charge(b, 7n), Money.refund(b)]
        for (const end of ends) {
          assert.isTrue(Exit.hasDies(yield* Effect.exit(post(end))))
          assert.deepStrictEqual(yield* everything, before)
        }
      }))

    it.effect("an operation has one live authorization: the next one follows a refund, and nothing else", () =>
      Effect.gen(function*() {
        const { balances, grantOf, ledger, post, reserve, spenders } = yield* begin("live", 20n, open)
        const [one] = yield* spenders(1)
        const first = yield* reserve(one!, 5n)
        assert.isTrue(Exit.hasDies(yield* Effect.exit(post(grantOf(one!, 1n, 2)))))
        yield* post(Money.refund(first))
        const second = yield* reserve(one!, 6n, 2)
        assert.deepStrictEqual(yield* ledger.openAuthorizations([one!]), [second])
        const end = Money.charge(second, 6n)
        yield* post(end)
        assert.isTrue(Exit.hasDies(yield* Effect.exit(post(grantOf(one!, 1n, 3)))))
        const all = yield* ledger.authorizations([one!])
        assert.deepStrictEqual(all, [{ ...first, state: "refunded" }, end.authorization])
        assert.deepStrictEqual(yield* balances, balancesOf(14n, 0n, 6n))
      }))

    it.effect("nobody spends what he does not have: an overdraft is a defect, and takes its transaction with it", () =>
      Effect.gen(function*() {
        const { balances, grantOf, kinds, ledger, post, run, spenders } = yield* begin("overdraft", 10n, open)
        const [small, large] = yield* spenders(2)
        const overdraft = run(Effect.andThen(post(grantOf(small!, 4n)), post(grantOf(large!, 7n))))
        assert.isTrue(Exit.hasDies(yield* Effect.exit(overdraft)))
        assert.isTrue(Exit.hasDies(yield* Effect.exit(post(grantOf(small!, 4n), grantOf(large!, 7n)))))
        assert.deepStrictEqual(yield* balances, balancesOf(10n, 0n, 0n))
        assert.deepStrictEqual(yield* ledger.authorizations([small!, large!]), [])
        assert.deepStrictEqual(yield* kinds, ["grant 10"])
        yield* post(grantOf(small!, 4n), grantOf(large!, 6n))
        assert.deepStrictEqual(yield* balances, balancesOf(0n, 10n, 0n))
      }))

    it.effect("authorizations are those of the operations that are asked for, oldest first, the open ones apart", () =>
      Effect.gen(function*() {
        const { ledger, post, reserve, spenders } = yield* begin("authorizations", 50n, open)
        const other = yield* begin("authorizations-other", 50n, open)
        const [one, two, never] = yield* spenders(3)
        const [theirs] = yield* other.spenders(1)
        const refund = Money.refund(yield* reserve(one!, 1n))
        yield* post(refund)
        const again = yield* reserve(one!, 2n, 2)
        const charge = Money.charge(yield* reserve(two!, 3n), 1n)
        yield* post(charge)
        const foreign = yield* other.reserve(theirs!, 4n)
        const all = yield* ledger.authorizations([two!, never!, one!])
        assert.deepStrictEqual(all, [refund.authorization, again, charge.authorization])
        assert.deepStrictEqual(yield* ledger.openAuthorizations([two!, one!, never!]), [again])
        assert.deepStrictEqual(yield* ledger.openAuthorizations([theirs!, one!]), [again, foreign])
        const misplaced = { workspaceId: other.workspaceId, id: one!.id }
        assert.deepStrictEqual(yield* ledger.authorizations([misplaced, { ...one!, id: operationId() }]), [])
      }))

    it.effect("transfers are read newest first, page by page, in their own workspace", () =>
      Effect.gen(function*() {
        const { ledger, post, reserve, spenders, transfers, workspaceId } = yield* begin("transfers", 50n, open)
        const other = yield* begin("transfers-other", 50n, open)
        const [one] = yield* spenders(1)
        const authorization = yield* reserve(one!, 5n)
        yield* ledger.grant(other.workspaceId, 1n, "between")
        yield* post(Money.charge(authorization, 2n))
        const all = yield* transfers()
        const entry = { workspaceId, operationId: one!.id, authorizationNo: 1, reference: null }
        assert.deepStrictEqual(all.map(({ at: _at, seq: _seq, ...rest }) => rest), [
          { ...entry, kind: "release", amount: 3n },
          { ...entry, kind: "charge", amount: 2n },
          { ...entry, kind: "reserve", amount: 5n },
          { workspaceId, operationId: null, authorizationNo: null, kind: "grant", amount: 50n, reference: "initial" }
        ])
        assert.isTrue(all.every(({ at, seq }, n) => n === 0 || (seq < all[n - 1]!.seq && at <= all[n - 1]!.at)))
        assert.deepStrictEqual(yield* transfers(null, 3), all.slice(0, 3))
        assert.deepStrictEqual(yield* transfers(all[2]!.seq, 3), all.slice(3))
        assert.deepStrictEqual(yield* transfers(all[3]!.seq, 3), [])
        assert.deepStrictEqual(yield* transfers(null, 0), [])
      }))

    it.effect("a grant is given once for its reference, in each workspace", () =>
      Effect.gen(function*() {
        const { balances, kinds, ledger, workspaceId } = yield* begin("grants", 0n, open)
        const other = yield* begin("grants-other", 0n, open)
        const given = [
          yield* ledger.grant(workspaceId, 5n, "invoice 🦜 'one'"),
          yield* ledger.grant(workspaceId, 5n, "invoice 🦜 'one'"),
          yield* ledger.grant(workspaceId, 6n, "invoice 🦜 'one'"),
          yield* ledger.grant(workspaceId, 7n, "two"),
          yield* ledger.grant(other.workspaceId, 8n, "two")
        ]
        assert.deepStrictEqual(given, [true, false, false, true, true])
        assert.deepStrictEqual(yield* balances, balancesOf(12n, 0n, 0n))
        assert.deepStrictEqual(yield* other.balances, balancesOf(8n, 0n, 0n))
        assert.deepStrictEqual(yield* kinds, ["grant 5", "grant 7"])
        assert.isTrue(Exit.hasDies(yield* Effect.exit(ledger.grant(workspaceOf("nowhere"), 1n, "one"))))
      }))

    it.effect("what was granted under a reference is known, in each workspace", () =>
      Effect.gen(function*() {
        const { ledger, run, workspaceId } = yield* begin("granted", 0n, open)
        const other = yield* begin("granted-other", 0n, open)
        assert.isNull(yield* ledger.granted(workspaceId, "invoice 🦜"))
        yield* ledger.grant(workspaceId, 2n ** 60n + 1n, "invoice 🦜")
        yield* ledger.grant(workspaceId, 6n, "invoice 🦜")
        yield* ledger.grant(other.workspaceId, 8n, "two")
        assert.strictEqual(yield* ledger.granted(workspaceId, "invoice 🦜"), 2n ** 60n + 1n)
        assert.isNull(yield* ledger.granted(workspaceId, "two"))
        assert.isNull(yield* ledger.granted(workspaceOf("nowhere"), "two"))
        const mine = Effect.andThen(ledger.grant(workspaceId, 3n, "own"), ledger.granted(workspaceId, "own"))
        assert.strictEqual(yield* run(mine), 3n)
      }))

    it.effect("of nothing there is nothing", () =>
      Effect.gen(function*() {
        const { balances, ledger } = yield* begin("empty", 3n, open)
        yield* ledger.setFairTimes([])
        yield* ledger.post([], [])
        assert.deepStrictEqual(yield* ledger.lock([]), [])
        assert.deepStrictEqual(yield* ledger.openAuthorizations([]), [])
        assert.deepStrictEqual(yield* ledger.authorizations([]), [])
        assert.deepStrictEqual(yield* balances, balancesOf(3n, 0n, 0n))
      }))
  })
