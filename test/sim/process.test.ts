/** A simulated process lives, stands still and dies as a real one does, and shares nothing with the next one. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Deferred, Effect, Exit, Layer, Random, Result, Schedule } from "effect"
import { SecureRandom } from "effect/crypto"
import { io } from "../../src/sim/Io.ts"
import { Kernel } from "../../src/sim/Kernel.ts"
import { spawn } from "../../src/sim/Process.ts"
import { launch } from "../../src/sim/Server.ts"
import { keeping } from "../../src/sim/Trace.ts"

const note = (log: Array<string>, word: string) => Effect.sync(() => log.push(word))
const tick = (log: Array<string>) => Effect.forever(Effect.andThen(Effect.sleep(10), note(log, "tick")))
/** Three fibers that sleep for one, two and three times `ms`. */
const three = (log: Array<string>, ms: number) =>
  Effect.forEach([1, 2, 3], (n) => Effect.andThen(Effect.sleep(n * ms), note(log, `${n}`)), {
    concurrency: "unbounded"
  })

describe("a crash", () => {
  it("drops what was ready, what was due and every finalizer, and time does not move for the dead", () => {
    const kernel = new Kernel({ seed: 1 })
    const log: Array<string> = []
    const process = spawn(kernel, { name: "a", main: () => Effect.ensuring(tick(log), note(log, "finalizer")) })
    kernel.after(25, "crash", () => process.crash())
    assert.deepStrictEqual(kernel.run(), { _tag: "Finished" })
    assert.deepStrictEqual([log, process.state, process.exit, kernel.now], [["tick", "tick"], "crashed", null, 25])
  })

  it("of oneself stops at the next operation", () => {
    const kernel = new Kernel({ seed: 1, budget: Infinity })
    const log: Array<string> = []
    spawn(kernel, {
      name: "a",
      main: (process) =>
        note(log, "before").pipe(
          Effect.andThen(Effect.sync(() => process.crash())),
          Effect.andThen(note(log, "after")),
          Effect.ensuring(note(log, "finalizer"))
        )
    })
    assert.deepStrictEqual(kernel.run(), { _tag: "Finished" })
    assert.deepStrictEqual(log, ["before"])
  })

  it("is heard of once, and a second one is none", () => {
    const kernel = new Kernel({ seed: 1 })
    const log: Array<string> = []
    const process = spawn(kernel, { name: "a", main: () => Effect.never })
    process.onDeath(() => log.push("one"))
    process.onDeath(() => log.push("two"))()
    kernel.after(1, "crash", () => process.crash())
    kernel.after(2, "crash", () => process.crash())
    kernel.run()
    process.onDeath(() => log.push("late"))
    assert.deepStrictEqual(log, ["one", "late"])
  })

  it("before it began means that it never began", () => {
    const kernel = new Kernel({ seed: 1 })
    const log: Array<string> = []
    const main = () => {
      log.push("asked")
      return note(log, "ran")
    }
    spawn(kernel, { name: "a", main }).crash()
    assert.deepStrictEqual(kernel.run(), { _tag: "Finished" })
    assert.deepStrictEqual(log, [])
  })

  it("does not keep another process from being resumed by what the dead shared with it", () => {
    const kernel = new Kernel({ seed: 1 })
    const log: Array<string> = []
    const shared = Deferred.makeUnsafe<void>()
    const waits = () => Effect.andThen(Deferred.await(shared), note(log, "went on"))
    const dead = spawn(kernel, { name: "dead", main: waits })
    spawn(kernel, { name: "alive", main: waits })
    spawn(kernel, { name: "opens", main: () => Effect.andThen(Effect.sleep(10), Deferred.succeed(shared, undefined)) })
    kernel.after(5, "crash", () => dead.crash())
    assert.deepStrictEqual(kernel.run(), { _tag: "Finished" })
    assert.deepStrictEqual(log, ["went on"])
  })
})

