/** What every `Queue` promises within one process. Hints that nobody sent are lawful, and so nothing counts them. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, type Layer } from "effect"
import type { OperationRef } from "../../src/domain/Ids.ts"
import { Queue, type WakeUp } from "../../src/services/Queue.ts"
import { operationId, workspaceOf } from "./records.ts"

const refs = (count: number): ReadonlyArray<OperationRef> => {
  const workspaceId = workspaceOf("queue")
  return Array.from({ length: count }, () => ({ workspaceId, id: operationId() }))
}

const changed = (operations: ReadonlyArray<OperationRef>): WakeUp => ({ _tag: "Changed", operations })

/** Goes on looking until it has heard of all of these, and what else it was told to wait for. */
const hears = Effect.fnUntraced(function*(
  hints: Effect.Effect<ReadonlyArray<WakeUp>>,
  wanted: ReadonlyArray<OperationRef>,
  ...tags: ReadonlyArray<WakeUp["_tag"]>
) {
  const missing = new Map(wanted.map((ref) => [ref.id, ref.workspaceId]))
  const silent = new Set(tags)
  while (missing.size + silent.size > 0) {
    const wakeUps = yield* hints
    assert.isAbove(wakeUps.length, 0, "a look that is over has found something")
    for (const wakeUp of wakeUps) {
      silent.delete(wakeUp._tag)
      if (wakeUp._tag !== "Changed") continue
      for (const { id, workspaceId } of wakeUp.operations) if (missing.get(id) === workspaceId) missing.delete(id)
    }
  }
})

export const suite = <E>(name: string, ports: Layer.Layer<Queue, E>) =>
  layer(ports, { excludeTestServices: true, timeout: "60 seconds" })(`Queue: ${name}`, (it) => {
    it.effect("a hint reaches everybody who is subscribed, with everything it says", () =>
      Effect.gen(function*() {
        const queue = yield* Queue
        const subscribers = [yield* queue.subscribe, yield* queue.subscribe, yield* queue.subscribe]
        const some = refs(3)
        yield* queue.send([{ _tag: "Work" }, { _tag: "Projection" }, changed(some)])
        yield* Effect.forEach(subscribers, (hints) => hears(hints, some, "Work", "Projection"))
      }))

    it.effect.each(["Work", "Projection"] as const)("a hint of %s alone wakes whoever waits", (tag) =>
      Effect.gen(function*() {
        const queue = yield* Queue
        const waiting = yield* Effect.forkScoped(hears(yield* queue.subscribe, [], tag))
        yield* queue.send([{ _tag: tag }])
        yield* Fiber.join(waiting)
      }))

    it.effect("hints that came while nobody looked are all found at the next look", () =>
      Effect.gen(function*() {
        const queue = yield* Queue
        const hints = yield* queue.subscribe
        const all = refs(20)
        yield* Effect.forEach(all, (ref) => queue.send([changed([ref])]))
        yield* hears(hints, all)
      }))

    it.effect("a hint of many operations arrives whole", () =>
      Effect.gen(function*() {
        const queue = yield* Queue
        const hints = yield* queue.subscribe
        const all = refs(1_000)
        yield* queue.send([changed(all.slice(0, 700)), changed(all.slice(700)), changed([])])
        yield* hears(hints, all)
      }))

    it.effect("nobody is held up by a subscriber who never looks, and he finds the newest when he does", () =>
      Effect.gen(function*() {
        const queue = yield* Queue
        const [idle, awake] = [yield* queue.subscribe, yield* queue.subscribe]
        yield* Effect.forEach(refs(10_000), (ref) => queue.send([changed([ref])]), { discard: true })
        const last = refs(1)
        yield* queue.send([changed(last)])
        yield* hears(awake, last)
        yield* hears(idle, last)
      }))

    it.effect("a wait that was given up loses nothing of what comes later", () =>
      Effect.gen(function*() {
        const queue = yield* Queue
        const hints = yield* queue.subscribe
        const never = yield* Effect.forkScoped(hears(hints, refs(1)))
        const some = refs(1)
        yield* queue.send([{ _tag: "Work" }])
        yield* Fiber.interrupt(never)
        yield* queue.send([changed(some)])
        yield* hears(hints, some)
      }))

    it.effect("a subscription ends with its scope, and the others go on", () =>
      Effect.gen(function*() {
        const queue = yield* Queue
        const stays = yield* queue.subscribe
        yield* Effect.scoped(Effect.flatMap(queue.subscribe, (hints) => hears(hints, [])))
        const some = refs(1)
        yield* queue.send([changed(some)])
        yield* hears(stays, some)
      }))

    it.effect("a hint to nobody, and no hint at all, do no harm", () =>
      Effect.gen(function*() {
        const queue = yield* Queue
        yield* queue.send([])
        yield* queue.send([{ _tag: "Work" }, changed(refs(2))])
        const hints = yield* queue.subscribe
        const some = refs(1)
        yield* queue.send([changed(some)])
        yield* hears(hints, some)
      }))
  })
