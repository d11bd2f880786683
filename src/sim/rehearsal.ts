/**
 * A small world with everything in it that a kernel can do: processes that race, wait and call, faults of every kind,
 * clocks that are wrong. Equal seeds must give equal hashes; this is what that is tried on.
 */
import { Clock, Effect, Exit, Fiber, Queue, Random, Semaphore } from "effect"
import { SecureRandom } from "effect/crypto"
import { HostClock } from "./HostClock.ts"
import { io } from "./Io.ts"
import { Kernel, type KernelOptions, type Verdict } from "./Kernel.ts"
import { type Process, spawn } from "./Process.ts"

/** A register on the wire: slow, and now and then silent. */
const register = (kernel: Kernel) => {
  const values = new Map<string, number>()
  return {
    add: (name: string, amount: number) =>
      io<number>({
        label: `add ${name}`,
        latencyMs: 1,
        arrive: (call) => {
          const value = (values.get(name) ?? 0) + amount
          values.set(name, value)
          const key = kernel.key.at("register", call.process.name, call.label, call.index)
          kernel.mark(call.process, "note", call.label, String(value))
          if (!key.of("silent").chance(0.05)) call.answer(Exit.succeed(value), key.of("latency").between(0, 20))
        }
      }).pipe(Effect.timeoutOption(50))
  }
}

/** A process of three producers, a consumer and a heartbeat, which all want the same things. */
const busy = (world: ReturnType<typeof register>) => (process: Process) =>
  Effect.gen(function*() {
    const mailbox = yield* Queue.bounded<number>(2)
    const permits = yield* Semaphore.make(2)
    const secure = yield* SecureRandom.SecureRandom
    const produce = (name: string) =>
      Effect.gen(function*() {
        yield* Effect.sleep(yield* Random.nextIntBetween(0, 3))
        const amount = yield* Random.nextIntBetween(1, 9)
        yield* Semaphore.withPermits(permits, 1)(world.add(name, amount))
        yield* Queue.offer(mailbox, amount)
      }).pipe(Effect.repeat({ times: 4 }))
    const consumer = yield* Queue.take(mailbox).pipe(
      Effect.tap((amount) => world.add(process.name, amount)),
      Effect.forever,
      Effect.forkChild
    )
    const heartbeat = yield* Effect.gen(function*() {
      yield* Effect.sleep(10)
      yield* Effect.logInfo("alive", yield* secure.uuidV7(), yield* Clock.currentTimeMillis)
    }).pipe(Effect.forever, Effect.forkChild)
    yield* Effect.forEach(["x", "y", "z"], produce, { concurrency: "unbounded" })
    yield* Fiber.interruptAll([consumer, heartbeat])
  }).pipe(Effect.ensuring(world.add("ended", 1)))

/** Faults at moments of the seed's choosing. */
const misfortunes = (kernel: Kernel, first: Process) => {
  let process = first
  const key = kernel.key.of("misfortunes").of(first.name)
  const at = (what: string) => key.of(what).between(1, 60)
  kernel.after(at("pause"), "pause", () => process.pause())
  kernel.after(at("pause") + 40, "resume", () => process.resume())
  kernel.after(at("step"), "step", () => process.clock.step(-500))
  kernel.after(at("drift"), "drift", () => process.clock.drift(key.of("ppm").between(-5_000, 5_000)))
  if (key.of("crashes").chance(0.5)) kernel.after(at("crash"), "crash", () => process = process.restart())
  else kernel.after(at("term"), "term", () => process.terminate(30))
}

export interface Rehearsed {
  readonly hash: string
  readonly steps: number
  readonly verdict: Verdict
}

/** Runs it all: three processes, on three machines. */
export const rehearse = (options: KernelOptions): Rehearsed => {
  const kernel = new Kernel(options)
  const world = register(kernel)
  for (const name of ["one", "two", "three"]) {
    const clock = new HostClock(kernel, { name, offsetMs: kernel.key.of("offset").of(name).between(-5_000, 5_000) })
    misfortunes(kernel, spawn(kernel, { name, main: busy(world), clock }))
  }
  const verdict = kernel.run({ forMs: 10_000 })
  return { hash: kernel.hash, steps: kernel.steps, verdict }
}
