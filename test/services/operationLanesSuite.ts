/** What every `OperationStore` promises of lanes: one head each, handed on in order, found again when it is lost. */
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import type { LaneRef } from "../../src/domain/Ids.ts"
import { laneOf } from "../../src/domain/Scope.ts"
import type { Store } from "../../src/services/Store.ts"
import type { Transaction } from "../../src/services/Transaction.ts"
import { accepted, at, begin, claimed, done, failed, hour, ids, many, type Open, postponed } from "./operations.ts"
import { workspaceOf } from "./records.ts"

const laneRef = ({ lane, workspaceId }: LaneRef): LaneRef => ({ workspaceId, lane })

const scopeOf = (user_id: string) => ({ scope: { user_id } })
const behind = (user_id: string) => ({ ...scopeOf(user_id), ready: false })

export const suite = <R, E>(name: string, ports: Layer.Layer<Store | Transaction | R, E>, open: Open<R>) =>
  layer(ports, { excludeTestServices: true, timeout: "60 seconds" })(`OperationStore lanes: ${name}`, (it) => {
    const lanes = Effect.fnUntraced(function*(test: string) {
      const world = yield* begin(test, open)
      const { operations, run } = world
      return {
        ...world,
        claimable: Effect.map(run(operations.claimable(many)), (offered) => ids(offered.operations)),
        next: (...rows: ReadonlyArray<LaneRef>) => operations.readyNext(rows.map(laneRef)),
        lane: (user_id: string): LaneRef => ({ workspaceId: world.workspaceId, lane: laneOf({ user_id }) })
      }
    })

    it.effect("a lane is occupied while one of its operations is not at its end", () =>
      Effect.gen(function*() {
        const { become, insert, lane, operations, workspaceId } = yield* lanes("occupied")
        const [, running, ended, postponedOne] = yield* insert(
          ...["pending", "running", "failed", "postponed"].map((user) => accepted(workspaceId, scopeOf(user))),
          accepted(workspaceId, behind("behind")),
          done(workspaceId, scopeOf("succeeded")),
          done(workspaceId, scopeOf("pending"))
        )
        yield* become(running!, claimed(at(0)))
        yield* become(ended!, failed(at(0)))
        yield* become(postponedOne!, claimed(at(0)), postponed(at(hour)))
        const users = ["succeeded", "running", "failed", "postponed", "unknown", "pending", "behind"]
        const occupied = yield* operations.occupiedLanes(users.map(lane))
        assert.deepStrictEqual(sorted(occupied), sorted(["pending", "running", "postponed", "behind"].map(lane)))
        const elsewhere = { ...lane("pending"), workspaceId: workspaceOf("elsewhere") }
        assert.deepStrictEqual(yield* operations.occupiedLanes([elsewhere]), [])
      }))

    it.effect("a lane is handed to its next in order of places, one at a time, until it is empty", () =>
      Effect.gen(function*() {
        const { become, claimable, insert, next, workspaceId } = yield* lanes("handed")
        // Ids that grow with time, accepted the other way round: places decide.
        const places = [behind, behind, scopeOf]
        const [third, second, first] = places.map((place) => accepted(workspaceId, place("ana")))
        const [a, b, c] = yield* insert(first!, second!, third!)
        assert.deepStrictEqual(yield* claimable, ids([a!]))
        yield* become(a!, failed(at(1)))
        assert.deepStrictEqual(yield* claimable, [], "nobody was told to go on")
        assert.strictEqual(yield* next(a!), 1)
        assert.deepStrictEqual(yield* claimable, ids([b!]))
        assert.strictEqual(yield* next(a!), 0)
        assert.deepStrictEqual(yield* claimable, ids([b!]))
        yield* become({ ...b!, ready: true }, failed(at(1)))
        assert.strictEqual(yield* next(b!), 1)
        assert.deepStrictEqual(yield* claimable, ids([c!]))
        yield* become({ ...c!, ready: true }, failed(at(1)))
        assert.strictEqual(yield* next(c!), 0)
        assert.deepStrictEqual(yield* claimable, [])
      }))

    it.effect("a lane waits for its head, be it claimed, given back or put off", () =>
      Effect.gen(function*() {
        const { become, insert, next, operations, workspaceId } = yield* lanes("waits")
        const rows = [scopeOf, behind].map((place) => accepted(workspaceId, place("ana")))
        const [head, follower] = yield* insert(...rows)
        let current = head!
        const fates = [[claimed(at(0))], [{ _tag: "Released" }], [claimed(at(0)), postponed(at(hour))]] as const
        for (const events of fates) {
          current = yield* become(current, ...events)
          assert.strictEqual(yield* next(head!), 0)
          assert.deepStrictEqual(yield* operations.get(follower!), follower)
        }
        yield* become(current, failed(at(1)))
        const { clock } = yield* operations.fairClock
        assert.strictEqual(yield* next(head!), 1)
        assert.deepStrictEqual(yield* operations.get(follower!), { ...follower!, ready: true, fairTag: clock + 1 })
      }))

    it.effect("whoever is handed a lane queues anew: after the clock, one after another, and never earlier than before", () =>
      Effect.gen(function*() {
        const { insert, next, operations, workspaceId } = yield* lanes("anew")
        const other = yield* lanes("anew-other")
        const { clock } = yield* operations.fairClock
        yield* operations.advanceFairClock(clock + 100)
        const tags = [["a", 1], ["b", 7], ["c", 500], ["d", 100]] as const
        const rows = yield* insert(
          ...tags.map(([user, tag]) => accepted(workspaceId, { ...behind(user), fairTag: clock + tag })),
          accepted(workspaceId, { ...scopeOf("held"), fairTag: clock + 1 })
        )
        const [theirs] = yield* other.insert(accepted(other.workspaceId, { ...behind("a"), fairTag: clock + 9 }))
        assert.strictEqual(yield* next(...rows.toReversed(), theirs!), 5)
        const after = yield* Effect.forEach([...rows, theirs!], (row) => operations.get(row))
        assert.deepStrictEqual(after.map((row) => row!.fairTag - clock), [101, 102, 500, 104, 1, 101])
      }))

    it.effect("a reopened operation stands behind whoever is there, and is handed the lane in its new place", () =>
      Effect.gen(function*() {
        const { become, claimable, insert, next, operations, workspaceId } = yield* lanes("reopened")
        const [a, b] = yield* insert(accepted(workspaceId, scopeOf("ana")), accepted(workspaceId, behind("ana")))
        const ended = yield* become(a!, failed(at(1)))
        yield* next(a!)
        const seq = yield* operations.nextSeq
        yield* become(ended, { _tag: "Reopened", authorizationNo: 2, seq, ready: false, fairTag: 0, at: at(2) })
        const [c] = yield* insert(accepted(workspaceId, behind("ana")))
        assert.deepStrictEqual(yield* claimable, ids([b!]))
        yield* become({ ...b!, ready: true }, failed(at(3)))
        assert.strictEqual(yield* next(b!), 1)
        assert.deepStrictEqual(yield* claimable, ids([a!]))
        assert.isBelow(seq, c!.seq)
      }))

    it.effect("many lanes are handed on at once, each at most once, and no others", () =>
      Effect.gen(function*() {
        const { claimable, insert, next, workspaceId } = yield* lanes("many")
        const other = yield* lanes("many-other")
        const rows = ["one", "two", "untold"].map((user) => accepted(workspaceId, behind(user)))
        const [one, two, untold] = yield* insert(...rows)
        const [held] = yield* insert(accepted(workspaceId, scopeOf("held")), accepted(workspaceId, behind("held")))
        const [theirs] = yield* other.insert(accepted(other.workspaceId, behind("one")))
        const empty = done(workspaceId, scopeOf("empty"))
        assert.strictEqual(yield* next(two!, empty, one!, held!, two!, one!), 2)
        assert.deepStrictEqual((yield* claimable).toSorted(), ids([one!, two!, held!]).toSorted())
        assert.strictEqual(yield* next(untold!, theirs!), 2)
        assert.deepStrictEqual((yield* claimable).toSorted(), ids([one!, two!, untold!, held!, theirs!]).toSorted())
      }))

    it.effect("a lane whose hand-over was lost is found, however few are looked at in one go", () =>
      Effect.gen(function*() {
        const { become, insert, operations, workspaceId } = yield* lanes("stalled")
        const other = yield* lanes("stalled-other")
        const healthy = yield* insert(
          ...["a", "b", "c", "d"].map((user) => accepted(workspaceId, scopeOf(user))),
          accepted(workspaceId, behind("a")),
          accepted(workspaceId, behind("a"))
        )
        const stalled = [
          ...(yield* insert(...["e", "f", "g"].map((user) => accepted(workspaceId, behind(user))))),
          ...(yield* other.insert(accepted(other.workspaceId, behind("a"))))
        ]
        yield* insert(accepted(workspaceId, behind("e")), done(workspaceId, scopeOf("h")))
        yield* become(healthy[1]!, claimed(at(0)))
        yield* become(healthy[2]!, claimed(at(0)), postponed(at(hour)))
        yield* become(healthy[3]!, failed(at(0)))
        const whole = yield* operations.stalledLanes(null, many)
        assert.isNull(whole.next)
        assert.deepStrictEqual(sorted(whole.stalled), sorted(stalled))
        assert.deepStrictEqual([...new Set(whole.stalled.flatMap((lane) => Object.keys(lane)))].toSorted(), ["lane", "workspaceId"])
        for (const scan of [1, 2, 3, 7]) {
          const found: Array<LaneRef> = []
          let after: LaneRef | null = null
          do {
            const page: typeof whole = yield* operations.stalledLanes(after, scan)
            assert.isAtMost(page.stalled.length, scan)
            found.push(...page.stalled)
            after = page.next
          } while (after !== null)
          assert.deepStrictEqual(sorted(found), sorted(stalled), `${scan} at a time`)
        }
        assert.strictEqual(yield* operations.readyNext(whole.stalled), 4)
        assert.deepStrictEqual((yield* operations.stalledLanes(null, many)).stalled, [])
      }))

    it.effect("lanes may be locked again by whoever has them, each as often as it is named", () =>
      Effect.gen(function*() {
        const { lane, operations, run } = yield* lanes("locked")
        const locked = run(Effect.andThen(
          operations.lockLanes([lane("b"), lane("a"), lane("b")]),
          operations.lockLanes([lane("a"), lane("c")])
        ))
        yield* locked
        yield* locked
      }))
  })

const sorted = (rows: ReadonlyArray<LaneRef>): ReadonlyArray<string> =>
  rows.map(({ lane, workspaceId }) => `${workspaceId}/${lane}`).toSorted()
