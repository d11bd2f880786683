/** What every `OperationStore` promises with several transactions open: who waits for whom, and what he finds then. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, type Layer } from "effect"
import { inLockOrder, Sha256Hex } from "../../src/domain/Ids.ts"
import { evolve, type Operation } from "../../src/domain/Operation.ts"
import { laneOf } from "../../src/domain/Scope.ts"
import type { Store } from "../../src/services/Store.ts"
import type { Transaction } from "../../src/services/Transaction.ts"
import { hash } from "../domain/samples.ts"
import * as Interleaving from "./interleaving.ts"
import {
  accepted,
  at,
  bare,
  begin,
  claimed,
  failed,
  fromNow,
  hour,
  ids,
  many,
  type Open,
  planOf
} from "./operations.ts"

const together = { concurrency: "unbounded" } as const

/** Nine operations in no order at all. */
const shuffled = <A>(nine: ReadonlyArray<A>): ReadonlyArray<A> =>
  [7, 2, 8, 0, 4, 6, 1, 5, 3].map((place) => nine[place]!)

/** `blocked` returns once a transaction waits for another. */
export const concurrentSuite = <R, E>(
  name: string,
  ports: Layer.Layer<Store | Transaction | R, E>,
  open: Open<R>,
  blocked: Effect.Effect<unknown, unknown, R>
) =>
  layer(ports, { excludeTestServices: true, timeout: "60 seconds" })(`OperationStore together: ${name}`, (it) => {
    const after = <A, E1, B, E2>(first: Effect.Effect<A, E1>, second: Effect.Effect<B, E2>, rolledBack = false) =>
      Interleaving.after({ first, second, rolledBack, blocked })

    it.effect("whoever moves operations of a lane waits for whoever does already, and nobody else does", () =>
      Effect.gen(function*() {
        const { operations, run, workspaceId } = yield* begin("lanes", open)
        const lane = (user_id: string) => ({ workspaceId, lane: laneOf({ user_id }) })
        const lock = (...users: ReadonlyArray<string>) => operations.lockLanes(users.map(lane))
        yield* Interleaving.beside(lock("a", "b"), run(lock("c", "d")))
        yield* after(lock("a", "b"), run(lock("b", "c")))
        yield* after(lock("a", "b"), run(lock("b", "c")), true)
      }))

    it.effect("lanes are locked in one order, whatever order they are named in", () =>
      Effect.gen(function*() {
        const { operations, run, workspaceId } = yield* begin("lane-order", open)
        const lanes = Array.from({ length: 30 }, (_, n) => ({ workspaceId, lane: laneOf({ user_id: `${n}` }) }))
        const orders = Array.from({ length: 8 }, (_, n) => n % 2 === 0 ? lanes : lanes.toReversed())
        yield* Effect.forEach(orders, (order) => run(operations.lockLanes(order)), together)
      }))

    it.effect("a hand-over that happens twice at once happens once", () =>
      Effect.gen(function*() {
        const { insert, operations, run, workspaceId } = yield* begin("handover", open)
        const scope = { user_id: "ana" }
        const rows = yield* insert(...[1, 2, 3].map(() => accepted(workspaceId, { scope, ready: false })))
        const handOver = run(Effect.andThen(operations.lockLanes(rows), operations.readyNext(rows)))
        const made = yield* Effect.all([handOver, handOver, handOver, handOver], together)
        assert.deepStrictEqual(made.toSorted(), [0, 0, 0, 1])
        assert.deepStrictEqual((yield* run(operations.claimable(many))).operations.map(({ id }) => id), [rows[0]!.id])
      }))

    it.effect("no operation is offered to two workers, and none waits for the other's choice", () =>
      Effect.gen(function*() {
        const { insert, operations, run, workspaceId } = yield* begin("offers", open)
        const rows = yield* insert(...Array.from({ length: 6 }, (_, fairTag) => accepted(workspaceId, { fairTag })))
        const offer = (limit: number) => Effect.map(operations.claimable(limit), (offered) => ids(offered.operations))
        const others = yield* Interleaving.beside(operations.claimable(2), run(offer(3)))
        assert.deepStrictEqual(others, ids(rows.slice(2, 5)))
        assert.deepStrictEqual(yield* run(offer(many)), ids(rows), "nobody took what was offered")
        const claim = run(Effect.gen(function*() {
          const offered = yield* operations.claimable(2)
          const take = (from: Operation) => ({ from, to: evolve(from, claimed(at(hour))) })
          return yield* operations.save(offered.operations.map(take))
        }))
        const claims = yield* Effect.all([claim, claim, claim, claim], together)
        const rest = yield* run(offer(many))
        assert.deepStrictEqual([...claims.flatMap(ids), ...rest].toSorted(), ids(rows).toSorted())
      }))

    it.effect("nothing is taken over by two workers, and none waits for the other's choice", () =>
      Effect.gen(function*() {
        const { become, insert, operations, run, workspaceId } = yield* begin("takeovers", open)
        const rows = yield* insert(...Array.from({ length: 5 }, () => accepted(workspaceId)))
        const time = yield* fromNow(-hour)
        yield* Effect.forEach(rows, (row) => become(row, claimed(time)))
        const taken = Effect.map(operations.expired(2), (offered) => ids(offered.operations))
        const seen: Array<string> = []
        const first = Effect.tap(taken, (found) => Effect.sync(() => seen.push(...found)))
        const rest = Effect.map(operations.expired(many), (offered) => ids(offered.operations))
        const others = yield* Interleaving.beside(first, run(rest))
        assert.deepStrictEqual([...others, ...seen].toSorted(), ids(rows).toSorted())
        assert.strictEqual(seen.length, 2)
      }))

    it.effect("a lock waits for whoever has the row, and shows it as he left it", () =>
      Effect.gen(function*() {
        const { insert, operations, run, workspaceId } = yield* begin("waits", open)
        const [row, other] = yield* insert(accepted(workspaceId), accepted(workspaceId))
        const cancelled = evolve(row!, failed(at(7)))
        const cancel = Effect.andThen(operations.lock([row!]), operations.save([{ from: row!, to: cancelled }]))
        const lock = run(Effect.map(operations.lock([other!, row!]), (locked) => locked.operations))
        assert.deepStrictEqual(yield* after(cancel, lock, true), [row!, other!])
        assert.deepStrictEqual(yield* after(cancel, lock), [cancelled, other!])
      }))

    it.effect("rows are locked in one order, whatever order they are named in", () =>
      Effect.gen(function*() {
        const { become, insert, operations, run, workspaceId } = yield* begin("order", open)
        const rows = yield* insert(...shuffled(Array.from({ length: 9 }, () => accepted(workspaceId))))
        const time = yield* fromNow(-hour)
        const held = inLockOrder(yield* Effect.forEach(rows, (row) => become(row, claimed(time))))
        let free: ReadonlyArray<Operation> = []
        const blockedThere = Effect.andThen(
          blocked,
          Effect.map(run(operations.expired(many)), (offered) => void (free = offered.operations))
        )
        const taken = yield* Interleaving.after({
          first: operations.lock([held[4]!]),
          second: run(Effect.map(operations.lock(shuffled(held)), (locked) => locked.operations.length)),
          blocked: blockedThere
        })
        assert.strictEqual(taken, 9)
        assert.deepStrictEqual(ids(free).toSorted(), ids(held.slice(5)))
      }))

    it.effect("of saves of one row at the same time exactly one is written", () =>
      Effect.gen(function*() {
        const { insert, operations, workspaceId } = yield* begin("saves", open)
        const [row] = yield* insert(accepted(workspaceId))
        const taken = (n: number) => evolve(row!, claimed(at(n), `worker ${n}`))
        const save = (n: number) => operations.save([{ from: row!, to: taken(n) }])
        const written = yield* Effect.forEach([1, 2, 3, 4, 5], save, together)
        assert.strictEqual(written.flat().length, 1)
        const winner = written.findIndex((refs) => refs.length === 1) + 1
        assert.deepStrictEqual(yield* operations.get(row!), taken(winner))
      }))

    it.effect("a renewal waits for nobody, and leaves out what somebody is busy with or has taken over", () =>
      Effect.gen(function*() {
        const { become, insert, operations, workspaceId } = yield* begin("renewals", open)
        const rows = yield* insert(accepted(workspaceId), accepted(workspaceId))
        const time = yield* fromNow(-hour)
        const [mine, other] = yield* Effect.forEach(rows, (row) => become(row, claimed(time)))
        const taken = evolve(mine!, claimed(yield* fromNow(hour), "another"))
        const takeOver = Effect.andThen(operations.lock([mine!]), operations.save([{ from: mine!, to: taken }]))
        const renew = Effect.map(operations.renew([mine!, other!], 2 * hour), ids)
        assert.deepStrictEqual(yield* renew, ids([mine!, other!]))
        assert.deepStrictEqual(yield* Interleaving.beside(takeOver, renew), ids([other!]))
        assert.deepStrictEqual(yield* renew, ids([other!]))
        assert.deepStrictEqual(yield* operations.get(mine!), taken)
      }))

    it.effect("of plans frozen at the same time one is in force, and everybody is told which", () =>
      Effect.gen(function*() {
        const { insert, operations, run, workspaceId } = yield* begin("plans", open)
        const [one, two, three] = yield* insert(accepted(workspaceId), accepted(workspaceId), accepted(workspaceId))
        const freeze = (row: Operation, model: string) =>
          operations.freeze([{ workspaceId, id: row.id, plan: planOf(model) }]).pipe(
            Effect.map(([frozen]) => frozen!.plan.model)
          )
        assert.strictEqual(yield* after(freeze(one!, "first"), run(freeze(one!, "second"))), "first")
        assert.strictEqual(yield* after(freeze(two!, "first"), run(freeze(two!, "second")), true), "second")
        const told = yield* Effect.forEach(["a", "b", "c", "d"], (model) => run(freeze(three!, model)), together)
        assert.strictEqual(new Set(told).size, 1)
        assert.deepStrictEqual((yield* operations.work([three!]))[0]!.plan, planOf(told[0]!))
      }))

    it.effect("a key that is taken at the same time is taken once, by whoever commits", () =>
      Effect.gen(function*() {
        const { operations, run, workspaceId } = yield* begin("keys", open)
        const insert = (row: Operation, keyHash: Sha256Hex) =>
          operations.insert([
            bare(row, { key: { workspaceId, keyHash, commandVersion: 1, commandHash: hash, operationId: row.id } })
          ])
        const [undone, next, first, late] = [1, 2, 3, 4].map(() => accepted(workspaceId))
        const [one, two] = [hash, Sha256Hex.make("b".repeat(64))]
        yield* after(insert(undone!, one), run(insert(next!, one)), true)
        const refused = yield* after(insert(first!, two), Effect.exit(run(insert(late!, two))))
        assert.isTrue(Exit.hasDies(refused))
        const keys = yield* operations.findKeys([one, two].map((keyHash) => ({ workspaceId, keyHash })))
        assert.deepStrictEqual(keys.map(({ operationId }) => operationId).toSorted(), [next!.id, first!.id])
        assert.deepStrictEqual([yield* operations.get(undone!), yield* operations.get(late!)], [null, null])
      }))

    it.effect("places are given once, and the fair clock is as far as anybody moved it", () =>
      Effect.gen(function*() {
        const { operations } = yield* begin("counters", open)
        const places = yield* Effect.all(Array.from({ length: 20 }, () => operations.nextSeq), together)
        assert.strictEqual(new Set(places).size, 20)
        const { clock } = yield* operations.fairClock
        const moves = shuffled([1, 2, 3, 4, 5, 6, 7, 8, 9]).map((n) => operations.advanceFairClock(clock + n))
        yield* Effect.all(moves, together)
        assert.strictEqual((yield* operations.fairClock).clock, clock + 9)
      }))

    it.effect("what is accepted is offered from its commit on, and not a moment earlier", () =>
      Effect.gen(function*() {
        const { operations, run, workspaceId } = yield* begin("commit", open)
        const row = accepted(workspaceId)
        const offer = run(Effect.map(operations.claimable(many), (offered) => ids(offered.operations)))
        assert.deepStrictEqual(yield* Interleaving.beside(operations.insert([bare(row)]), offer), [])
        assert.deepStrictEqual(yield* offer, [row.id])
      }))
  })
