/** Faults 1 and 2: the same request again at every moment, and the same key with something else. */
import { assert, describe, layer } from "@effect/vitest"
import { Deferred, Effect, Result } from "effect"
import { normaliseAdd } from "../../src/domain/Command.ts"
import { derivedMemoryId } from "../../src/domain/Digest.ts"
import { Commands } from "../../src/services/Commands.ts"
import { Ledger } from "../../src/services/Ledger.ts"
import { Retries } from "../../src/services/Retries.ts"
import { assertHealthy } from "../audit.ts"
import { fact, Script } from "../scripted.ts"
import * as World from "../world.ts"

describe("fault 1: the same request is repeated before completion, during execution and after completion", () => {
  layer(World.layer(), { excludeTestServices: true })("on a real Postgres", (it) => {
    it.effect("every repeat is answered with the original operation, and there is one set of records and one charge", () =>
      Effect.gen(function*() {
        const workspace = yield* World.open(10n)
        const script = yield* Script
        const asked = yield* Deferred.make<void>()
        const answer = yield* Deferred.make<void>()
        script.extract = () =>
          Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(answer)).pipe(
            Effect.as([fact("User lives in Paris."), fact("User has two cats.")])
          )

        const first = yield* World.accept("same", World.body("I live in Paris and have two cats"))
        const before = yield* World.accept("same", World.body("I live in Paris and have two cats"))
        const worker = yield* World.startWorker()
        yield* Deferred.await(asked)
        const during = yield* World.accept("same", World.body("I live in Paris and have two cats"))
        yield* Deferred.succeed(answer, undefined)
        const event = yield* World.finished(first.eventId)
        const after = yield* World.accept("same", World.body("I live in Paris and have two cats"))
        yield* worker.stop

        assert.isFalse(first.replayed)
        assert.deepStrictEqual([before, during, after].map((receipt) => receipt.replayed), [true, true, true])
        assert.deepStrictEqual(
          [before, during, after].map((receipt) => receipt.eventId),
          [first.eventId, first.eventId, first.eventId]
        )
        assert.deepStrictEqual([before.status, during.status, after.status], ["pending", "running", "succeeded"])
        assert.deepStrictEqual(event.results.map((result) => result.memory), ["User lives in Paris.", "User has two cats."])
        assert.strictEqual(script.calls, 1)
        const balances = yield* (yield* Ledger).balances(workspace)
        assert.deepStrictEqual(balances, { available: 8n, reserved: 0n, consumed: 2n, issued: 10n })
        yield* assertHealthy
      }))

    it.effect("two hundred first requests at once make one operation and one reservation", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        const before = yield* ledger.balances(World.workspace)
        const receipts = yield* Effect.forEach(
          Array.from({ length: 200 }),
          () => World.accept("crowd", World.body("I like tea")),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(new Set(receipts.map((receipt) => receipt.eventId)).size, 1)
        assert.strictEqual(receipts.filter((receipt) => !receipt.replayed).length, 1)
        const after = yield* ledger.balances(World.workspace)
        assert.strictEqual(after.reserved - before.reserved, 2n)
        yield* assertHealthy
      }))
  })
})

describe("fault 2: the key is reused with a changed payload", () => {
  layer(World.layer(), { excludeTestServices: true })("on a real Postgres", (it) => {
    it.effect("another body, another mode and another kind are conflicts, and nothing is reserved for them", () =>
      Effect.gen(function*() {
        yield* World.open(3n)
        const commands = yield* Commands
        const ledger = yield* Ledger
        const original = yield* World.accept("once", World.body("I moved to Berlin"))
        const verbatim = normaliseAdd({ ...World.body("I moved to Berlin"), infer: false })
        const refused = yield* Effect.forEach([
          World.accept("once", World.body("I moved to Paris")),
          World.accept("once", World.body("I moved to Berlin", "ben")),
          World.accept("once", { ...World.body("I moved to Berlin"), instructions: "only pets" }),
          commands.add(World.workspace, World.key("once"), verbatim),
          commands.update(World.workspace, World.key("once"), {
            kind: "memory.update",
            memoryId: derivedMemoryId(original.eventId, 0),
            text: "I moved to Berlin",
            metadata: null,
            expectedVersion: null
          }),
          (yield* Retries).retry({ workspaceId: World.workspace, id: original.eventId }, World.key("once"))
        ], (attempt) => Effect.result(attempt as Effect.Effect<unknown, unknown>))

        for (const result of refused) {
          assert.isTrue(Result.isFailure(result))
          const error = (result as Result.Failure<unknown, { readonly _tag: string; readonly operationId: string }>).failure
          assert.strictEqual(error._tag, "IdempotencyConflict")
          assert.strictEqual(error.operationId, original.eventId)
        }
        const balances = yield* ledger.balances(World.workspace)
        assert.deepStrictEqual(balances, { available: 1n, reserved: 2n, consumed: 0n, issued: 3n })
        yield* assertHealthy
      }))

    it.effect("a conflict is decided against the stored command even when the purse is empty", () =>
      Effect.gen(function*() {
        const refused = yield* Effect.flip(World.accept("once", World.body("I moved to Rome")))
        assert.strictEqual(refused._tag, "IdempotencyConflict")
        const poor = yield* Effect.flip(World.accept("twice", World.body("I moved to Rome")))
        assert.strictEqual(poor._tag, "InsufficientCredit")
        yield* (yield* Ledger).grant(World.workspace, 5n, "top-up")
        const receipt = yield* World.accept("twice", World.body("I moved to Rome"))
        assert.isFalse(receipt.replayed)
        yield* assertHealthy
      }))
  })
})
