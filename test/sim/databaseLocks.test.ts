/** Who waits for whom in the simulated database, for how long, and what he finds then: as READ COMMITTED has it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Option } from "effect"
import type { WorkspaceId } from "../../src/domain/Ids.ts"
import { evolve, type Operation } from "../../src/domain/Operation.ts"
import { DatabaseDefect } from "../../src/sim/database/DatabaseError.ts"
import { accepted, at, bare, claimed } from "../services/operations.ts"
import { add, added, update } from "../services/records.ts"
import { contention, grantOf, holding, lasting, makeWorld, outcome, spender, told, type World, workspaceId } from "./databaseWorld.ts"

/** A transaction that does something and stays open for so long. */
const open = ({ transaction }: World, effect: Effect.Effect<unknown, unknown>, ms: number, last: Effect.Effect<void, string> = Effect.void) =>
  transaction(effect.pipe(Effect.andThen(Effect.sleep(ms)), Effect.andThen(last)))

const rollBack = Effect.fail("rolled back")
const ends = [["commits", Effect.void, false], ["rolls back", rollBack, true]] as const

describe("a row that somebody has", () => {
  for (const [how, last, mine] of ends) {
    it(`is saved after a wait only as it was read, and he ${how}`, () => {
      const row = accepted(workspaceId)
      const world = makeWorld({ operations: [row] })
      const save = (owner: string) =>
        Effect.flatMap(world.operations.get(row), (from) =>
          world.operations.save([{ from: from!, to: evolve(from!, claimed(at(0), owner)) }]))
      world.start("holder", 0, open(world, save("holder"), 100, last))
      const waiter = world.start("waiter", 50, lasting(save("waiter")))
      world.settle()
      const { exit, ms } = outcome(waiter)
      assert.deepStrictEqual(exit, Exit.succeed(mine ? [{ workspaceId, id: row.id }] : []))
      assert.isAbove(ms, 40)
      assert.strictEqual([...world.database.committed.operations.values()][0]!.leaseOwner, mine ? "waiter" : "holder")
    })

    it(`is changed after a wait only from the version that was meant, and he ${how}`, () => {
      const world = makeWorld()
      const memory = added(workspaceId, "one")
      world.start("writer", 0, world.memories.write([add(memory)]))
      world.start("holder", 20, open(world, world.memories.write([update(memory, "his")]), 100, last))
      const waiter = world.start("waiter", 50, lasting(world.memories.write([update(memory, "mine")])))
      world.settle()
      const { exit, ms } = outcome(waiter)
      assert.deepStrictEqual(exit, Exit.succeed(mine ? [{ workspaceId, id: memory.id }] : []))
      assert.isAbove(ms, 40)
      assert.deepStrictEqual([...world.database.committed.memories.values()].map(({ text }) => text), [mine ? "mine" : "his"])
    })
  }

  it("is had in the order of asking", () => {
    const world = makeWorld()
    const had: Array<number> = []
    world.start("holder", 0, holding(world, 200))
    const take = (n: number) =>
      world.transaction(Effect.andThen(world.ledger.lock([workspaceId]), Effect.sync(() => had.push(n))))
    for (const n of [0, 1, 2, 3, 4]) world.start(`taker-${n}`, 10 + 20 * n, take(n))
    world.settle()
    assert.deepStrictEqual(had, [0, 1, 2, 3, 4])
  })

  it("is free as soon as something in his transaction has failed, before he rolls back", () => {
    const world = makeWorld()
    const nowhere = "nowhere" as WorkspaceId
    const failing = world.transaction(Effect.gen(function*() {
      yield* world.ledger.lock([workspaceId])
      yield* Effect.exit(world.ledger.grant(nowhere, 1n, "one"))
      yield* Effect.sleep(500)
      return yield* Effect.exit(world.ledger.balances(workspaceId))
    }))
    const failed = world.start("failing", 0, failing)
    const next = world.start("next", 5, lasting(world.transaction(world.ledger.lock([workspaceId]))))
    world.settle()
    assert.isBelow(outcome(next).ms, 50)
    // What comes after it is refused, and so is a commit.
    assert.isTrue(Exit.isFailure(failed.exit!))
    assert.isTrue(told(failed.exit!) instanceof DatabaseDefect)
  })

  it("is waited for no longer than ten seconds", () => {
    const world = makeWorld()
    world.start("holder", 0, holding(world, 30_000))
    const waiter = world.start("waiter", 100, lasting(world.ledger.lock([workspaceId])))
    world.settle()
    const { exit, ms } = outcome(waiter)
    assert.deepStrictEqual(exit, Exit.fail(contention))
    assert.closeTo(ms, 10_000, 5)
  })

  it("is not waited for by whoever is interrupted: what he had is free, and what he wanted does not happen", () => {
    const world = makeWorld()
    const { keys, ledger, transaction } = world
    const other = "other" as WorkspaceId
    world.start("accounts", 0, keys.makeWorkspace(other))
    world.start("holder", 10, holding(world, 300))
    const impatient = transaction(Effect.andThen(ledger.lock([other]), ledger.lock([workspaceId])))
    const all = [Effect.asVoid(impatient), Effect.asVoid(ledger.grant(workspaceId, 1n, "one"))]
      .map((effect) => Effect.timeoutOption(effect, 100))
    const gone = world.start("impatient", 20, Effect.all(all, { concurrency: "unbounded" }))
    const next = [other, workspaceId].map((id) => world.start(`next-${id}`, 50, lasting(ledger.lock([id]))))
    world.settle()
    assert.isTrue(outcome(gone).every(Option.isNone))
    assert.closeTo(outcome(next[0]!).ms, 70, 10)
    assert.closeTo(outcome(next[1]!).ms, 260, 10)
    assert.strictEqual(world.database.committed.accounts.get(workspaceId)!.balances.issued, 100n)
    assert.isFalse(world.database.blocked)
  })
})

