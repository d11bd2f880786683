/** What every `OperationStore` promises to workers: what they are offered, in which order, and for how long. */
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import type { Store } from "../../src/services/Store.ts"
import type { Transaction } from "../../src/services/Transaction.ts"
import {
  accepted,
  at,
  begin,
  claimed,
  done,
  failed,
  fromNow,
  hour,
  ids,
  many,
  type Open,
  postponed
} from "./operations.ts"
import { operationId, workspaceOf } from "./records.ts"

const minute = 60_000

export const suite = <R, E>(name: string, ports: Layer.Layer<Store | Transaction | R, E>, open: Open<R>) =>
  layer(ports, { excludeTestServices: true, timeout: "60 seconds" })(`OperationStore claims: ${name}`, (it) => {
    /** The store, when no operation of anybody is claimable. */
    const working = Effect.fnUntraced(function*(test: string) {
      const world = yield* begin(test, open)
      const claimable = (limit: number) =>
        Effect.map(world.run(world.operations.claimable(limit)), ({ operations }) => operations)
      /** Operations whose first attempt failed, to be tried again at these distances from now. */
      const retries = Effect.fnUntraced(function*(...distances: ReadonlyArray<number>) {
        // In a fair order that is another than the one in which they are due.
        const rows = yield* world.insert(...distances.map((_, fairTag) => accepted(world.workspaceId, { fairTag })))
        return yield* Effect.forEach(rows, (row, n) =>
          Effect.flatMap(fromNow(distances[n]!), (time) => world.become(row, claimed(time), postponed(time))))
      })
      return { ...world, claimable, retries }
    })

    it.effect("fresh operations are offered in fair order, equals in the order of acceptance", () =>
      Effect.gen(function*() {
        const { claimable, insert, workspaceId } = yield* working("fair")
        const other = yield* working("fair-other")
        const [c, a, d] = yield* insert(...[7, 3, 9].map((fairTag) => accepted(workspaceId, { fairTag })))
        const [b] = yield* other.insert(accepted(other.workspaceId, { fairTag: 3 }))
        assert.deepStrictEqual(yield* claimable(many), [a!, b!, c!, d!])
        assert.deepStrictEqual(yield* claimable(3), [a!, b!, c!])
        assert.deepStrictEqual(yield* claimable(1), [a!])
      }))

    it.effect("retries that are due come first, the longest due ahead, and fill half of a batch at most", () =>
      Effect.gen(function*() {
        const { claimable, insert, retries, workspaceId } = yield* working("retries")
        const fresh = yield* insert(...[1, 2, 3, 4].map((fairTag) => accepted(workspaceId, { fairTag })))
        const [second, fourth, oldest, third] = yield* retries(-3 * minute, -minute, -4 * minute, -2 * minute)
        const tags = ids(fresh)
        const due = ids([oldest!, second!, third!, fourth!])
        assert.deepStrictEqual(ids(yield* claimable(many)), [...due, ...tags])
        assert.deepStrictEqual(ids(yield* claimable(6)), [...due.slice(0, 3), ...tags.slice(0, 3)])
        const odd = ids(yield* claimable(5))
        const first = due.slice(0, odd.includes(third!.id) ? 3 : 2)
        assert.deepStrictEqual(odd, [...first, ...tags.slice(0, 5 - first.length)])
        assert.deepStrictEqual(ids(yield* claimable(2)), [...due.slice(0, 1), ...tags.slice(0, 1)])
      }))

    it.effect("retries alone fill half of a batch, fresh operations alone all of it", () =>
      Effect.gen(function*() {
        const { claimable, insert, retries, workspaceId } = yield* working("half")
        const [, first, second] = yield* retries(-minute, -3 * minute, -2 * minute)
        assert.deepStrictEqual(yield* claimable(4), [first!, second!])
        const fresh = yield* insert(...Array.from({ length: 4 }, (_, fairTag) => accepted(workspaceId, { fairTag })))
        assert.deepStrictEqual(yield* claimable(4), [first!, second!, fresh[0]!, fresh[1]!])
      }))

    it.effect("neither retries nor fresh operations starve where one is offered at a time", () =>
      Effect.gen(function*() {
        const { claimable, insert, retries, workspaceId } = yield* working("one")
        const [due] = yield* retries(-minute)
        assert.deepStrictEqual(yield* claimable(1), [due!])
        const [fresh] = yield* insert(accepted(workspaceId))
        const offers = (yield* Effect.forEach(Array.from({ length: 32 }), () => claimable(1))).flat()
        assert.strictEqual(offers.length, 32)
        assert.deepStrictEqual([...new Set(ids(offers))].toSorted(), ids([due!, fresh!]))
      }))

    it.effect("nothing is offered that is behind another, not due, under way or at its end", () =>
      Effect.gen(function*() {
        const { become, claimable, insert, operations, retries, workspaceId } = yield* working("offered")
        const [head, running, lost, ended] = yield* insert(...[1, 2, 3, 4].map(() => accepted(workspaceId)))
        yield* insert(accepted(workspaceId, { scope: head!.scope, ready: false }), done(workspaceId))
        yield* become(running!, claimed(yield* fromNow(hour)))
        yield* become(lost!, claimed(yield* fromNow(-hour)))
        yield* become(ended!, failed(at(1)))
        yield* retries(hour)
        assert.deepStrictEqual(yield* claimable(many), [head!])
        assert.deepStrictEqual(yield* operations.get(head!), head, "an offer changes nothing")
      }))

    it.effect("an operation that was given back is offered again, and one that was reopened in its new place", () =>
      Effect.gen(function*() {
        const { become, claimable, insert, operations, workspaceId } = yield* working("again")
        const rows = [1, 2, 3].map((fairTag) => accepted(workspaceId, { fairTag }))
        const [released, reopened, other] = yield* insert(...rows)
        const back = yield* become(released!, claimed(yield* fromNow(hour)), { _tag: "Released" })
        const seq = yield* operations.nextSeq
        const anew = { _tag: "Reopened", authorizationNo: 2, seq, ready: true, fairTag: 3, at: at(9) } as const
        const behind = yield* become(reopened!, failed(at(1)), anew)
        assert.deepStrictEqual(yield* claimable(many), [back, other!, behind])
      }))

    it.effect("offers come with the clock by which they are due", () =>
      Effect.gen(function*() {
        const { become, insert, operations, retries, run, workspaceId } = yield* working("clock")
        const [due] = yield* retries(0)
        const [running] = yield* insert(accepted(workspaceId))
        yield* become(running!, claimed(yield* fromNow(-1)))
        const before = yield* operations.now
        for (const offer of [operations.claimable(1), operations.expired(1)]) {
          const { now, operations: [operation] } = yield* run(offer)
          assert.isDefined(operation)
          assert.isAtLeast(now, before)
          assert.isAtMost(now, yield* operations.now)
        }
        assert.isAtLeast(before, due!.nextAttemptAt!)
      }))

    it.effect("whatever runs past its lease is offered for takeover, and nothing else is", () =>
      Effect.gen(function*() {
        const { become, insert, operations, run, workspaceId } = yield* working("expired")
        const rows = yield* insert(...Array.from({ length: 6 }, () => accepted(workspaceId)))
        const [holder, pending, ended, ...lost] = rows
        yield* become(holder!, claimed(yield* fromNow(hour)))
        yield* become(pending!, claimed(yield* fromNow(-hour)), { _tag: "Released" })
        yield* become(ended!, claimed(yield* fromNow(-hour)), failed(at(1)))
        const time = yield* fromNow(-minute)
        const expired = yield* Effect.forEach(lost, (row) => become(row, claimed(time)))
        const offered = yield* run(operations.expired(many))
        assert.deepStrictEqual(offered.operations.toSorted((a, b) => a.seq - b.seq), expired)
        assert.strictEqual((yield* run(operations.expired(2))).operations.length, 2)
        yield* operations.renew([expired[0]!], hour)
        assert.deepStrictEqual(ids((yield* run(operations.expired(many))).operations).toSorted(), ids(expired.slice(1)))
      }))

    it.effect("a lease is renewed by the clock of the store, and nothing else of the operation changes", () =>
      Effect.gen(function*() {
        const { become, insert, operations, workspaceId } = yield* working("renew")
        const rows = yield* insert(accepted(workspaceId), accepted(workspaceId))
        const [ahead, past] = yield* Effect.forEach(rows, (row, n) =>
          Effect.flatMap(fromNow(n === 0 ? minute : -minute), (time) => become(row, claimed(time))))
        const before = yield* operations.now
        const renewed = yield* operations.renew([ahead!, past!], hour)
        const after = yield* operations.now
        assert.deepStrictEqual(
          renewed.toSorted((a, b) => a.id < b.id ? -1 : 1),
          [ahead!, past!].map(({ epoch, id }) => ({ workspaceId, id, epoch })),
          "one that ran out holds until somebody takes it"
        )
        for (const operation of [ahead!, past!]) {
          const now = yield* operations.get(operation)
          assert.deepStrictEqual(now, { ...operation, leaseExpiresAt: now!.leaseExpiresAt })
          assert.isAtLeast(now!.leaseExpiresAt!, before + hour)
          assert.isAtMost(now!.leaseExpiresAt!, after + hour)
        }
      }))

    it.effect("a lease that is lost is not renewed, and whoever has the operation keeps his", () =>
      Effect.gen(function*() {
        const { become, insert, operations, workspaceId } = yield* working("lost")
        const rows = yield* insert(...Array.from({ length: 5 }, () => accepted(workspaceId)))
        const [mine, taken, ended, released, waiting] = yield* Effect.forEach(rows, (row) =>
          Effect.flatMap(fromNow(minute), (time) => become(row, claimed(time))))
        const stay = yield* Effect.all([
          Effect.flatMap(fromNow(2 * hour), (time) => become(taken!, claimed(time, "another"))),
          become(ended!, failed(at(1))),
          become(released!, { _tag: "Released" }),
          become(waiting!, postponed(yield* fromNow(hour)))
        ])
        const leases = [taken!, ended!, released!, waiting!, mine!]
        const foreign = [{ workspaceId: workspaceOf("elsewhere") }, { id: operationId() }, { epoch: 0 }, { epoch: 2 }]
        const renewed = yield* operations.renew([...leases, ...foreign.map((other) => ({ ...mine!, ...other }))], 1)
        assert.deepStrictEqual(renewed, [{ workspaceId, id: mine!.id, epoch: mine!.epoch }])
        for (const operation of stay) assert.deepStrictEqual(yield* operations.get(operation), operation)
      }))

    it.effect("the fair clock moves on, and never goes back", () =>
      Effect.gen(function*() {
        const { operations } = yield* working("fair-clock")
        const { clock } = yield* operations.fairClock
        for (const [to, then] of [[10, 10], [5, 10], [10, 10], [0, 10], [11, 11], [-1, 11]] as const) {
          yield* operations.advanceFairClock(clock + to)
          assert.strictEqual((yield* operations.fairClock).clock, clock + then)
        }
        const before = yield* operations.now
        const { now } = yield* operations.fairClock
        assert.isAtLeast(now, before)
        assert.isAtMost(now, yield* operations.now)
      }))
  })
