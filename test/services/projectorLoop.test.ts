/** The projector in the background: at work when there is work, whoever tells it or not, and gone with its scope. */
import { assert, it } from "@effect/vitest"
import { Duration, Effect, Latch, Layer, Queue as Mailbox } from "effect"
import { Projector } from "../../src/services/Projector.ts"
import { Queue, type WakeUp } from "../../src/services/Queue.ts"
import { defaultSettings, type SettingsShape } from "../../src/services/Settings.ts"
import { Store } from "../../src/services/Store.ts"
import { OutcomeUnknown } from "../../src/services/Transaction.ts"
import { VectorIndex } from "../../src/services/VectorIndex.ts"
import { Faulty, layer, open } from "./faulty.ts"
import * as Models from "./models.ts"
import { add, added, workspaceOf } from "./records.ts"

const workspaceId = workspaceOf("loop")

const write = (count: number) =>
  Effect.flatMap(Store, ({ memories }) =>
    memories.write(Array.from({ length: count }, () => add(added(workspaceId, "tea")))))

/** How many memories the index knows. */
const indexed = Effect.gen(function*() {
  const index = yield* VectorIndex
  return (yield* index.search({ workspaceId, scope: {}, vector: Models.embed("tea", 32), limit: 1_000 })).length
})

/** A queue in memory. */
const queue = Layer.sync(Queue, () => {
  const subscribers = new Set<Mailbox.Queue<WakeUp>>()
  return Queue.of({
    send: (wakeUps) => Effect.forEach(subscribers, (one) => Mailbox.offerAll(one, wakeUps), { discard: true }),
    subscribe: Effect.map(
      Effect.acquireRelease(
        Effect.tap(Mailbox.unbounded<WakeUp>(), (mailbox) => Effect.sync(() => subscribers.add(mailbox))),
        (mailbox) => Effect.sync(() => subscribers.delete(mailbox))
      ),
      Mailbox.takeAll
    )
  })
})

const running = (settings: Partial<SettingsShape>) =>
  Layer.mergeAll(queue, Projector.layer).pipe(Layer.provideMerge(layer({ ...defaultSettings, ...settings })))

const never = Duration.hours(1)

/** Opens when nothing is due any more, whoever asks. */
const idle = Effect.gen(function*() {
  const faulty = yield* Faulty
  const { claimProjections } = (yield* Store).memories
  const latch = yield* Latch.make()
  faulty.memories = {
    ...faulty.memories,
    claimProjections: (limit, leaseMs) =>
      Effect.tap(claimProjections(limit, leaseMs), (claimed) => claimed.length === 0 ? latch.open : latch.close)
  }
  return latch
})

/** Opens when something was marked as done. */
const finished = Effect.fnUntraced(function*(faulty: Faulty["Service"]) {
  const { finishProjections } = (yield* Store).memories
  const latch = yield* Latch.make()
  faulty.memories = {
    ...faulty.memories,
    finishProjections: (done) => Effect.tap(finishProjections(done), () => done.length > 0 ? latch.open : Effect.void)
  }
  return latch
})

it.live("works off everything that is there when it starts, batch by batch, without waiting", () =>
  Effect.gen(function*() {
    yield* open(workspaceId)
    yield* write(6)
    const done = yield* idle
    yield* Layer.build(Projector.layerLoop)
    yield* done.await
    assert.strictEqual(yield* indexed, 6)
  }).pipe(Effect.provide(running({ projectionBatchSize: 2, pollInterval: never }))))

it.live("wakes at a hint of a projection", () =>
  Effect.gen(function*() {
    yield* open(workspaceId)
    const faulty = yield* Faulty
    const done = yield* idle
    yield* Layer.build(Projector.layerLoop)
    yield* done.await
    const projected = yield* finished(faulty)
    yield* write(1)
    yield* (yield* Queue).send([{ _tag: "Work" }])
    yield* (yield* Queue).send([{ _tag: "Projection" }, { _tag: "Projection" }])
    yield* projected.await
    assert.strictEqual(yield* indexed, 1)
  }).pipe(Effect.provide(running({ pollInterval: never }))))

it.live("needs no hint, no answer from the database the first time, and no luck the second", () =>
  Effect.gen(function*() {
    yield* open(workspaceId)
    const faulty = yield* Faulty
    const { claimProjections } = (yield* Store).memories
    let claims = 0
    faulty.memories = {
      claimProjections: (limit, leaseMs) =>
        ++claims === 1
          ? Effect.fail(new OutcomeUnknown({ reason: "connection" }))
          : claims === 2
          ? Effect.die(new Error("bad luck"))
          : claimProjections(limit, leaseMs)
    }
    const projected = yield* finished(faulty)
    yield* Layer.build(Projector.layerLoop)
    yield* write(1)
    yield* projected.await
    assert.strictEqual(yield* indexed, 1)
  }).pipe(Effect.provide(running({ pollInterval: Duration.millis(10) }))))

it.live("ends with its scope", () =>
  Effect.gen(function*() {
    yield* open(workspaceId)
    const faulty = yield* Faulty
    const { turn } = yield* Projector
    const done = yield* idle
    yield* Effect.scoped(Effect.andThen(Layer.build(Projector.layerLoop), done.await))
    const { claimProjections } = (yield* Store).memories
    let claims = 0
    faulty.memories = {
      claimProjections: (limit, leaseMs) => {
        claims++
        return claimProjections(limit, leaseMs)
      }
    }
    yield* write(1)
    yield* (yield* Queue).send([{ _tag: "Projection" }])
    assert.strictEqual(yield* turn, 1)
    assert.strictEqual(claims, 1)
  }).pipe(Effect.provide(running({ pollInterval: Duration.millis(1) }))))
