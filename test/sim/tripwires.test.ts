/** Nothing of the real world gets into a simulation unnoticed, and afterwards the world is as it was. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Hash, References } from "effect"
import { Kernel } from "../../src/sim/Kernel.ts"
import { spawn } from "../../src/sim/Process.ts"
import * as Tripwires from "../../src/sim/tripwires.ts"
import { withoutStacks } from "../../src/sim/withoutStacks.ts"

/** Touches something inside a simulation, and swallows whatever that throws, as a program may. */
const touching = (touch: () => unknown) => {
  const kernel = new Kernel({ seed: 1 })
  spawn(kernel, { name: "a", main: () => Effect.ignoreCause(Effect.sync(touch)) })
  return () => kernel.run()
}

const touches: Readonly<Record<string, () => unknown>> = {
  "Date.now": () => Date.now(),
  "new Date()": () => new Date(),
  "Date()": () => Date(),
  "Math.random": () => Math.random(),
  "performance.now": () => performance.now(),
  "setTimeout": () => setTimeout(() => {}, 0),
  "setInterval": () => setInterval(() => {}, 1_000),
  "setImmediate": () => setImmediate(() => {}),
  "queueMicrotask": () => queueMicrotask(() => {}),
  "process.nextTick": () => process.nextTick(() => {}),
  "process.hrtime": () => process.hrtime(),
  "process.hrtime.bigint": () => process.hrtime.bigint(),
  "crypto.getRandomValues": () => crypto.getRandomValues(new Uint8Array(1)),
  "crypto.randomUUID": () => crypto.randomUUID(),
  "crypto.subtle.digest": () => crypto.subtle.digest("SHA-256", new Uint8Array(1)),
  "fetch": () => fetch("http://127.0.0.1:1"),
  "AbortSignal.timeout": () => AbortSignal.timeout(1_000),
  "WeakRef": () => new WeakRef({}),
  "FinalizationRegistry": () => new FinalizationRegistry(() => {}),
  "Intl.DateTimeFormat": () => new Intl.DateTimeFormat("en").format(),
  "String.prototype.localeCompare": () => "a".localeCompare("b"),
  "Number.prototype.toLocaleString": () => (1_000).toLocaleString(),
  "Date.prototype.getHours": () => new Date(0).getHours(),
  "Date.prototype.toString": () => String(new Date(0)),
  "new Promise": () => new Promise(() => {}),
  "Promise.resolve": () => Promise.resolve(1),
  "an async function or a promise": async () => {}
}

describe("inside a simulation", () => {
  for (const [what, touch] of Object.entries(touches)) {
    it(`${what} ends the run by name, even where the program swallows it`, () => {
      assert.throws(touching(touch), Tripwires.Touched, `${what} was touched inside the simulation`)
    })
  }

  it("a fiber on another scheduler is found when it wants to be run by the real world", () => {
    assert.throws(touching(() => Effect.runFork(Effect.yieldNow)), Tripwires.Touched, "setImmediate")
  })

  it("a fiber that hides from the scheduler ends the run, even where the program swallows it", () => {
    const kernel = new Kernel({ seed: 1 })
    const hidden = Effect.provideService(Effect.yieldNow, References.PreventSchedulerYield, true)
    spawn(kernel, { name: "a", main: () => Effect.ignoreCause(hidden) })
    assert.throws(() => kernel.run(), "PreventSchedulerYield")
  })

  it("what a function is hashed by is nobody's randomness, also where errors have no stacks", () => {
    const hashing = touching(() => Hash.hash(() => 1))
    assert.deepStrictEqual(withoutStacks(hashing), { _tag: "Finished" })
    assert.throws(() => withoutStacks(touching(() => Math.random())), Tripwires.Touched, "Math.random")
  })

  it("values that only look like the real world are left alone", () => {
    const values = touching(() => {
      assert.strictEqual(new Date(0).toISOString(), "1970-01-01T00:00:00.000Z")
      assert.strictEqual(Date.parse("1970-01-01T00:00:01Z"), 1_000)
      assert.isTrue(new Date(0) instanceof Date)
      assert.isFalse({} instanceof Promise)
    })
    assert.deepStrictEqual(values(), { _tag: "Finished" })
  })
})

describe("afterwards", () => {
  it("every global is what it was, whether or not the run ended well", () => {
    const picture = () => [
      Date, Promise, Math.random, setTimeout, setInterval, setImmediate, queueMicrotask, fetch, performance.now,
      process.nextTick, process.hrtime, process.hrtime.bigint,
      crypto.getRandomValues, crypto.randomUUID, crypto.subtle.digest, AbortSignal.timeout,
      WeakRef, Intl.DateTimeFormat, String.prototype.localeCompare, Date.prototype.getHours
    ]
    const before = picture()
    touching(() => 1)()
    assert.throws(touching(() => Date.now()))
    assert.deepStrictEqual(picture(), before)
    assert.isFalse(Object.hasOwn(crypto, "randomUUID"))
    assert.isAbove(Date.now(), 0)
  })

  it("promises of the real world are not held against the next run", async () => {
    await Promise.resolve()
    assert.deepStrictEqual(touching(() => 1)(), { _tag: "Finished" })
  })

  it("one arming around many runs stays armed between them, and each run hears of its own", () => {
    const tripwires = Tripwires.arm()
    try {
      assert.throws(touching(() => Date.now()), Tripwires.Touched)
      assert.deepStrictEqual(touching(() => 1)(), { _tag: "Finished" })
      assert.isNull(tripwires.touched())
      assert.throws(() => Date.now(), Tripwires.Touched)
      assert.strictEqual(tripwires.touched()?.what, "Date.now")
    } finally {
      tripwires.disarm()
    }
    assert.isAbove(Date.now(), 0)
  })
})