describe("a statement that waited", () => {
  it("finds nothing that began to match while it waited", () => {
    const [a, b] = [spender(), spender()]
    const world = makeWorld({ operations: [a, b] })
    const [first, other] = [grantOf(a, 4n), grantOf(b, 3n)]
    const post = (move: ReturnType<typeof grantOf>) => world.ledger.post([move.authorization], move.transfers)
    world.start("reserve", 0, post(first))
    // Holds the authorization, but not the account.
    world.start("holder", 20, open(world, world.ledger.openAuthorizations([a]), 100))
    const waiter = world.start("waiter", 40, lasting(world.ledger.openAuthorizations([a, b])))
    world.start("late", 60, post(other))
    const afterwards = world.start("afterwards", 200, world.ledger.openAuthorizations([b]))
    world.settle()
    const { exit, ms } = outcome(waiter)
    assert.isAbove(ms, 60)
    assert.deepStrictEqual(exit, Exit.succeed([first.authorization]))
    assert.deepStrictEqual(outcome(afterwards), [other.authorization])
  })
})

describe("something that may be there once", () => {
  const key = (operation: Operation) => ({
    workspaceId,
    keyHash: operation.evidence.commandHash,
    commandVersion: 1,
    commandHash: operation.evidence.commandHash,
    operationId: operation.id
  })

  for (const [how, last, mine] of ends) {
    it(`is waited for while somebody is about to have it, and he ${how}`, () => {
      const [his, other] = [accepted(workspaceId), accepted(workspaceId)]
      const world = makeWorld()
      const insert = (operation: Operation) => world.operations.insert([bare(operation, { key: key(operation) })])
      world.start("holder", 0, open(world, insert(his), 100, last))
      const waiter = world.start("waiter", 20, lasting(insert(other)))
      const waiting = world.start("granting", 20, lasting(world.ledger.grant(workspaceId, 1n, "again")))
      world.settle()
      const { exit, ms } = outcome(waiter)
      assert.isAbove(ms, 60)
      assert.isBelow(outcome(waiting).ms, 10)
      assert.strictEqual(told(exit) instanceof DatabaseDefect, !mine)
      if (!mine) assert.include(String(told(exit)), "23505 idempotency_keys_pkey")
      assert.deepStrictEqual([...world.database.committed.keys.values()], [key(mine ? other : his)])
    })

    it(`is left out if it is taken, after a wait, and he ${how}`, () => {
      const world = makeWorld()
      const grant = world.ledger.grant(workspaceId, 5n, "same")
      world.start("holder", 0, open(world, grant, 100, last))
      const waiter = world.start("waiter", 20, lasting(grant))
      world.settle()
      const { exit, ms } = outcome(waiter)
      assert.isAbove(ms, 60)
      assert.deepStrictEqual(exit, Exit.succeed(mine))
      assert.strictEqual(world.database.committed.accounts.get(workspaceId)!.balances.issued, 105n)
    })
  }

  it("may be the head of a lane", () => {
    const scope = { user_id: "ana" }
    const [first, second] = [accepted(workspaceId, { scope }), accepted(workspaceId, { scope })]
    const world = makeWorld()
    world.start("holder", 0, open(world, world.operations.insert([bare(first)]), 100))
    const waiter = world.start("waiter", 20, lasting(world.operations.insert([bare(second)])))
    world.settle()
    assert.include(String(told(outcome(waiter).exit)), "23505 operations_lane_head")
  })
})

