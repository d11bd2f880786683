/** Production programs, unmodified, on the kernel: they do their work, survive faults, and have one history a seed. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { IdempotencyKey, normaliseAdd } from "../../src/domain/Command.ts"
import { WorkspaceId } from "../../src/domain/Ids.ts"
import * as Batcher from "../../src/services/Batcher.ts"
import { Commands, type Receipt } from "../../src/services/Commands.ts"
import { Ledger } from "../../src/services/Ledger.ts"
import * as Programs from "../../src/services/Programs.ts"
import { io } from "../../src/sim/Io.ts"
import { Kernel, type KernelOptions } from "../../src/sim/Kernel.ts"
import type { Process } from "../../src/sim/Process.ts"
import { spawn } from "../../src/sim/Process.ts"
import { launch } from "../../src/sim/Server.ts"
import { trivialWorld } from "./trivialWorld.ts"

describe("group commit", () => {
  /** Twenty callers on a batcher whose transaction takes a while. */
  const run = (options: KernelOptions) => {
    const kernel = new Kernel(options)
    const batches: Array<number> = []
    const items = Array.from({ length: 20 }, (_, n) => n)
    const double = (items: ReadonlyArray<number>) =>
      io<ReadonlyArray<number>>({
        label: "commit",
        latencyMs: 3,
        arrive: (call) => {
          batches.push(items.length)
          call.answer(Exit.succeed(items.map((item) => item * 2)), 2)
        }
      })
    const program = Effect.gen(function*() {
      const batcher = yield* Batcher.make<number, number>({ maxSize: 5, capacity: 100, loops: 2, run: double })
      return yield* Effect.forEach(items, batcher.submit, { concurrency: "unbounded" })
    })
    const process = spawn(kernel, { name: "a", main: () => Effect.scoped(program) })
    assert.strictEqual(kernel.run()._tag, "Finished")
    assert.deepStrictEqual(process.exit, Exit.succeed(items.map((item) => item * 2)))
    return batches
  }

  it("answers each caller its own, in batches that depend on the schedule", () => {
    const shapes = new Set(Array.from({ length: 30 }, (_, seed) => run({ seed }).join(" ")))
    assert.isAbove(shapes.size, 3)
    assert.isTrue([...shapes].every((shape) => shape.split(" ").every((size) => Number(size) <= 5)))
  })

  it("serves full batches when a fiber goes on until it waits", () => {
    assert.deepStrictEqual(run({ seed: 1, budget: Infinity }).toSorted(), [5, 5, 5, 5])
  })
})

const workspace = WorkspaceId.make("sim")
const users = ["ana", "ana", "ben", "cleo", "ana", "ben"]

/** One API process accepts six commands; workers do them, while `misfortune` does something to the first worker. */
const service = (options: KernelOptions, misfortune: (kernel: Kernel, worker: Process) => void = () => {}) => {
  const kernel = new Kernel(options)
  const world = trivialWorld(kernel)
  const api = launch(kernel, { name: "api", layer: () => Layer.provideMerge(Programs.api, world.ports) })
  const first = launch(kernel, { name: "worker-1", layer: () => Layer.provide(Programs.worker, world.ports) })
  launch(kernel, { name: "worker-2", layer: () => Layer.provide(Programs.worker, world.ports) })
  const accepted: Array<string> = []
  const grant = Effect.flatMap(Ledger, (ledger) => ledger.grant(workspace, 100n, "initial"))
  const submit = (user: string, n: number) =>
    Effect.flatMap(Commands, (commands) =>
      commands.infer(workspace, IdempotencyKey.make(`key-${n}`), normaliseAdd({ content: `fact ${n}`, user_id: user })))
  kernel.after(10, "grant", () => api.serve("grant", grant, () => {}))
  users.forEach((user, n) => {
    const answered = (exit: Exit.Exit<Receipt, unknown>) =>
      accepted.push(Exit.isSuccess(exit) ? exit.value.status : "refused")
    kernel.after(50 + n, "submit", () => api.serve("submit", submit(user, n), answered))
  })
  misfortune(kernel, first)
  const verdict = kernel.run({
    forMs: 300_000,
    until: () => world.indexed.size === users.length && world.tables().projections.size === 0
  })
  const { accounts, inputs, memories, operations } = world.tables()
  return {
    verdict: verdict._tag,
    accepted,
    states: [...operations.values()].map(({ state }) => state),
    facts: [...memories.values()].map(({ text }) => text).toSorted(),
    inputs: inputs.size,
    balances: accounts.get(workspace)?.balances,
    calls: world.calls.count,
    seconds: kernel.now / 1_000,
    steps: kernel.steps,
    hash: kernel.hash
  }
}

/** Everything was accepted, done once, paid once, projected, and forgotten. */
const assertDone = (run: ReturnType<typeof service>) => {
  const { accepted, facts, inputs, states, verdict } = run
  assert.deepStrictEqual({ accepted, facts, inputs, states, verdict }, {
    verdict: "Reached",
    accepted: users.map(() => "pending"),
    states: users.map(() => "succeeded"),
    facts: users.map((_, n) => `fact ${n}`),
    inputs: 0
  })
  assert.deepStrictEqual(run.balances, { available: 88n, reserved: 0n, consumed: 12n, issued: 100n })
}

describe("workers", () => {
  it("do what was accepted, lane by lane, whatever the schedule", () => {
    for (let seed = 0; seed < 15; seed++) {
      const run = service({ seed })
      assertDone(run)
      assert.strictEqual(run.calls, users.length)
      // The longest lane has three operations of two seconds each, and nothing else waits for it.
      assert.isBelow(run.seconds, 8)
    }
  })

  it("do it too when fibers go on until they wait", () => assertDone(service({ seed: 1, budget: Infinity })))

  it("take over from one that crashed, after its lease, and pay once", () => {
    for (let seed = 0; seed < 10; seed++) {
      const run = service({ seed }, (kernel, worker) => kernel.after(100 + 200 * seed, "crash", () => worker.crash()))
      assertDone(run)
    }
  })

  it("lose nothing to one that stood still past its lease and then went on", () => {
    let overtaken = 0
    for (let seed = 0; seed < 10; seed++) {
      const run = service({ seed }, (kernel, worker) => {
        kernel.after(500 + 100 * seed, "pause", () => worker.pause())
        kernel.after(60_000, "resume", () => worker.resume())
      })
      assertDone(run)
      if (run.calls > users.length) overtaken++
    }
    assert.isAbove(overtaken, 0)
  })

  it("give back what they hold on SIGTERM, and nobody waits for a lease", () => {
    const run = service({ seed: 3 }, (kernel, worker) => kernel.after(500, "term", () => worker.terminate(30_000)))
    assertDone(run)
    assert.isBelow(run.seconds, 15)
  })

  it("have one history a seed, faults and all", () => {
    const crashing = (seed: number) =>
      service({ seed }, (kernel, worker) => kernel.after(777, "crash", () => worker.restart()))
    for (let seed = 0; seed < 5; seed++) assert.deepStrictEqual(crashing(seed), crashing(seed))
    assert.notStrictEqual(crashing(0).hash, crashing(1).hash)
  })
})
