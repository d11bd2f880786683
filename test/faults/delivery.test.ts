/** Faults 4 and 6: the delivery never comes, and the projection fails. */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Ledger } from "../../src/services/Ledger.ts"
import { Memories } from "../../src/services/Memories.ts"
import { Queue } from "../../src/services/Queue.ts"
import { Repair } from "../../src/services/Repair.ts"
import { assertHealthy } from "../audit.ts"
import { fact, Script } from "../scripted.ts"
import * as World from "../world.ts"

/** A queue that swallows every hint. */
const deaf = Layer.succeed(Queue, Queue.of({ send: () => Effect.void, subscribe: Effect.succeed(Effect.never) }))

describe("fault 4: the queue delivery is dropped", () => {
  layer(World.layer(World.testSettings, deaf), { excludeTestServices: true })("every one of them", (it) => {
    it.effect("polling finds the durable operation, and the operations behind it in its lane", () =>
      Effect.gen(function*() {
        yield* World.open(10n)
        yield* World.startWorker()
        const receipts = yield* Effect.forEach(["one", "two", "three"], (name) => World.accept(name))
        const events = yield* Effect.forEach(receipts, (receipt) => World.projected(receipt.eventId))
        assert.deepStrictEqual(events.map((event) => event.status), ["succeeded", "succeeded", "succeeded"])
        assert.deepStrictEqual(events.map((event) => event.projection), ["ready", "ready", "ready"])
        yield* assertHealthy
      }))

    it.effect("repair mends a lane whose hand-over was lost", () =>
      Effect.gen(function*() {
        const sql = yield* PgClient.PgClient
        const receipt = yield* World.accept("stranded", World.body("I am stranded", "zoe"))
        yield* sql`update operations set ready = false where state = 'pending'`
        const { lanesMended } = yield* (yield* Repair).sweep
        assert.strictEqual(lanesMended, 1)
        yield* World.startWorker()
        assert.strictEqual((yield* World.finished(receipt.eventId)).status, "succeeded")
        yield* assertHealthy
      }).pipe(Effect.provide(Repair.layer)))
  })
})

describe("fault 6: the projection fails", () => {
  layer(World.layer(), { excludeTestServices: true })("on a real Postgres", (it) => {
    it.effect("the operation has succeeded all the same, and the retry repairs the record without copying it", () =>
      Effect.gen(function*() {
        yield* World.open(10n)
        const script = yield* Script
        const memories = yield* Memories
        script.extract = () => Effect.succeed([fact("User plays the cello.")])
        script.indexDown = true
        yield* World.startWorker()
        const { eventId } = yield* World.accept("cello", World.body("I play the cello"))
        const event = yield* World.finished(eventId)
        assert.strictEqual(event.status, "succeeded")
        assert.deepStrictEqual(yield* (yield* Ledger).balances(World.workspace), {
          available: 8n,
          reserved: 0n,
          consumed: 2n,
          issued: 10n
        })
        const query = { workspaceId: World.workspace, scope: { user_id: "ana" }, metadata: {}, query: "cello", limit: 5 }
        const unprojected = yield* memories.search(query)
        assert.deepStrictEqual(unprojected.hits.map((hit) => hit.memory.text), ["User plays the cello."])
        assert.isFalse(unprojected.semantic)
        const failing = yield* World.untilEvent(eventId, (event) => event.projection === "failing")
        assert.strictEqual(failing.status, "succeeded")

        script.indexDown = false
        const ready = yield* World.projected(eventId)
        assert.strictEqual(ready.projection, "ready")
        assert.isTrue((yield* memories.search(query)).semantic)
        assert.strictEqual(script.calls, 1)
        assert.strictEqual(yield* World.count("memories"), 1)
        assert.strictEqual(yield* World.count("memory_history"), 1)
        assert.strictEqual(yield* World.count("projections"), 0)
        yield* assertHealthy
      }))
  })
})
