/**
 * Prints what a statement of the simulated database costs beside a request that does nothing:
 * `node --import ./src/sim/withoutAsyncHooks.ts test/sim/databaseSpeed.ts`.
 */
import { Context, Effect, Exit } from "effect"
import { refKey, WorkspaceId } from "../../src/domain/Ids.ts"
import * as Money from "../../src/domain/Ledger.ts"
import { evolve } from "../../src/domain/Operation.ts"
import { ApiKeys } from "../../src/services/ApiKeys.ts"
import { Ledger } from "../../src/services/Ledger.ts"
import { Store } from "../../src/services/Store.ts"
import { Transaction } from "../../src/services/Transaction.ts"
import { SimDatabase } from "../../src/sim/database/SimDatabase.ts"
import { io } from "../../src/sim/Io.ts"
import { Kernel } from "../../src/sim/Kernel.ts"
import { spawn } from "../../src/sim/Process.ts"
import { hash } from "../domain/samples.ts"
import { accepted, at, claimed, planOf, said } from "../services/operations.ts"
import { add, added } from "../services/records.ts"
import { calm } from "./simPorts.ts"

const workspaceId = WorkspaceId.make("speed")
const price: Money.Price = { policy: "infer-add", stored: 2, noMemory: 2 }

/** Accepts an operation, claims it, freezes its plan, ends it, and projects what it stored: as the programs do. */
const life = (ports: Context.Context<Store | Ledger | Transaction>) =>
  Effect.gen(function*() {
    const { memories, operations } = Context.get(ports, Store)
    const ledger = Context.get(ports, Ledger)
    const { run } = Context.get(ports, Transaction)
    const operation = accepted(workspaceId, { scope: { user_id: "ana" }, lane: accepted(workspaceId).lane })
    const key = { workspaceId, keyHash: hash, commandVersion: 1, commandHash: hash, operationId: operation.id }
    const own = { ...key, keyHash: `${operation.id}`.padEnd(64, "0") as typeof hash }
    const grant = Money.reserve({ workspaceId, operationId: operation.id, no: 1, reserved: 2n, price })
    yield* run(Effect.gen(function*() {
      yield* operations.lockLanes([operation])
      yield* ledger.lock([workspaceId])
      yield* operations.findKeys([own])
      yield* operations.occupiedLanes([operation])
      yield* operations.fairClock
      yield* operations.insert([{ operation, key: own, input: said("tea") }])
      yield* ledger.setFairTimes([{ workspaceId, fairTime: 1 }])
      yield* ledger.post([grant.authorization], grant.transfers)
    }))
    const running = yield* run(Effect.gen(function*() {
      const { operations: [from] } = yield* operations.claimable(10)
      const to = evolve(from!, claimed(at(1_000)))
      yield* operations.save([{ from: from!, to }])
      yield* operations.work([to])
      yield* operations.advanceFairClock(to.fairTag)
      return to
    }))
    yield* operations.renew([running], 1_000)
    yield* run(Effect.andThen(operations.lock([running]), operations.freeze([{ ...running, plan: planOf("model") }])))
    yield* run(Effect.gen(function*() {
      yield* operations.lockLanes([running])
      yield* operations.lock([running])
      yield* memories.write([add(added(workspaceId, "tea", { operationId: running.id }))])
      const results = [{ id: null, change: "add" as const, version: 1 }]
      const to = evolve(running, { _tag: "Succeeded", at: at(2_000), results, evidence: running.evidence })
      yield* operations.save([{ from: running, to }])
      yield* operations.redact([to])
      yield* operations.announce([to])
      yield* operations.readyNext([to])
      const [open] = yield* ledger.openAuthorizations([to])
      const end = Money.charge(open!, 2n)
      yield* ledger.post([end.authorization], end.transfers)
    }))
    const due = yield* memories.claimProjections(10, 1_000)
    yield* memories.get([due[0]!.projection])
    yield* memories.finishProjections(due.map(({ projection }) => projection))
    for (let poll = 0; poll < 8; poll++) yield* run(operations.claimable(10))
    return refKey(running)
  })

/** Runs this in a world of its own, and counts the requests. */
const world = (main: (database: SimDatabase, kernel: Kernel) => Effect.Effect<unknown, unknown>): number => {
  const kernel = new Kernel({ seed: 1, budget: Infinity })
  let requests = 0
  const strike = () => {
    requests++
    return null
  }
  const database = new SimDatabase({ kernel, strikes: { ...calm, strike } })
  const process = spawn(kernel, { name: "speed", main: () => main(database, kernel) })
  kernel.run()
  if (process.exit === null || Exit.isFailure(process.exit)) throw new Error("the workload failed", { cause: process.exit })
  return requests
}

const operationsInRun = 12

const statements = (database: SimDatabase) => {
  const ports = database.ports()
  const prepare = Effect.andThen(
    Context.get(ports, ApiKeys).makeWorkspace(workspaceId),
    Context.get(ports, Ledger).grant(workspaceId, 1_000n, "initial")
  )
  return Effect.andThen(prepare, Effect.forEach(Array.from({ length: operationsInRun }), () => life(ports)))
}
const count = world(statements)

/** As many requests of which nobody thinks anything. */
const requests = () => {
  const nothing = io<void>({ label: "nothing", latencyMs: 1, arrive: (call) => call.answer(Exit.void, 1) })
  return Effect.forEach(Array.from({ length: count }), () => nothing)
}

/** Microseconds of one core for a request. */
const measure = (main: (database: SimDatabase, kernel: Kernel) => Effect.Effect<unknown, unknown>): number => {
  for (let warm = 0; warm < 100; warm++) world(main)
  const begun = process.cpuUsage()
  let runs = 0
  let micros = 0
  while (micros < 2_000_000) {
    world(main)
    runs++
    const { system, user } = process.cpuUsage(begun)
    micros = system + user
  }
  return micros / (runs * count)
}

const idle = measure(requests)
const busy = measure(statements)
const each = Math.round(1_000_000 / (busy - idle)).toLocaleString("en")
console.log(`a request costs ${idle.toFixed(2)} µs, a statement ${busy.toFixed(2)} µs: beside the request, ${each} a second`)