describe("SIGTERM", () => {
  it("lets finalizers run, however long within the deadline, and the process exits", () => {
    const kernel = new Kernel({ seed: 1 })
    const log: Array<string> = []
    const drain = Effect.andThen(Effect.sleep(100), note(log, "drained"))
    const process = spawn(kernel, { name: "a", main: () => Effect.ensuring(tick(log), drain) })
    kernel.after(15, "term", () => process.terminate(1_000))
    assert.deepStrictEqual(kernel.run(), { _tag: "Finished" })
    assert.deepStrictEqual([log, process.state, kernel.now], [["tick", "drained"], "exited", 115])
    assert.isTrue(process.exit !== null && Exit.hasInterrupts(process.exit))
  })

  it("kills what does not end in time", () => {
    const kernel = new Kernel({ seed: 1 })
    const process = spawn(kernel, { name: "a", main: () => Effect.ensuring(Effect.never, Effect.sleep(1_000)) })
    kernel.after(10, "term", () => process.terminate(100))
    assert.deepStrictEqual(kernel.run(), { _tag: "Finished" })
    assert.deepStrictEqual([process.state, kernel.now], ["crashed", 110])
  })

  it("waits for a process that stands still, and kills it all the same", () => {
    const kernel = new Kernel({ seed: 1 })
    const log: Array<string> = []
    const process = spawn(kernel, { name: "a", main: () => Effect.ensuring(Effect.never, note(log, "finalizer")) })
    kernel.after(1, "pause", () => process.pause())
    kernel.after(2, "term", () => process.terminate(100))
    kernel.run()
    assert.deepStrictEqual([log, process.state, kernel.now], [[], "crashed", 102])
  })

  it("ends background fibers with the process, without their finalizers", () => {
    const kernel = new Kernel({ seed: 1 })
    const log: Array<string> = []
    const process = spawn(kernel, {
      name: "a",
      main: () => Effect.andThen(Effect.forkDetach(Effect.ensuring(tick(log), note(log, "finalizer"))), Effect.never)
    })
    kernel.after(15, "term", () => process.terminate(100))
    assert.deepStrictEqual(kernel.run(), { _tag: "Finished" })
    assert.deepStrictEqual([log, process.state], [["tick"], "exited"])
  })
})

describe("a pause", () => {
  it("lets time go on for others, and brings what is overdue all at once", () => {
    const kernel = new Kernel({ seed: 1 })
    const log: Array<string> = []
    const process = spawn(kernel, { name: "a", main: () => three(log, 10) })
    const other = Effect.repeat(Effect.andThen(Effect.sleep(20), note(log, "b")), { times: 2 })
    spawn(kernel, { name: "b", main: () => other })
    kernel.after(5, "pause", () => process.pause())
    kernel.after(100, "resume", () => {
      assert.deepStrictEqual(log, ["b", "b", "b"])
      process.resume()
    })
    assert.deepStrictEqual(kernel.run(), { _tag: "Finished" })
    assert.deepStrictEqual(log.slice(3).toSorted(), ["1", "2", "3"])
    assert.strictEqual(kernel.now, 100)
  })

  it("brings overdue things in different orders", () => {
    const found = new Set(Array.from({ length: 100 }, (_, seed) => {
      const kernel = new Kernel({ seed })
      const log: Array<string> = []
      const process = spawn(kernel, { name: "a", main: () => three(log, 1) })
      kernel.after(0.5, "pause", () => process.pause())
      kernel.after(10, "resume", () => process.resume())
      kernel.run()
      return log.join("")
    }))
    assert.strictEqual(found.size, 6)
  })

  it("holds what is sent to it, and a crash meanwhile drops that", () => {
    const kernel = new Kernel({ seed: 1 })
    const log: Array<string> = []
    const process = spawn(kernel, { name: "a", main: () => tick(log) })
    kernel.after(15, "pause", () => process.pause())
    kernel.after(50, "crash", () => process.crash())
    kernel.after(60, "resume", () => process.resume())
    assert.deepStrictEqual(kernel.run(), { _tag: "Finished" })
    assert.deepStrictEqual(log, ["tick"])
  })
})

describe("an incarnation", () => {
  const draws = Effect.gen(function*() {
    const secure = yield* SecureRandom.SecureRandom
    const int = yield* Random.nextInt
    assert.isTrue(Number.isSafeInteger(int))
    return [yield* Random.next, int, yield* secure.uuidV4(), yield* secure.uuidV7()].join(" ")
  })

  it("begins with nothing of the last one, and with randomness of its own", () => {
    const kernel = new Kernel({ seed: 1 })
    const log: Array<string> = []
    const main = () => Effect.andThen(Effect.tap(draws, (drawn) => note(log, drawn)), Effect.never)
    const one = spawn(kernel, { name: "a", main })
    const other = spawn(kernel, { name: "b", main })
    kernel.run({ until: () => log.length === 2 })
    const next = one.restart()
    kernel.run({ until: () => log.length === 3 })
    assert.strictEqual(new Set(log.flatMap((drawn) => drawn.split(" "))).size, 12)
    assert.deepStrictEqual([one.id, next.id, other.id, one.state, next.incarnation], ["a#1", "a#2", "b#1", "crashed", 2])
  })

  it("draws the same whatever others draw", () => {
    const drawn = (others: number) => {
      const kernel = new Kernel({ seed: 1 })
      const log: Array<string> = []
      for (let index = 0; index < others; index++) spawn(kernel, { name: `other ${index}`, main: () => draws })
      spawn(kernel, { name: "a", main: () => Effect.tap(draws, (text) => note(log, text)) })
      kernel.run()
      return log
    }
    assert.deepStrictEqual(drawn(0), drawn(3))
  })

  it("logs into the trace, without stacks and fiber ids, and prints nothing", () => {
    const { events, record } = keeping()
    const kernel = new Kernel({ seed: 1, recorder: record })
    const said = Effect.logWarning("something", new Error("with a stack"))
    const main = () => said.pipe(Effect.annotateLogs({ count: 3 }), Effect.withSpan("span"))
    spawn(kernel, { name: "a", main })
    kernel.run()
    const logged = events().filter(({ kind }) => kind === "log").map(({ detail, label }) => `${label}: ${detail}`)
    assert.deepStrictEqual(logged, ["Warn: something Error: with a stack count=3"])
  })

  it("retries, timeouts and spans of ordinary programs work, with jitter", () => {
    const kernel = new Kernel({ seed: 1 })
    let tries = 0
    const flaky = Effect.suspend(() => ++tries < 4 ? Effect.fail("no") : Effect.succeed("yes"))
    const schedule = Schedule.jittered(Schedule.exponential("10 millis"))
    const program = Effect.withSpan(Effect.retry(flaky, schedule), "retry")
    const process = spawn(kernel, { name: "a", main: () => Effect.timeout(program, "1 second") })
    assert.deepStrictEqual(kernel.run(), { _tag: "Finished" })
    assert.deepStrictEqual(process.exit, Exit.succeed("yes"))
    assert.isAbove(kernel.now, 50)
  })
})

