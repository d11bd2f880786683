/** What the simulated database shows to those who watch it, and what its schema refuses. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import type { WorkspaceId } from "../../src/domain/Ids.ts"
import { refKey } from "../../src/domain/Ids.ts"
import * as Money from "../../src/domain/Ledger.ts"
import { evolve, type Operation } from "../../src/domain/Operation.ts"
import { DatabaseDefect } from "../../src/sim/database/DatabaseError.ts"
import { accepted, at, bare, claimed, done, failed, postponed, said } from "../services/operations.ts"
import { add, added } from "../services/records.ts"
import { grantOf, lasting, makeWorld, outcome, spender, told, type World, workspaceId } from "./databaseWorld.ts"

describe("a commit", () => {
  it("is told once, with all its changes, when they are there to be seen", () => {
    const row = accepted(workspaceId)
    const world = makeWorld()
    const seen: Array<number> = []
    world.database.onCommit(({ changes }) => {
      for (const { after, key, table } of changes) {
        assert.strictEqual(world.database.committed[table].get(key), after ?? undefined)
      }
      seen.push(changes.length)
    })
    const both = world.transaction(Effect.gen(function*() {
      yield* world.operations.insert([bare(row, { input: said("tea") })])
      yield* world.ledger.grant(workspaceId, 1n, "one")
      yield* world.operations.redact([row])
    }))
    world.start("caller", 10, Effect.andThen(both, world.operations.get(row)))
    world.settle()
    assert.deepStrictEqual(seen, [3])
    const [commit] = world.commits
    assert.strictEqual(commit!.by, "caller#1")
    const now = commit!.at - world.kernel.epochMs
    assert.isBelow(commit!.sentAt, now)
    assert.isAbove(commit!.sentAt, world.began + 10)
    const changes = new Map(commit!.changes.map((change) => [change.table as string, change]))
    // What was written and taken back in one transaction has never been there.
    assert.deepStrictEqual([...changes.keys()], ["operations", "transfers", "accounts"])
    assert.isNull(changes.get("operations")!.before)
    assert.strictEqual(changes.get("operations")!.key, refKey(row))
    const moved = commit!.changes.find((change) => change.table === "accounts")!
    assert.deepStrictEqual([moved.before!.balances.available, moved.after!.balances.available], [100n, 101n])
  })

  it("that changes nothing is none, and neither is a rollback", () => {
    const world = makeWorld()
    const { ledger, operations, transaction } = world
    const nothing = Effect.all([
      operations.now,
      transaction(ledger.lock([workspaceId])),
      ledger.grant(workspaceId, 1n, "initial"),
      Effect.exit(transaction(Effect.andThen(ledger.grant(workspaceId, 1n, "one"), Effect.fail("no"))))
    ])
    world.start("caller", 0, nothing)
    world.settle()
    assert.deepStrictEqual(world.commits, [])
  })

  it("goes by one history a seed", () => {
    const history = (seed: number) => {
      const world = makeWorld({ seed, operations: Array.from({ length: 6 }, (_, n) => fixed(n)) })
      const claim = world.transaction(Effect.flatMap(world.operations.claimable(3), ({ operations }) =>
        world.operations.save(operations.map((from) => ({ from, to: evolve(from, claimed(at(0))) })))))
      for (const n of [1, 2, 3]) world.start(`worker-${n}`, 1, Effect.andThen(claim, claim))
      world.settle()
      return { hash: world.kernel.hash, commits: world.commits }
    }
    assert.deepStrictEqual(history(1), history(1))
    assert.notStrictEqual(history(1).hash, history(2).hash)
  })
})

/** One that is the same in every world. */
const fixed = (n: number): Operation => {
  const id = `01970000-0000-7000-8000-00000000000${n}` as Operation["id"]
  return { ...accepted(workspaceId, { scope: { user_id: id } }), id }
}

describe("rows", () => {
  it("come in any order where no statement promises one, and in one order a seed", () => {
    const rows = Array.from({ length: 5 }, (_, n) => added(workspaceId, `${n}`))
    const order = (seed: number) => {
      const world = makeWorld({ seed })
      const got = world.start("caller", 0, Effect.andThen(world.memories.write(rows.map(add)), world.memories.get(rows)))
      world.settle()
      return outcome(got).map(({ text }) => text).join("")
    }
    const orders = Array.from({ length: 12 }, (_, seed) => order(seed))
    assert.isAbove(new Set(orders).size, 6)
    assert.deepStrictEqual(Array.from({ length: 12 }, (_, seed) => order(seed)), orders)
  })

  it("have the place that a sequence gave them, which it gives to nobody else", () => {
    const world = makeWorld()
    const { nextSeq } = world.operations
    const undone = Effect.flip(world.transaction(Effect.andThen(nextSeq, Effect.fail("no"))))
    const got = world.start("caller", 0, Effect.all([nextSeq, undone, nextSeq]))
    world.settle()
    assert.deepStrictEqual(outcome(got), [1, "no", 3])
  })
})

