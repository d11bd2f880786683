/** What every `Transaction` promises: everything inside becomes durable at once, or nothing does, whatever ends it. */
import { assert, layer } from "@effect/vitest"
import { Cause, Context, Deferred, Effect, Exit, Fiber, type Layer } from "effect"
import { Ledger } from "../../src/services/Ledger.ts"
import { Store } from "../../src/services/Store.ts"
import { Transaction } from "../../src/services/Transaction.ts"
import * as Interleaving from "./interleaving.ts"
import { bare, done, type Open } from "./operations.ts"
import { workspaceOf } from "./records.ts"

type Ports = Ledger | Store | Transaction

/** A workspace, things to write into it through two ports, and what was written. */
const begin = Effect.fnUntraced(function*<R>(test: string, open: Open<R>) {
  const workspaceId = workspaceOf(test)
  yield* open(workspaceId)
  const ledger = yield* Ledger
  const { operations } = yield* Store
  const { run } = yield* Transaction
  const grant = (amount: bigint) => ledger.grant(workspaceId, amount, `grant ${amount}`)
  const accept = Effect.suspend(() => operations.insert([bare(done(workspaceId))]))
  const written = Effect.gen(function*() {
    const { issued } = yield* ledger.balances(workspaceId)
    const page = { workspaceId, state: null, kind: null, scope: {}, before: null, limit: 100 }
    return { issued, accepted: (yield* operations.list(page)).length }
  })
  return { ledger, run, workspaceId, grant, accept, written }
})

const nothing = { issued: 0n, accepted: 0 }

export const suite = <R, E>(name: string, ports: Layer.Layer<Ports | R, E>, open: Open<R>) =>
  layer(ports, { excludeTestServices: true, timeout: "60 seconds" })(`Transaction: ${name}`, (it) => {
    it.effect("what is written inside is seen inside, is durable when it returns, and comes with the result", () =>
      Effect.gen(function*() {
        const { accept, grant, run, written } = yield* begin("durable", open)
        const inside = yield* run(Effect.gen(function*() {
          const first = [yield* grant(1n), yield* written]
          yield* accept
          return [...first, yield* written]
        }))
        assert.deepStrictEqual(inside, [true, { issued: 1n, accepted: 0 }, { issued: 1n, accepted: 1 }])
        assert.deepStrictEqual(yield* written, { issued: 1n, accepted: 1 })
        assert.strictEqual(yield* run(Effect.succeed("nothing at all")), "nothing at all")
      }))

    it.effect("a failure passes through as it is, and leaves nothing", () =>
      Effect.gen(function*() {
        const { accept, grant, run, written } = yield* begin("failure", open)
        const failure = { _tag: "No", why: "because" } as const
        const told = yield* Effect.flip(run(Effect.andThen(Effect.andThen(grant(1n), accept), Effect.fail(failure))))
        assert.strictEqual(told, failure)
        assert.deepStrictEqual(yield* written, nothing)
        assert.isTrue(yield* run(grant(1n)), "the reference was not used up")
      }))

    it.effect("a defect passes through as it is, and leaves nothing", () =>
      Effect.gen(function*() {
        const { accept, grant, run, written } = yield* begin("defect", open)
        const bug = new Error("bug")
        const exit = yield* Effect.exit(run(Effect.andThen(Effect.andThen(grant(1n), accept), Effect.die(bug))))
        assert.isTrue(Exit.isFailure(exit) && Cause.squash(exit.cause) === bug)
        assert.deepStrictEqual(yield* written, nothing)
      }))

    it.effect("what a port refuses is a defect that leaves nothing, whatever was written before it", () =>
      Effect.gen(function*() {
        const { accept, grant, ledger, run, written } = yield* begin("refused", open)
        const refused = ledger.grant(workspaceOf("nowhere"), 1n, "one")
        assert.isTrue(Exit.hasDies(yield* Effect.exit(run(Effect.all([grant(1n), accept, refused])))))
        assert.deepStrictEqual(yield* written, nothing)
        yield* run(Effect.all([grant(1n), accept]))
        assert.deepStrictEqual(yield* written, { issued: 1n, accepted: 1 })
      }))

    it.effect("nobody who swallows what a port refused is told that it was committed", () =>
      Effect.gen(function*() {
        const { accept, grant, ledger, run, written } = yield* begin("swallowed", open)
        const refused = Effect.exit(ledger.grant(workspaceOf("nowhere"), 1n, "one"))
        for (const after of [Effect.void, Effect.ignoreCause(accept)]) {
          assert.isTrue(Exit.isFailure(yield* Effect.exit(run(Effect.all([grant(1n), refused, after])))))
          assert.deepStrictEqual(yield* written, nothing)
        }
      }))

    it.effect("an interruption leaves nothing, and the next transaction is not disturbed", () =>
      Effect.gen(function*() {
        const { accept, grant, run, written } = yield* begin("interrupted", open)
        const inside = yield* Deferred.make<void>()
        const steps = [grant(1n), accept, Deferred.succeed(inside, undefined), Effect.never]
        const fiber = yield* Effect.forkScoped(run(Effect.all(steps, { discard: true })))
        yield* Deferred.await(inside)
        yield* Fiber.interrupt(fiber)
        assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
        assert.deepStrictEqual(yield* written, nothing)
        yield* run(grant(1n))
        assert.deepStrictEqual(yield* written, { issued: 1n, accepted: 0 })
      }))

    it.effect("one inside another joins it: both are durable, or neither", () =>
      Effect.gen(function*() {
        const { accept, grant, run, written } = yield* begin("joined", open)
        yield* Effect.flip(run(Effect.andThen(run(Effect.andThen(grant(1n), run(accept))), Effect.fail("no"))))
        assert.deepStrictEqual(yield* written, nothing)
        yield* Effect.flip(run(Effect.andThen(grant(1n), run(Effect.andThen(accept, Effect.fail("no"))))))
        assert.deepStrictEqual(yield* written, nothing)
        assert.isTrue(yield* run(Effect.tap(grant(1n), run(accept))))
        assert.deepStrictEqual(yield* written, { issued: 1n, accepted: 1 })
      }))

    it.effect("one whose inner one failed never commits the rest", () =>
      Effect.gen(function*() {
        const { accept, grant, run, written } = yield* begin("inner", open)
        for (const end of [Effect.fail("no"), Effect.die("bug")]) {
          const inner = Effect.exit(run(Effect.andThen(grant(1n), end)))
          assert.isTrue(Exit.isFailure(yield* Effect.exit(run(Effect.andThen(inner, accept)))))
          assert.deepStrictEqual(yield* written, nothing)
        }
      }))

    it.effect("one after another are two: what the first committed stays when the second fails", () =>
      Effect.gen(function*() {
        const { accept, grant, run, written } = yield* begin("apart", open)
        yield* Effect.exit(Effect.andThen(run(grant(1n)), run(Effect.andThen(accept, Effect.fail("no")))))
        assert.deepStrictEqual(yield* written, { issued: 1n, accepted: 0 })
      }))

    it.effect("whatever it runs keeps the services it was given", () =>
      Effect.gen(function*() {
        const { run } = yield* begin("services", open)
        class Name extends Context.Service<Name, string>()("indelible/test/Name") {}
        assert.strictEqual(yield* Effect.provideService(run(Name), Name, "Ana"), "Ana")
      }))
  })