describe("a server", () => {
  class Greeter extends Context.Service<Greeter, {
    readonly greet: (name: string) => Effect.Effect<string>
  }>()("test/Greeter") {
    static readonly layer = Layer.effect(Greeter, Effect.gen(function*() {
      yield* Effect.sleep(10)
      return Greeter.of({ greet: (name) => Effect.as(Effect.sleep(20), `hello ${name}`) })
    }))
  }
  const hello = Effect.flatMap(Greeter, ({ greet }) => greet("you"))

  const world = () => {
    const kernel = new Kernel({ seed: 1 })
    const answers: Array<unknown> = []
    const server = launch(kernel, { name: "api", layer: () => Greeter.layer })
    return { kernel, answers, server, ask: () => server.serve("hello", hello, (exit) => answers.push(exit)) }
  }

  it("serves requests side by side once it is up", () => {
    const { answers, ask, kernel } = world()
    kernel.after(5, "too early", ask)
    kernel.after(15, "one", ask)
    kernel.after(16, "two", ask)
    assert.strictEqual(kernel.run()._tag, "Deadlock")
    assert.deepStrictEqual([answers, kernel.now], [[Exit.succeed("hello you"), Exit.succeed("hello you")], 36])
  })

  it("that dies answers nothing, and its next incarnation serves", () => {
    const { answers, ask, kernel, server } = world()
    kernel.after(15, "ask", ask)
    kernel.after(20, "crash", () => server.crash())
    kernel.after(40, "ask the dead", ask)
    kernel.run()
    assert.deepStrictEqual(answers, [])
    const next = server.restart()
    kernel.after(20, "ask", () => next.serve("hello", hello, (exit) => answers.push(exit)))
    kernel.run()
    assert.deepStrictEqual([answers, next.id], [[Exit.succeed("hello you")], "api#2"])
  })

  it("interrupts a request that nobody waits for any more, also before it has begun", () => {
    const { answers, ask, kernel } = world()
    kernel.after(15, "ask", () => kernel.after(5, "give up", ask()))
    kernel.after(16, "ask and give up", () => ask()())
    kernel.run()
    assert.strictEqual(answers.length, 1)
    assert.isTrue(Exit.hasInterrupts(answers[0] as Exit.Exit<unknown>))
  })

  it("can be called by another process, which hears of its death, and is refused by the dead", () => {
    const { kernel, server } = world()
    const call = io<string, string>({
      label: "GET /hello",
      latencyMs: 2,
      arrive: ({ answer }) => {
        if (!server.up) return answer(Exit.fail("refused"), 2)
        const lost = server.onDeath(() => answer(Exit.fail("reset"), 2))
        server.serve("GET /hello", hello, (exit) => {
          lost()
          answer(exit, 2)
        })
      }
    })
    const calls = Effect.forEach([1, 2, 3, 4], () => Effect.result(Effect.delay(call, 13)))
    const client = spawn(kernel, { name: "client", main: () => calls })
    kernel.after(63, "crash", () => server.crash())
    assert.deepStrictEqual(kernel.run(), { _tag: "Finished" })
    const answers = client.exit !== null && Exit.isSuccess(client.exit) ? client.exit.value : []
    const refused = Result.fail("refused")
    assert.deepStrictEqual(answers, [Result.succeed("hello you"), Result.fail("reset"), refused, refused])
  })

  it("shows its clock to those it serves, not the clock of whoever asks", () => {
    const { answers, kernel, server } = world()
    server.clock.step(-60_000)
    kernel.after(20, "ask", () => server.serve("time", Clock.currentTimeMillis, (exit) => answers.push(exit)))
    kernel.run()
    assert.deepStrictEqual(answers, [Exit.succeed(kernel.epochMs + 20 - 60_000)])
  })
})
