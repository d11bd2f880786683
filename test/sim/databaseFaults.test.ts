/** What each fault on the way to the simulated database leaves behind, and what whoever asked is told. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { refKey } from "../../src/domain/Ids.ts"
import { VectorIndexFailure } from "../../src/services/VectorIndex.ts"
import type { FaultKind } from "../../src/sim/Faults.ts"
import { add, added } from "../services/records.ts"
import { connection, contention, holding, lasting, makeWorld, outcome, told, type World, workspaceId } from "./databaseWorld.ts"

const issued = ({ database }: World) => Number(database.committed.accounts.get(workspaceId)!.balances.issued)
const grant = ({ ledger }: World) => ledger.grant(workspaceId, 1n, "one")
const inTransaction = (world: World) => world.transaction(grant(world))

/** A world in which `what` meets this fault, and how it ended: `dead` if its process did not live to hear. */
const struck = (kind: FaultKind, label: string, what: (world: World) => Effect.Effect<unknown, unknown>) => {
  const world = makeWorld({ faults: [{ actor: "caller#1", label, index: 0, kind }] })
  const caller = world.start("caller", 10, lasting(what(world)))
  world.kernel.run({ forMs: 30_000, until: () => caller.dead })
  assert.deepStrictEqual(world.unused(), [])
  const { exit, ms } = caller.exit === null ? { exit: null, ms: 0 } : outcome(caller)
  return { world, ms, end: exit === null ? "dead" : Exit.isSuccess(exit) ? "done" : told(exit) }
}

const [nothing, written] = [100, 101]

describe("a statement by itself", () => {
  const fates = [
    ["lost_before_send", connection, nothing],
    ["in_doubt", connection, written],
    ["serialization_failure", contention, nothing],
    ["deadlock", contention, nothing],
    ["slow_statement", "done", written],
    ["crash_before", "dead", nothing],
    ["crash_after", "dead", written]
  ] as const
  it.each(fates)("that meets %s", (kind, end, durable) => {
    const { end: found, ms, world } = struck(kind, "ledger.grant", grant)
    assert.deepStrictEqual(found, end)
    assert.strictEqual(issued(world), durable)
    if (kind === "slow_statement") assert.isAbove(ms, 20)
    world.settle()
    assert.strictEqual(issued(world), durable)
  })
})

describe("a transaction", () => {
  const fates = [
    ["begin", "lost_before_send", connection, nothing],
    ["begin", "in_doubt", connection, nothing],
    ["begin", "slow_statement", "done", written],
    ["begin", "crash_before", "dead", nothing],
    ["begin", "crash_after", "dead", nothing],
    ["ledger.grant", "lost_before_send", connection, nothing],
    ["ledger.grant", "in_doubt", connection, nothing],
    ["ledger.grant", "serialization_failure", contention, nothing],
    ["ledger.grant", "deadlock", contention, nothing],
    ["ledger.grant", "slow_statement", "done", written],
    ["ledger.grant", "crash_before", "dead", nothing],
    ["ledger.grant", "crash_after", "dead", nothing],
    ["commit", "lost_before_send", connection, nothing],
    ["commit", "lost_acknowledgement", connection, written],
    ["commit", "serialization_failure", contention, nothing],
    ["commit", "slow_statement", "done", written],
    ["commit", "crash_before", "dead", nothing],
    ["commit", "crash_after", "dead", written]
  ] as const
  it.each(fates)("that meets, at its %s, %s", (label, kind, end, durable) => {
    const { end: found, world } = struck(kind, label, inTransaction)
    assert.deepStrictEqual(found, end)
    // Whatever it held is free a little later, whoever has lived to see it.
    const next = world.start("next", 0, lasting(world.transaction(world.ledger.lock([workspaceId]))))
    world.settle()
    assert.isTrue(Exit.isSuccess(outcome(next).exit))
    assert.isBelow(outcome(next).ms, 3_100)
    assert.strictEqual(issued(world), durable)
  })

  for (const [kind, end] of [["lost_before_send", connection], ["in_doubt", connection], ["crash_before", "dead"]] as const) {
    it(`that meets ${kind} at its rollback has not happened, and hides why`, () => {
      const { end: found, world } = struck(kind, "rollback", (world) =>
        world.transaction(Effect.andThen(grant(world), Effect.fail("mine"))))
      assert.deepStrictEqual(found, end)
      world.settle()
      assert.strictEqual(issued(world), nothing)
    })
  }

  it("whose commit comes late holds what it has until then, and nobody is told", () => {
    const { end, ms, world } = struck("late_commit", "commit", inTransaction)
    assert.deepStrictEqual(end, connection)
    assert.isBelow(ms, 20)
    assert.strictEqual(issued(world), nothing)
    const next = world.start("next", 0, Effect.map(world.transaction(world.ledger.lock([workspaceId])), ([row]) => row!.balances.issued))
    world.settle()
    assert.strictEqual(outcome(next), 101n)
    const [commit] = world.commits
    assert.strictEqual(commit!.by, "caller#1")
    assert.isAbove(commit!.at - world.kernel.epochMs - commit!.sentAt, 5)
  })

  it("does not go on with a connection that is gone, and is not told anything else", () => {
    const world = makeWorld({ faults: [{ actor: "caller#1", label: "ledger.balances", index: 0, kind: "in_doubt" }] })
    const swallowed = Effect.ignore(world.ledger.balances(workspaceId))
    const caller = world.start("caller", 10, Effect.exit(world.transaction(Effect.andThen(swallowed, grant(world)))))
    world.settle()
    assert.deepStrictEqual(outcome(caller), Exit.fail(connection))
    assert.deepStrictEqual(world.points.map(({ label }) => label), ["begin", "ledger.balances"])
  })
})