/** What it promises when several are open. */
export const concurrentSuite = <R, E>(name: string, ports: Layer.Layer<Ports | R, E>, open: Open<R>) =>
  layer(ports, { excludeTestServices: true, timeout: "60 seconds" })(`Transaction together: ${name}`, (it) => {
    it.effect("nobody else sees what is not committed", () =>
      Effect.gen(function*() {
        const { accept, grant, run, written } = yield* begin("isolated", open)
        const both = Effect.all([grant(1n), accept])
        const seen = yield* Interleaving.beside(both, Effect.all([written, run(written)]))
        assert.deepStrictEqual(seen, [nothing, nothing])
        assert.deepStrictEqual(yield* written, { issued: 1n, accepted: 1 })
      }))

    it.effect("each statement sees what others have committed before it", () =>
      Effect.gen(function*() {
        const { accept, run, written } = yield* begin("committed", open)
        const [looked, over] = [yield* Deferred.make<number>(), yield* Deferred.make<void>()]
        const seen = Effect.map(written, ({ accepted }) => accepted)
        const look = Effect.flatMap(seen, (count) => Deferred.succeed(looked, count))
        const steps = [look, Deferred.await(over), seen] as const
        const reader = yield* Effect.forkScoped(run(Effect.all(steps)))
        assert.strictEqual(yield* Deferred.await(looked), 0)
        yield* run(accept)
        yield* Deferred.succeed(over, undefined)
        assert.strictEqual((yield* Fiber.join(reader))[2], 1)
      }))

    it.effect("many at once are many: each has its own end", () =>
      Effect.gen(function*() {
        const { accept, run, written } = yield* begin("many", open)
        const one = (n: number) => run(Effect.andThen(accept, n % 2 === 0 ? Effect.succeed(n) : Effect.fail(n)))
        const all = Array.from({ length: 30 }, (_, n) => Effect.exit(one(n)))
        const ends = yield* Effect.all(all, { concurrency: "unbounded" })
        assert.strictEqual(ends.filter(Exit.isSuccess).length, 15)
        assert.deepStrictEqual(yield* written, { issued: 0n, accepted: 15 })
      }))
  })
