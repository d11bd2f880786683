/** What every `Ledger` promises when several transactions are open: who waits for whom, and no credit is had twice. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, type Layer } from "effect"
import type { WorkspaceId } from "../../src/domain/Ids.ts"
import * as Money from "../../src/domain/Ledger.ts"
import * as Interleaving from "./interleaving.ts"
import { balancesOf, begin, type Ports } from "./money.ts"
import type { Open } from "./operations.ts"

const together = { concurrency: "unbounded" } as const

/** `blocked` returns once a transaction waits for another. */
export const concurrentSuite = <R, E>(
  name: string,
  ports: Layer.Layer<Ports | R, E>,
  open: Open<R>,
  blocked: Effect.Effect<unknown, unknown, R>
) =>
  layer(ports, { excludeTestServices: true, timeout: "60 seconds" })(`Ledger together: ${name}`, (it) => {
    const after = <A, E1, B, E2>(first: Effect.Effect<A, E1>, second: Effect.Effect<B, E2>, rolledBack = false) =>
      Interleaving.after({ first, second, rolledBack, blocked })

    it.effect("whoever locks an account waits for whoever has it, finds what he left, and holds up nobody else", () =>
      Effect.gen(function*() {
        const { grantOf, ledger, post, run, spenders, workspaceId } = yield* begin("account", 10n, open)
        const other = yield* begin("account-other", 1n, open)
        const [one] = yield* spenders(1)
        const lock = (id: WorkspaceId) => Effect.map(ledger.lock([id]), ([account]) => account!)
        const spend = Effect.all([
          lock(workspaceId),
          ledger.setFairTimes([{ workspaceId, fairTime: 9 }]),
          post(grantOf(one!, 4n))
        ])
        assert.strictEqual((yield* after(spend, run(lock(workspaceId)), true)).fairTime, 0)
        const found = yield* after(spend, run(lock(workspaceId)))
        assert.deepStrictEqual(found, { workspaceId, balances: balancesOf(6n, 4n, 0n), fairTime: 9 })
        yield* Interleaving.beside(lock(workspaceId), run(lock(other.workspaceId)))
      }))

    it.effect("accounts are locked in one order, whatever order they are named in", () =>
      Effect.gen(function*() {
        const { ledger, run, workspaceId } = yield* begin("order", 0n, open)
        const rest = yield* Effect.forEach([1, 2, 3, 4, 5, 6, 7], () => begin("order", 0n, open))
        const all = [workspaceId, ...rest.map((world) => world.workspaceId)]
        const takers = Array.from({ length: 8 }, (_, n) => run(ledger.lock(n % 2 === 0 ? all : all.toReversed())))
        assert.isTrue((yield* Effect.all(takers, together)).every((accounts) => accounts.length === 8))
      }))

    it.effect("whoever looks for open authorizations waits for whoever ends one, and finds the rest", () =>
      Effect.gen(function*() {
        const { ledger, post, reserve, run, spenders } = yield* begin("ending", 10n, open)
        const [one, two] = yield* spenders(2)
        const [a, b] = [yield* reserve(one!, 4n), yield* reserve(two!, 3n)]
        const look = run(ledger.openAuthorizations([two!, one!]))
        assert.deepStrictEqual(yield* after(post(Money.refund(a)), look, true), [a, b])
        assert.deepStrictEqual(yield* after(post(Money.refund(a)), look), [b])
      }))

    it.effect("an authorization that two end at the same time ends once", () =>
      Effect.gen(function*() {
        const { balances, ledger, post, reserve, run, spenders } = yield* begin("once", 10n, open)
        const [one, two] = yield* spenders(2)
        const [a, b] = [yield* reserve(one!, 4n), yield* reserve(two!, 3n)]
        const late = yield* after(post(Money.charge(a, 4n)), Effect.exit(run(post(Money.refund(a)))))
        assert.isTrue(Exit.hasDies(late))
        yield* after(post(Money.refund(b)), run(post(Money.charge(b, 1n))), true)
        assert.deepStrictEqual(yield* balances, balancesOf(5n, 0n, 5n))
        const states = (yield* ledger.authorizations([one!, two!])).map(({ state }) => state)
        assert.deepStrictEqual(states, ["charged", "charged"])
      }))

    it.effect("credit that two want at the same time is had by as many as it is enough for", () =>
      Effect.gen(function*() {
        const { balances, grantOf, post, run, spenders } = yield* begin("race", 10n, open)
        const rows = yield* spenders(6)
        const exits = yield* Effect.forEach(rows, (row) => Effect.exit(run(post(grantOf(row, 4n)))), together)
        assert.deepStrictEqual(exits.map(Exit.hasDies).toSorted(), [false, false, true, true, true, true])
        assert.deepStrictEqual(yield* balances, balancesOf(2n, 8n, 0n))
      }))

    it.effect("a grant that many give at the same time is given once, by whoever commits", () =>
      Effect.gen(function*() {
        const { balances, ledger, run, workspaceId } = yield* begin("grant", 0n, open)
        const grant = ledger.grant(workspaceId, 5n, "one")
        assert.isTrue(yield* after(grant, run(grant), true))
        const more = ledger.grant(workspaceId, 5n, "two")
        assert.isFalse(yield* after(more, run(more)))
        const third = ledger.grant(workspaceId, 5n, "three")
        const given = yield* Effect.all([third, third, third, third], together)
        assert.deepStrictEqual(given.toSorted(), [false, false, false, true])
        assert.deepStrictEqual(yield* balances, balancesOf(15n, 0n, 0n))
      }))
  })
