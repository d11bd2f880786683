/** Credit from whoever runs the service: once for each reference, and in all within what JSON can say. */
import { assert, describe, layer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { issuedMax } from "../../src/domain/Ledger.ts"
import * as Grants from "../../src/services/Grants.ts"
import * as Pg from "../adapters/pgPorts.ts"
import * as Sim from "../sim/simPorts.ts"
import { balancesOf, begin, type Ports } from "./money.ts"
import type { Open } from "./operations.ts"

const suite = <R, E>(name: string, ports: Layer.Layer<Ports | R, E>, open: Open<R>) =>
  layer(ports, { excludeTestServices: true, timeout: "60 seconds" })(name, (it) => {
    it.effect("the grant that goes beyond is refused, and grants nothing; what fits is granted, once for its reference", () =>
      Effect.gen(function*() {
        const { balances, kinds, workspaceId } = yield* begin("beyond", issuedMax - 10n, open)
        const give = (amount: bigint, reference: string) => Grants.give(workspaceId, amount, reference)
        const refused = yield* Effect.flip(give(11n, "more"))
        assert.include(refused, {
          _tag: "IssuedTooMuch",
          message: `workspace ${workspaceId} was issued 9007199254740981 credits, and may be issued 9007199254740991 in all: ` +
            "nothing was granted"
        })
        assert.deepStrictEqual(yield* balances, balancesOf(issuedMax - 10n, 0n, 0n))
        assert.isNull(yield* give(10n, "more"))
        assert.strictEqual(yield* give(10n, "more"), 10n)
        assert.strictEqual(yield* give(11n, "more"), 10n)
        assert.strictEqual((yield* Effect.flip(give(1n, "one"))).message.slice(-19), "nothing was granted")
        assert.deepStrictEqual(yield* kinds, [`grant ${issuedMax - 10n}`, "grant 10"])
        assert.deepStrictEqual(yield* balances, balancesOf(issuedMax, 0n, 0n))
      }))

    it.effect("grants at the same time are added up one after the other", () =>
      Effect.gen(function*() {
        const { balances, workspaceId } = yield* begin("together", issuedMax - 10n, open)
        const told = { onFailure: ({ _tag }: { readonly _tag: string }) => _tag, onSuccess: () => "granted" }
        const give = (reference: string) => Effect.match(Grants.give(workspaceId, 4n, reference), told)
        const given = yield* Effect.forEach(["a", "b", "c", "d"], give, { concurrency: "unbounded" })
        assert.deepStrictEqual(given.toSorted(), ["IssuedTooMuch", "IssuedTooMuch", "granted", "granted"])
        assert.deepStrictEqual(yield* balances, balancesOf(issuedMax - 2n, 0n, 0n))
      }))
  })

describe("credit is granted", () => {
  suite("on Postgres", Pg.postgres, Pg.open)
  suite("in the simulation", Sim.simulated("grants"), Sim.open)
})
