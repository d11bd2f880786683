/** The kernel holds on the Effect that is installed, one seed is one history, and it tells when nothing can go on. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { Kernel, type KernelOptions } from "../../src/sim/Kernel.ts"
import { spawn } from "../../src/sim/Process.ts"
import { rehearse } from "../../src/sim/rehearsal.ts"
import * as Schedule from "../../src/sim/Schedule.ts"
import { checks, kills, selfTest } from "../../src/sim/selfTest.ts"
import { firstDifference, keeping, line } from "../../src/sim/Trace.ts"

const seeds = Array.from({ length: 20 }, (_, seed) => seed)

const inOrder = (options: KernelOptions, names: ReadonlyArray<string>) => {
  const kernel = new Kernel(options)
  const log: Array<string> = []
  for (const name of names) {
    const main = () => Effect.forEach([1, 2, 3], (turn) => Effect.sync(() => log.push(`${name}${turn}`)))
    spawn(kernel, { name, main })
  }
  assert.deepStrictEqual(kernel.run(), { _tag: "Finished" })
  return log
}

describe("on the installed Effect", () => {
  for (const { promise, run } of checks) it(promise, () => assert.isNull(run()))

  it("2,000 kills run no finalizer", () => assert.isNull(kills(2_000)))

  it("a check that fails is found by the self-test", () => {
    const broken = { promise: "never", run: () => "broken" }
    const found = selfTest([broken, { promise: "always", run: () => null }])
    assert.deepStrictEqual([...found], [{ promise: "never", finding: "broken" }])
  })
})

describe("history", () => {
  it("is the same in another process, with another compiler and without async hooks", async () => {
    const here = seeds.map((seed) => rehearse({ seed }).hash)
    const there = await promisify(execFile)(process.execPath, [
      "--no-opt", "--import", "./src/sim/withoutAsyncHooks.ts", "test/sim/histories.ts", String(seeds.length)
    ])
    assert.deepStrictEqual(JSON.parse(there.stdout), here)
    assert.strictEqual(new Set(here).size, seeds.length)
  }, 60_000)

  it("is full of everything that can happen, and ends", () => {
    const kinds = new Set<string>()
    for (const seed of seeds) {
      const { events, record } = keeping()
      assert.strictEqual(rehearse({ seed, recorder: record }).verdict._tag, "Finished")
      for (const { kind } of events()) kinds.add(kind)
    }
    assert.deepStrictEqual([...kinds].toSorted(), [
      "arrive", "clock", "crash", "event", "exit", "log", "note", "pause",
      "reply", "resume", "signal", "spawn", "task", "terminate", "timer"
    ])
  })

  it("shows nothing of the dead, and of those who stand still only what is on the wire", () => {
    for (const seed of seeds) {
      const { events, record } = keeping()
      rehearse({ seed, recorder: record })
      const silent = new Set<string>()
      for (const event of events()) {
        if (event.kind === "resume") silent.delete(event.actor)
        const own = ["task", "timer", "reply", "signal"].includes(event.kind)
        if (own && silent.has(event.actor)) assert.fail(line(event))
        if (["pause", "crash", "exit"].includes(event.kind)) silent.add(event.actor)
      }
    }
  })

  it("knows the time of every step", () => {
    const hashes = [1, 2].map((ms) => {
      const kernel = new Kernel({ seed: 1 })
      spawn(kernel, { name: "a", main: () => Effect.sleep(ms) })
      kernel.run()
      return kernel.hash
    })
    assert.notStrictEqual(hashes[0], hashes[1])
  })

  it("is not changed by being watched, and two of them part at a step that can be shown", () => {
    const watched = seeds.slice(0, 2).map((seed) => {
      const { events, record } = keeping()
      assert.strictEqual(rehearse({ seed, recorder: record }).hash, rehearse({ seed }).hash)
      return events()
    })
    assert.isNull(firstDifference(watched[0]!, watched[0]!))
    const parted = firstDifference(watched[0]!, watched[1]!)!
    const [one, other] = watched.map((events) => events.slice(0, parted.index).map(line))
    assert.deepStrictEqual(one, other)
    assert.notStrictEqual(line(parted.one!), line(parted.other!))
  })

  it("keeps the newest events of a long run", () => {
    const { events, record } = keeping(10)
    const whole = keeping()
    rehearse({ seed: 1, recorder: (event) => [record, whole.record].forEach((to) => to(event)) })
    assert.deepStrictEqual([...events()], whole.events().slice(-10))
  })
})

describe("schedules", () => {
  it("first come, first served gives everybody a turn after the other", () => {
    const log = inOrder({ seed: 1, schedule: Schedule.fifo }, ["a", "b"])
    assert.strictEqual(log.join(" "), "a1 b1 a2 b2 a3 b3")
  })

  it("a coarse budget lets a fiber go on until it waits", () => {
    const log = inOrder({ seed: 1, schedule: Schedule.fifo, budget: Infinity }, ["a", "b"])
    assert.strictEqual(log.join(" "), "a1 a2 a3 b1 b2 b3")
  })

  it("a random one is replayed from its deviations, step by step", () => {
    for (const seed of seeds) {
      const deviations: Array<Schedule.Deviation> = []
      const random = Schedule.random(new Kernel({ seed }).key.of("turns"))
      const first = rehearse({ seed, schedule: Schedule.recording(random, deviations) })
      const again = Schedule.replay(deviations)
      assert.strictEqual(rehearse({ seed, schedule: again }).hash, first.hash)
      assert.deepStrictEqual(again.unused(), [])
      assert.isAbove(deviations.length, 10)
    }
  })

  it("a replay leaves out what has no occasion, says so, and keeps the rest", () => {
    const deviations: Array<Schedule.Deviation> = []
    const random = Schedule.random(new Kernel({ seed: 7 }).key)
    inOrder({ seed: 7, schedule: Schedule.recording(random, deviations) }, ["a", "b"])
    const stranger = { head: "a#1:0", chosen: "gone#1:0" }
    const log = inOrder({ seed: 7, schedule: Schedule.replay([stranger, ...deviations]) }, ["a", "b"])
    assert.deepStrictEqual(log, inOrder({ seed: 7, schedule: random }, ["a", "b"]))
    const replay = Schedule.replay([stranger])
    assert.strictEqual(inOrder({ seed: 7, schedule: replay }, ["a", "b"]).join(" "), "a1 b1 a2 b2 a3 b3")
    assert.deepStrictEqual(replay.unused(), [stranger])
  })

  it("a priority schedule lets one process run until it waits, and depth changes who", () => {
    const runs = (depth: number) =>
      new Set(Array.from({ length: 300 }, (_, seed) => {
        const schedule = Schedule.pct(new Kernel({ seed }).key, { depth, length: 14 })
        return inOrder({ seed, schedule }, ["a", "b"]).join(" ")
      }))
    const whole = ["a1 a2 a3 b1 b2 b3", "b1 b2 b3 a1 a2 a3"]
    assert.deepStrictEqual([...runs(1)].toSorted(), whole)
    assert.isAbove(runs(3).size, 6)
  })

  it("a priority schedule tells how many choices it had", () => {
    const schedule = Schedule.pct(new Kernel({ seed: 1 }).key, { depth: 1, length: 1 })
    inOrder({ seed: 1, schedule }, ["a"])
    assert.strictEqual(schedule.choices, 0)
    inOrder({ seed: 1, schedule }, ["a", "b"])
    assert.isAbove(schedule.choices, 0)
  })
})

describe("verdicts", () => {
  it("nothing ready, nothing due, somebody left: a deadlock, by name", () => {
    const kernel = new Kernel({ seed: 1 })
    spawn(kernel, { name: "waits", main: () => Effect.andThen(Effect.sleep(5), Effect.never) })
    spawn(kernel, { name: "ends", main: () => Effect.sleep(10) })
    assert.deepStrictEqual(kernel.run(), { _tag: "Deadlock", waiting: ["waits#1"] })
    assert.strictEqual(kernel.now, 10)
  })

  it("a process that was paused for ever is a deadlock too", () => {
    const kernel = new Kernel({ seed: 1 })
    const paused = spawn(kernel, { name: "paused", main: () => Effect.forever(Effect.sleep(1)) })
    kernel.after(5, "pause", () => paused.pause())
    assert.deepStrictEqual(kernel.run(), { _tag: "Deadlock", waiting: ["paused#1"] })
  })

  it("steps without time are a livelock, by name", () => {
    const kernel = new Kernel({ seed: 1 })
    spawn(kernel, { name: "spins", main: () => Effect.forever(Effect.yieldNow) })
    assert.deepStrictEqual(kernel.run({ maxStepsAtOnce: 1_000 }), { _tag: "Livelock", busy: ["spins#1"] })
  })

  it("steps without end are a livelock, by name", () => {
    const kernel = new Kernel({ seed: 1 })
    spawn(kernel, { name: "spins", main: () => Effect.forever(Effect.sleep(1)) })
    const verdict = kernel.run({ maxSteps: 1_000, maxStepsAtOnce: 100 })
    assert.deepStrictEqual(verdict, { _tag: "Livelock", busy: ["spins#1"] })
  })

  it("time is up exactly when it was said, and the run goes on from there", () => {
    const kernel = new Kernel({ seed: 1 })
    let ticks = 0
    const tick = Effect.andThen(Effect.sleep(10), Effect.sync(() => ticks++))
    spawn(kernel, { name: "ticks", main: () => Effect.forever(tick) })
    assert.deepStrictEqual(kernel.run({ forMs: 25 }), { _tag: "TimeUp" })
    assert.deepStrictEqual([kernel.now, ticks], [25, 2])
    assert.deepStrictEqual(kernel.run({ forMs: 25, until: () => ticks === 4 }), { _tag: "Reached" })
    assert.strictEqual(kernel.now, 40)
  })

  it("what the condition throws ends the run, and leaves the world as it was", () => {
    const kernel = new Kernel({ seed: 1 })
    const { now } = Date
    spawn(kernel, { name: "lives", main: () => Effect.forever(Effect.sleep(1)) })
    const until = () => {
      throw new Error("an invariant is broken")
    }
    assert.throws(() => kernel.run({ until }), "an invariant is broken")
    assert.strictEqual(Date.now, now)
    assert.deepStrictEqual(kernel.run({ forMs: 1 }), { _tag: "TimeUp" })
  })
})
