/** A worker's leases by its own clock alone: every port is a stand-in, and time is the test's. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Attempt } from "../../src/services/Attempt.ts"
import { type Claimed, Claims } from "../../src/services/Claims.ts"
import { Queue } from "../../src/services/Queue.ts"
import { defaultSettings, Settings } from "../../src/services/Settings.ts"
import { Settlement } from "../../src/services/Settlement.ts"
import * as Worker from "../../src/services/Worker.ts"
import { accepted } from "./operations.ts"
import { workspaceOf } from "./records.ts"

/** Runs a worker with one endless attempt. `renew` answers its renewals, by their number; returns whether it goes on. */
const working = Effect.fnUntraced(function*(renew: (call: number) => Effect.Effect<boolean>) {
  const operation = { ...accepted(workspaceOf("heartbeat")), state: "running" as const, epoch: 1 }
  const claimed: Claimed = { operation, work: { ...operation, input: null, plan: null } }
  const asked = yield* Deferred.make<void>()
  let [claims, renewals, going] = [0, 0, false]
  yield* Layer.build(Worker.layer.pipe(Layer.provide(Layer.mergeAll(
    Layer.succeed(Claims, {
      claim: () => Effect.succeed(claims++ === 0 ? [claimed] : []),
      takeOver: () => Effect.succeed([]),
      renew: (leases) => Effect.map(Effect.suspend(() => renew(++renewals)), (kept) => kept ? leases : []),
      lost: () => Effect.succeed([])
    }),
    Layer.succeed(Attempt, {
      run: () =>
        Effect.sync(() => going = true).pipe(
          Effect.andThen(Deferred.succeed(asked, undefined)),
          Effect.andThen(Effect.never),
          Effect.ensuring(Effect.sync(() => going = false))
        )
    }),
    Layer.succeed(Settlement, {
      end: () => Effect.never,
      endAll: () => Effect.succeed([]),
      freeze: () => Effect.never
    }),
    Layer.succeed(Queue, { send: () => Effect.void, subscribe: Effect.succeed(Effect.never) }),
    Layer.succeed(Settings, {
      ...defaultSettings,
      lease: Duration.seconds(30),
      fenceMargin: Duration.seconds(3),
      drainTimeout: Duration.zero
    })
  ))))
  yield* Deferred.await(asked)
  return { isGoing: () => going, renewals: () => renewals }
})

describe("Worker's leases", () => {
  it.effect("a renewal that gets no answer leaves time for another before the fence falls", () =>
    Effect.gen(function*() {
      const { isGoing, renewals } = yield* working((call) => call === 1 ? Effect.never : Effect.succeed(true))
      yield* TestClock.adjust("60 seconds")
      assert.isTrue(isGoing())
      assert.isAtLeast(renewals(), 4)
    }))

  it.effect("an attempt whose lease nobody renews is stopped before the lease is over", () =>
    Effect.gen(function*() {
      const { isGoing } = yield* working(() => Effect.never)
      yield* TestClock.adjust("26 seconds")
      assert.isTrue(isGoing())
      yield* TestClock.adjust("3 seconds")
      assert.isFalse(isGoing())
    }))

  it.effect("a lease that is neither renewed nor lost is held for as long as it lasts", () =>
    Effect.gen(function*() {
      const { isGoing } = yield* working((call) => Effect.succeed(call > 1))
      yield* TestClock.adjust("60 seconds")
      assert.isTrue(isGoing())
    }))
})