describe("a process that dies", () => {
  it("has sent what it has sent", () => {
    const world = makeWorld()
    const caller = world.start("caller", 10, grant(world))
    // After it has left, and before it can have arrived.
    world.kernel.after(10.05, "crash", () => caller.crash())
    world.settle()
    assert.strictEqual(issued(world), written)
    assert.strictEqual(world.commits[0]!.by, "caller#1")
    assert.isAtMost(world.commits[0]!.sentAt, world.began + 10.05)
  })

  it("leaves a transaction that is undone a little later, after what it had sent", () => {
    const world = makeWorld()
    const caller = world.start("caller", 10, holding(world, 1_000))
    world.kernel.after(100, "crash", () => caller.crash())
    const next = world.start("next", 90, lasting(world.ledger.lock([workspaceId])))
    world.settle()
    assert.isTrue(Exit.isSuccess(outcome(next).exit))
    assert.isAbove(outcome(next).ms, 10)
    assert.isBelow(outcome(next).ms, 3_100)
  })

  it("has its statement done even after a wait", () => {
    const world = makeWorld()
    world.start("holder", 0, holding(world, 200))
    const caller = world.start("caller", 50, grant(world))
    world.kernel.after(100, "crash", () => caller.crash())
    world.settle()
    assert.strictEqual(issued(world), written)
  })

  it("commits what it had asked to be committed, and nothing else", () => {
    let committed = 0
    for (let seed = 0; seed < 20; seed++) {
      const world = makeWorld({ seed })
      const caller = world.start("caller", 10, inTransaction(world))
      let died = 0
      world.kernel.after(10 + seed / 3, "crash", () => {
        caller.crash()
        died = world.kernel.now
      })
      world.settle()
      assert.strictEqual(issued(world) - nothing, world.commits.length)
      for (const { sentAt } of world.commits) assert.isAtMost(sentAt, died)
      committed += world.commits.length
    }
    assert.isAbove(committed, 0)
    assert.isBelow(committed, 20)
  })

  it("stands still with an open transaction for no longer than a minute", () => {
    const world = makeWorld()
    const caller = world.start("caller", 10, lasting(inTransaction(world).pipe(Effect.andThen(holding(world, 1_000)))))
    world.kernel.after(100, "pause", () => caller.pause())
    const waiters = [1, 40].map((second) =>
      world.start(`waiter-${second}`, 1_000 * second, lasting(world.ledger.lock([workspaceId]))))
    const late = world.start("late", 59_000, lasting(world.ledger.lock([workspaceId])))
    world.kernel.after(90_000, "resume", () => caller.resume())
    world.settle()
    for (const waiter of waiters) assert.deepStrictEqual(outcome(waiter).exit, Exit.fail(contention))
    assert.isTrue(Exit.isSuccess(outcome(late).exit))
    assert.closeTo(outcome(late).ms, 1_050, 50)
    assert.deepStrictEqual(outcome(caller).exit, Exit.fail(connection))
  })
})