describe("time", () => {
  it("is that of the database: of the transaction, of the statement, and of the moment", () => {
    const world = makeWorld({ operations: [fixed(1)], aheadMs: 5_000 })
    const offset = world.kernel.epochMs + 5_000
    const write = world.transaction(Effect.gen(function*() {
      yield* Effect.sleep(1_000)
      yield* world.memories.write([add(added(workspaceId, "one"))])
      yield* world.operations.announce([fixed(1)])
      return (yield* world.operations.now) - offset
    }))
    const late = world.start("late", 10, write)
    world.settle()
    const [begun, moment] = [world.began + 10, world.began + 1_010]
    const [projection] = world.database.committed.projections.values()
    const [announced] = world.database.committed.outbox.values()
    assert.closeTo(projection!.dueAt - offset, begun, 10)
    assert.closeTo(announced!.at - offset, moment, 10)
    assert.closeTo(outcome(late), moment, 15)
  })
})

describe("connections", () => {
  it("are bounded for each process: who finds none waits, but for a lease and in another process", () => {
    const row = accepted(workspaceId)
    const world = makeWorld({ operations: [row], connections: 2 })
    const { ledger, operations, transaction } = world
    const idle = transaction(Effect.andThen(ledger.balances(workspaceId), Effect.sleep(200)))
    const late = lasting(ledger.balances(workspaceId))
    const lease = lasting(operations.renew([{ ...row, epoch: 1 }], 1_000))
    const busy = Effect.all([idle, idle, Effect.delay(late, 50), Effect.delay(lease, 50)], { concurrency: "unbounded" })
    const caller = world.start("caller", 10, busy)
    const other = world.start("other", 60, late)
    world.settle()
    const [, , waited, renewed] = outcome(caller)
    assert.closeTo(waited.ms, 160, 10)
    assert.isBelow(renewed.ms, 5)
    assert.isBelow(outcome(other).ms, 5)
  })

  it("are not used by who is gone before one is free", () => {
    const world = makeWorld({ connections: 1 })
    const { ledger, transaction } = world
    const idle = transaction(Effect.andThen(ledger.balances(workspaceId), Effect.sleep(200)))
    const impatient = ledger.grant(workspaceId, 1n, "never").pipe(Effect.timeoutOption(50))
    const open = transaction(ledger.grant(workspaceId, 1n, "nor this")).pipe(Effect.timeoutOption(50))
    const patient = ledger.grant(workspaceId, 1n, "once")
    const late = [Effect.asVoid(impatient), Effect.asVoid(open), Effect.asVoid(patient)]
    const inTurn = late.map((effect, n) => Effect.delay(effect, 10 + 5 * n))
    const all = Effect.all([Effect.asVoid(idle), ...inTurn], { concurrency: "unbounded" })
    const caller = world.start("caller", 10, all)
    world.settle()
    assert.isTrue(Exit.isSuccess(caller.exit!))
    assert.deepStrictEqual([...world.database.committed.transfers.values()].map(({ reference }) => reference), ["initial", "once"])
  })

  it("come back from a transaction however it ends", () => {
    const world = makeWorld({
      connections: 1,
      faults: [
        { actor: "caller#1", label: "commit", index: 0, kind: "lost_acknowledgement" },
        { actor: "caller#1", label: "ledger.balances", index: 1, kind: "in_doubt" },
        { actor: "caller#1", label: "rollback", index: 1, kind: "lost_before_send" }
      ]
    })
    const { transaction } = world
    const ends = [Effect.void, Effect.void, Effect.fail("no"), Effect.die("bug"), Effect.interrupt]
    const all = Effect.forEach(ends, (end) => Effect.exit(transaction(Effect.andThen(world.ledger.balances(workspaceId), end))))
    const caller = world.start("caller", 10, Effect.andThen(all, lasting(world.ledger.balances(workspaceId))))
    world.settle()
    assert.isBelow(outcome(caller).ms, 5)
  })
})

