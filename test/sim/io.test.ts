/** An operation on the world may fail at every point where a real one may, and the dead hear nothing. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { type Call, io } from "../../src/sim/Io.ts"
import { Kernel } from "../../src/sim/Kernel.ts"
import { spawn } from "../../src/sim/Process.ts"

/** A process that increments a number in the world once, on a port that does as told. */
const increment = (
  serve: (call: Call<number, string>, world: { value: number; readonly kernel: Kernel }) => void
) => {
  const kernel = new Kernel({ seed: 1 })
  const world = { value: 0, kernel }
  const heard: Array<string> = []
  const program = io<number, string>({ label: "increment", latencyMs: 5, arrive: (call) => serve(call, world) }).pipe(
    Effect.match({
      onSuccess: (value) => heard.push(`got ${value}`),
      onFailure: (error) => heard.push(`failed ${error}`)
    }),
    Effect.timeoutOrElse({ duration: 100, orElse: () => Effect.sync(() => heard.push("gave up")) }),
    Effect.ensuring(Effect.sync(() => heard.push("finalizer")))
  )
  const process = spawn(kernel, { name: "client", main: () => program })
  return { kernel, world, heard, process, run: () => [kernel.run()._tag, world.value, heard, kernel.now] }
}

describe("an operation", () => {
  it("takes its time there and back", () => {
    const { run } = increment((call, world) => call.answer(Exit.succeed(++world.value), 7))
    assert.deepStrictEqual(run(), ["Finished", 1, ["got 1", "finalizer"], 12])
  })

  it("may be lost before it does anything: the process dies, nothing happened", () => {
    const { run } = increment((call) => call.process.crash())
    assert.deepStrictEqual(run(), ["Finished", 0, [], 5])
  })

  it("may be done and never heard of: the process dies after", () => {
    const { run } = increment((call, world) => {
      world.value++
      call.process.crash()
      call.answer(Exit.succeed(world.value))
    })
    assert.deepStrictEqual(run(), ["Finished", 1, [], 5])
  })

  it("may be done while its reply is lost", () => {
    const { run } = increment((_, world) => world.value++)
    assert.deepStrictEqual(run(), ["Finished", 1, ["gave up", "finalizer"], 100])
  })

  it("may be in doubt: the caller is told so, and it is done later", () => {
    const { kernel, run, world } = increment((call, { kernel }) => {
      kernel.after(50, "applied late", () => world.value++)
      call.answer(Exit.fail("connection"))
    })
    kernel.after(20, "look", () => assert.strictEqual(world.value, 0))
    assert.deepStrictEqual(run(), ["Finished", 1, ["failed connection", "finalizer"], 55])
  })

  it("arrives although its process has died since", () => {
    const { kernel, process, run } = increment((call, world) => {
      assert.isFalse(call.waiting)
      call.answer(Exit.succeed(++world.value))
    })
    kernel.after(2, "crash", () => process.crash())
    assert.deepStrictEqual(run(), ["Finished", 1, [], 5])
  })

  it("of a paused process arrives, and its answer waits for the process", () => {
    const { kernel, process, run } = increment((call, world) => {
      assert.isTrue(call.waiting)
      call.answer(Exit.succeed(++world.value))
    })
    kernel.after(2, "pause", () => process.pause())
    kernel.after(50, "resume", () => process.resume())
    assert.deepStrictEqual(run(), ["Finished", 1, ["got 1", "finalizer"], 50])
  })

  it("is answered once: a second answer goes nowhere", () => {
    const { run } = increment((call, world) => {
      call.answer(Exit.succeed(++world.value), 9)
      call.answer(Exit.fail("late"), 10)
    })
    assert.deepStrictEqual(run(), ["Finished", 1, ["got 1", "finalizer"], 14])
  })

  it("that its caller gives up is still done, and the port is told", () => {
    const kernel = new Kernel({ seed: 1 })
    const log: Array<string> = []
    const ask = io<void>({
      label: "slow",
      latencyMs: 50,
      arrive: (call) => log.push(`arrived, ${call.waiting ? "waiting" : "nobody waits"}`),
      abandoned: () => log.push("abandoned")
    })
    const process = spawn(kernel, { name: "client", main: () => Effect.timeoutOption(ask, 10) })
    spawn(kernel, { name: "later", main: () => Effect.sleep(100) })
    const dead = spawn(kernel, { name: "dead", main: () => ask })
    kernel.after(20, "crash", () => dead.crash())
    kernel.run()
    assert.strictEqual(process.state, "exited")
    assert.deepStrictEqual(log, ["abandoned", "arrived, nobody waits", "arrived, nobody waits"])
  })

  it("knows its process, and its place among the calls of one incarnation", () => {
    const kernel = new Kernel({ seed: 1 })
    const calls: Array<string> = []
    const ask = (label: string) =>
      io<void>({
        label,
        latencyMs: 1,
        arrive: ({ answer, index, process }) => {
          calls.push(`${process.id} ${label} ${index}`)
          answer(Exit.void)
        }
      })
    const main = () => Effect.andThen(ask("read"), Effect.andThen(ask("write"), ask("read")))
    const process = spawn(kernel, { name: "a", main })
    kernel.run()
    process.restart()
    kernel.run()
    const once = (id: string) => [`${id} read 0`, `${id} write 0`, `${id} read 1`]
    assert.deepStrictEqual(calls, [...once("a#1"), ...once("a#2")])
  })

  it("outside of a simulation is refused", () => {
    const exit = Effect.runSyncExit(io<void>({ label: "read", latencyMs: 1, arrive: () => {} }))
    assert.isTrue(Exit.hasDies(exit))
  })

  it("of two processes at one moment may arrive in any order", () => {
    const orders = new Set(Array.from({ length: 50 }, (_, seed) => {
      const kernel = new Kernel({ seed })
      const log: Array<string> = []
      for (const name of ["a", "b"]) {
        spawn(kernel, { name, main: () => io<void>({ label: "write", latencyMs: 3, arrive: (call) => {
          log.push(name)
          call.answer(Exit.void)
        } }) })
      }
      kernel.run()
      return log.join("")
    }))
    assert.deepStrictEqual([...orders].toSorted(), ["ab", "ba"])
  })
})
