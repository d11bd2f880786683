/** The clocks of simulated machines are as wrong as real ones, and monotonic time still only moves on. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { HostClock, type HostClockOptions } from "../../src/sim/HostClock.ts"
import { Kernel } from "../../src/sim/Kernel.ts"
import { spawn } from "../../src/sim/Process.ts"

const read = Effect.all({
  wall: Clock.currentTimeMillis,
  wallNanos: Clock.currentTimeNanos,
  monotonic: Clock.monotonicTimeNanos
})

/** Reads a clock, sleeps an hour by it, and reads it again; also tells how long that took in the world. */
const hour = (options: HostClockOptions) => {
  const kernel = new Kernel({ seed: 1 })
  const clock = new HostClock(kernel, options)
  const readings: Array<{ readonly wall: number; readonly wallNanos: bigint; readonly monotonic: bigint }> = []
  const reading = Effect.tap(read, (one) => Effect.sync(() => readings.push(one)))
  const main = () => reading.pipe(Effect.andThen(Effect.sleep("1 hour")), Effect.andThen(reading))
  spawn(kernel, { name: "a", clock, main })
  kernel.run()
  const [before, after] = readings
  return { kernel, before: before!, after: after!, world: kernel.now }
}

const hourMs = 3_600_000

describe("a clock", () => {
  it("that is exact shows the time of the world", () => {
    const { after, before, kernel, world } = hour({})
    assert.deepStrictEqual([before.wall, after.wall, world], [kernel.epochMs, kernel.epochMs + hourMs, hourMs])
    assert.strictEqual(after.wallNanos, BigInt(after.wall) * 1_000_000n)
    assert.strictEqual(after.monotonic - before.monotonic, BigInt(hourMs) * 1_000_000n)
  })

  it("that is off is off by that much, and sleeps as long as any other", () => {
    const { before, kernel, world } = hour({ offsetMs: -90_000 })
    assert.deepStrictEqual([before.wall, world], [kernel.epochMs - 90_000, hourMs])
  })

  it("that runs fast wakes early by the world and never early by itself", () => {
    const { after, before, world } = hour({ driftPpm: 100_000 })
    assert.isAtMost(Math.abs(world - hourMs / 1.1), 0.001)
    assert.isAtLeast(Number(after.monotonic - before.monotonic), hourMs * 1_000_000)
    assert.strictEqual(after.wall - before.wall, hourMs)
  })

  it("that runs slow wakes late by the world and never early by itself", () => {
    for (const driftPpm of [-1, -333, -99_999, -999_999]) {
      const { after, before, world } = hour({ driftPpm })
      assert.isAbove(world, hourMs)
      assert.isAtLeast(Number(after.monotonic - before.monotonic), hourMs * 1_000_000)
    }
  })

  it("is set back in the middle of a sleep: wall time goes back, monotonic time and the sleep do not", () => {
    const kernel = new Kernel({ seed: 1 })
    const clock = new HostClock(kernel)
    const seen: Array<number> = []
    const readings = Effect.gen(function*() {
      let last = yield* Clock.monotonicTimeNanos
      for (let turn = 0; turn < 5; turn++) {
        yield* Effect.sleep(10)
        seen.push((yield* Clock.currentTimeMillis) - kernel.epochMs)
        const now = yield* Clock.monotonicTimeNanos
        assert.isTrue(now - last >= 10_000_000n)
        last = now
      }
    })
    spawn(kernel, { name: "a", clock, main: () => readings })
    kernel.after(25, "set back", () => clock.step(-1_000))
    kernel.after(35, "runs slow", () => clock.drift(-500_000))
    kernel.run()
    assert.deepStrictEqual(seen, [10, 20, -970, -960, -950])
    // From 35 on each of its milliseconds takes two of the world's, also in the sleep that had begun.
    assert.strictEqual(kernel.now, 65)
  })

  it("never goes back when it is told to run at other rates", () => {
    const kernel = new Kernel({ seed: 1 })
    const clock = new HostClock(kernel)
    let last = clock.monotonicMicros
    spawn(kernel, { name: "lives", main: () => Effect.forever(Effect.sleep(1_000)) })
    for (let turn = 0; turn < 500; turn++) {
      const key = kernel.key.of(turn)
      kernel.run({ forMs: key.of("for").between(0, 5_000) / 1_000 })
      clock.drift(key.of("ppm").between(-900_000, 900_000))
      assert.isAtLeast(clock.monotonicMicros, last)
      last = clock.monotonicMicros
    }
    assert.throws(() => clock.drift(-1_000_000), RangeError)
  })

  it("of a machine stays wrong over a restart", () => {
    const kernel = new Kernel({ seed: 1 })
    const seen: Array<number> = []
    const main = () => Effect.map(Clock.currentTimeMillis, (ms) => seen.push(ms - kernel.epochMs))
    const process = spawn(kernel, { name: "a", main })
    process.clock.step(-5_000)
    kernel.run()
    process.restart()
    kernel.run()
    assert.deepStrictEqual(seen, [-5_000, -5_000])
  })

  it("lets those who sleep for no time go after others, and those who sleep for ever for ever", () => {
    const kernel = new Kernel({ seed: 1 })
    spawn(kernel, { name: "a", main: () => Effect.sleep(0) })
    spawn(kernel, { name: "b", main: () => Effect.sleep(Infinity) })
    assert.deepStrictEqual(kernel.run(), { _tag: "Deadlock", waiting: ["b#1"] })
    assert.strictEqual(kernel.now, 0)
  })
})