describe("the schema refuses", () => {
  const rows = { fresh: accepted(workspaceId), spender: spender(), other: spender() }
  const { fresh } = rows
  const elsewhere = "elsewhere" as WorkspaceId
  const ended = evolve(fresh, failed(at(1)))
  const running = evolve(fresh, claimed(at(1_000), "one"))
  const save = ({ operations }: World, ...steps: ReadonlyArray<Operation>) =>
    Effect.forEach(steps.slice(1), (to, index) => operations.save([{ from: steps[index]!, to }]))
  const post = ({ ledger }: World, ...moves: ReadonlyArray<Pick<ReturnType<typeof grantOf>, "authorization" | "transfers">>) =>
    Effect.forEach(moves, ({ authorization, transfers }) => ledger.post([authorization], transfers))
  const grant = grantOf(rows.spender, 4n)
  const key = { ...fresh, keyHash: fresh.evidence.commandHash, commandVersion: 1, commandHash: fresh.evidence.commandHash }

  const refusals: ReadonlyArray<readonly [string, (world: World) => Effect.Effect<unknown, unknown>]> = [
    ["23000 operations_follow_their_states", (world) => save(world, fresh, ended, { ...running, epoch: ended.epoch })],
    ["23000 operations_follow_their_states", (world) => save(world, fresh, running, { ...running, leaseOwner: "two" })],
    ["23000 operations_follow_their_states", (world) => save(world, fresh, running, { ...running, epoch: 0 })],
    ["23514 running_holds_a_lease", (world) => save(world, fresh, { ...running, leaseOwner: null, leaseExpiresAt: null })],
    ["23514 lease_has_an_end", (world) => save(world, fresh, { ...running, leaseExpiresAt: null })],
    ["23514 terminal_is_completed", (world) => save(world, fresh, { ...ended, completedAt: null })],
    ["23514 success_has_an_outcome", (world) => save(world, fresh, { ...ended, state: "succeeded" })],
    ["23514 failure_has_a_class", (world) => save(world, fresh, { ...ended, failure: null })],
    ["23514 terminal_is_not_ready", (world) => save(world, fresh, { ...ended, ready: true })],
    ["23514 running_is_the_head", (world) => save(world, fresh, { ...running, ready: false })],
    ["23514 operations_attempts_check", (world) => save(world, fresh, { ...fresh, attempts: -1 })],
    ["23505 operations_pkey", ({ operations }) => operations.insert([bare(fresh)])],
    ["23503 operations_have_a_workspace", ({ operations }) => operations.insert([bare(done(elsewhere))])],
    ["23503 idempotency_keys_", ({ operations }) => operations.insertKeys([{ ...key, operationId: accepted(workspaceId).id }])],
    ["23503 memories_have_a_workspace", ({ memories }) => memories.write([add(added(elsewhere, "one"))])],
    ["23514 somebody_remembers", ({ memories }) => memories.write([add(added(workspaceId, "one", { scope: {} }))])],
    ["23514 accounts_available_check", (world) => post(world, grantOf(rows.spender, 101n))],
    ["23505 authorizations_one_live", (world) => post(world, grant, grantOf(rows.spender, 1n, 2))],
    ["23505 transfers_once", (world) => post(world, grant, grant)],
    ["23505 transfers_one_outcome", (world) => post(world, grant, Money.refund(grant.authorization), Money.charge(grant.authorization, 1n))],
    ["23514 charge_is_within_reserve", (world) => post(world, { ...grant, authorization: { ...grant.authorization, state: "charged", charged: 5n } })],
    ["23000 transfer_moves_what_was_authorized", ({ ledger }) => ledger.post([], grant.transfers)],
    ["23503 authorizations_", (world) => post(world, grantOf(accepted(workspaceId), 1n))],
    ["23000 transfer_has_an_account", ({ ledger }) => ledger.grant(elsewhere, 1n, "one")]
  ]

  for (const [index, [constraint, attempt]] of refusals.entries()) {
    it(`${constraint} (${index})`, () => {
      const world = makeWorld({ operations: Object.values(rows) })
      const before = world.database.committed.operations.size
      const caller = world.start("caller", 0, lasting(attempt(world)))
      world.settle()
      const why = told(outcome(caller).exit)
      assert.isTrue(why instanceof DatabaseDefect, String(why))
      assert.include((why as DatabaseDefect).message, constraint)
      assert.strictEqual(world.database.committed.operations.size, before)
    })
  }

  it("nothing that is lawful", () => {
    const world = makeWorld({ operations: Object.values(rows) })
    const again = evolve(evolve(running, postponed(at(5))), claimed(at(2_000), "two"))
    const lawful = Effect.all([
      save(world, fresh, running, evolve(running, postponed(at(5))), again, evolve(again, failed(at(9)))),
      post(world, grant, Money.refund(grant.authorization), grantOf(rows.spender, 1n, 2))
    ])
    const caller = world.start("caller", 0, lasting(lawful))
    world.settle()
    assert.isTrue(Exit.isSuccess(outcome(caller).exit))
  })
})