describe("a database that goes down", () => {
  it("undoes what is open, whoever waits hears nothing but that, and nobody gets in before it is up", () => {
    const world = makeWorld()
    const holder = world.start("holder", 0, lasting(holding(world, 1_000)))
    const waiting = world.start("waiting", 50, lasting(grant(world)))
    const inside = world.start("inside", 60, lasting(inTransaction(world)))
    const early = world.start("early", 200, lasting(grant(world)))
    const later = world.start("later", 700, lasting(grant(world)))
    world.kernel.after(100, "down", () => world.database.down(500))
    world.settle()
    const lost = [outcome(holder).exit, outcome(waiting).exit, outcome(inside).exit, outcome(early).exit]
    assert.deepStrictEqual(lost, lost.map(() => Exit.fail(connection)))
    assert.isBelow(outcome(waiting).ms, 55)
    assert.deepStrictEqual(outcome(later).exit, Exit.succeed(true))
    assert.deepStrictEqual(world.commits.map(({ by }) => by), ["later#1"])
  })

  for (const kind of ["late_commit", "slow_statement"] as const) {
    it(`loses what would have come later: ${kind}`, () => {
      let lost = 0
      for (let seed = 0; seed < 12; seed++) {
        const label = kind === "late_commit" ? "commit" : "ledger.grant"
        const world = makeWorld({ seed, faults: [{ actor: "caller#1", label, index: 0, kind }] })
        world.start("caller", 10, Effect.exit(inTransaction(world)))
        world.kernel.after(25, "down", () => world.database.down(10))
        world.settle()
        assert.deepStrictEqual(world.unused(), [])
        if (issued(world) === nothing) lost++
        // Nobody has it any more.
        const next = world.start("next", 0, lasting(world.ledger.lock([workspaceId])))
        world.settle()
        assert.isBelow(outcome(next).ms, 10)
      }
      assert.isAbove(lost, 6)
    })
  }
})

describe("a request of the vector index", () => {
  const unavailable = new VectorIndexFailure({ reason: "unavailable" })
  const fates = [
    ["index_down", unavailable, 0],
    ["index_lost_reply", unavailable, 1],
    ["index_slow", "done", 1],
    ["crash_before", "dead", 0],
    ["crash_after", "dead", 1]
  ] as const
  it.each(fates)("that meets %s", (kind, end, durable) => {
    const memory = added(workspaceId, "one")
    const put = ({ index, memories }: World) =>
      Effect.andThen(memories.write([add(memory)]), index.put([{ ...memory, vector: Float32Array.of(1, 0) }]))
    const { end: found, world } = struck(kind, "index.put", put)
    assert.deepStrictEqual(found, end)
    assert.strictEqual(world.database.committed.vectors.size, durable)
    if (durable === 1) assert.isTrue(world.database.committed.vectors.has(refKey(memory)))
  })

  it("is no part of the transaction that it is made in", () => {
    const memory = added(workspaceId, "one")
    const world = makeWorld()
    const put = world.index.put([{ ...memory, vector: Float32Array.of(1, 0) }])
    const caller = Effect.andThen(world.memories.write([add(memory)]), world.transaction(Effect.andThen(put, Effect.fail("no"))))
    world.start("caller", 0, Effect.exit(caller))
    world.settle()
    assert.strictEqual(world.database.committed.vectors.size, 1)
  })
})

describe("points", () => {
  it("are named by the incarnation, the statement and how often it has been made", () => {
    const world = makeWorld()
    world.start("caller", 0, Effect.andThen(inTransaction(world), Effect.andThen(grant(world), inTransaction(world))))
    world.settle()
    assert.deepStrictEqual(world.points.map(({ actor, index, label }) => `${actor} ${label} ${index}`), [
      "caller#1 begin 0",
      "caller#1 ledger.grant 0",
      "caller#1 commit 0",
      "caller#1 ledger.grant 1",
      "caller#1 begin 1",
      "caller#1 ledger.grant 2",
      "caller#1 commit 1"
    ])
  })
})