describe("a circle of waits", () => {
  /** Locks these, one after the other, with some time in between. */
  const cross = ({ ledger, transaction }: World, ids: ReadonlyArray<WorkspaceId>) =>
    lasting(transaction(Effect.forEach(ids, (id) => Effect.andThen(ledger.lock([id]), Effect.sleep(50)))))
  const places = ["a", "b", "c"] as ReadonlyArray<string> as ReadonlyArray<WorkspaceId>

  for (const size of [2, 3]) {
    it(`of ${size} is broken after a second, at whoever waited first, and the others go on`, () => {
      const world = makeWorld()
      world.start("accounts", 0, Effect.forEach(places, world.keys.makeWorkspace))
      const own = places.slice(0, size)
      const members = own.map((place, n) => world.start(`member-${n}`, 100 + 5 * n, cross(world, [place, own[(n + 1) % size]!])))
      world.settle()
      const [first, ...others] = members.map(outcome)
      assert.deepStrictEqual(first!.exit, Exit.fail(contention))
      assert.closeTo(first!.ms, 1_050, 20)
      for (const { exit } of others) assert.isTrue(Exit.isSuccess(exit))
    })
  }

  it("that closes after the second of whoever waited first is broken at whoever closed it", () => {
    const world = makeWorld()
    world.start("accounts", 0, Effect.forEach(places, world.keys.makeWorkspace))
    const { ledger, transaction } = world
    const slow = transaction(ledger.lock([places[0]!]).pipe(
      Effect.andThen(Effect.sleep(2_000)),
      Effect.andThen(ledger.lock([places[1]!]))
    ))
    const closing = world.start("closing", 100, lasting(slow))
    const first = world.start("first", 110, cross(world, [places[1]!, places[0]!]))
    world.settle()
    assert.deepStrictEqual(outcome(closing).exit, Exit.fail(contention))
    assert.closeTo(outcome(closing).ms, 3_000, 20)
    assert.isTrue(Exit.isSuccess(outcome(first).exit))
  })
})

describe("a put into the vector index", () => {
  it("waits for whoever changes its memory, and puts nothing of a version that has gone by", () => {
    const world = makeWorld()
    const memory = added(workspaceId, "one")
    world.start("writer", 0, world.memories.write([add(memory)]))
    world.start("holder", 20, open(world, world.memories.write([update(memory, "two")]), 100))
    const put = (version: number) => lasting(world.index.put([{ ...memory, version, vector: Float32Array.of(1, 0) }]))
    const puts = [world.start("put-1", 40, put(1)), world.start("put-2", 40, put(2))]
    world.settle()
    // The second is of a version that nobody can see yet: there is nothing to wait for, and nothing to put.
    assert.deepStrictEqual(puts.map((each) => outcome(each).ms > 60), [true, false])
    assert.strictEqual(world.database.committed.vectors.size, 0)
  })
})
