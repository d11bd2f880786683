/** What every `MemoryStore` promises to projectors, whatever it is made of. */
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import type { WorkspaceId } from "../../src/domain/Ids.ts"
import type { ClaimedProjection } from "../../src/services/MemoryStore.ts"
import { Store } from "../../src/services/Store.ts"
import { add, added, operationId, remove, workspaceOf } from "./records.ts"

const hour = 3_600_000

const versions = (claimed: ReadonlyArray<ClaimedProjection>) =>
  claimed.map(({ projection }) => `${projection.id} ${projection.version}`).toSorted()

/** `open` makes a workspace, where one has to exist before its memories do. */
export const suite = <R, E>(
  name: string,
  store: Layer.Layer<Store | R, E>,
  open: (workspaceId: WorkspaceId) => Effect.Effect<unknown, unknown, R>
) =>
  layer(store, { excludeTestServices: true, timeout: "60 seconds" })(`Projections: ${name}`, (it) => {
    /** The store, and a workspace with nothing in it, when nobody's projections are due. */
    const begin = Effect.fnUntraced(function*(test: string) {
      const workspaceId = workspaceOf(test)
      yield* open(workspaceId)
      const { memories } = yield* Store
      const settle = Effect.flatMap(memories.claimProjections(1_000, hour), (claimed) =>
        Effect.as(memories.finishProjections(claimed.map(({ projection }) => projection)), claimed.length))
      yield* Effect.repeat(settle, { until: (count) => count === 0 })
      return { memories, workspaceId }
    })

    it.effect("every version awaits projection, and no two projectors get the same one", () =>
      Effect.gen(function*() {
        const { memories, workspaceId } = yield* begin("claims")
        const all = Array.from({ length: 12 }, (_, n) => added(workspaceId, `memory ${n}`))
        yield* memories.write(all.map(add))
        const claims = yield* Effect.all(Array.from({ length: 4 }, () => memories.claimProjections(3, hour)), {
          concurrency: "unbounded"
        })
        const rest = yield* memories.claimProjections(100, hour)
        assert.deepStrictEqual(versions([...claims.flat(), ...rest]), all.map(({ id }) => `${id} 1`).toSorted())
        assert.isTrue(claims.every((claimed) => claimed.length <= 3))
        assert.deepStrictEqual(yield* memories.claimProjections(100, hour), [])
        const [first] = claims.flat()
        assert.deepStrictEqual(first!.memory, all.find(({ id }) => id === first!.projection.id))
        assert.strictEqual(first!.projection.attempts, 1)
        assert.strictEqual(first!.projection.operationId, first!.memory!.operationId)
      }))

    it.effect("a claim that ran out is claimed again, and the attempts are counted", () =>
      Effect.gen(function*() {
        const { memories, workspaceId } = yield* begin("ran-out")
        yield* memories.write([add(added(workspaceId, "one"))])
        yield* memories.claimProjections(10, 0)
        const [again] = yield* memories.claimProjections(10, hour)
        assert.strictEqual(again!.projection.attempts, 2)
      }))

    it.effect("what is finished never comes back, and what is postponed comes back when it is due", () =>
      Effect.gen(function*() {
        const { memories, workspaceId } = yield* begin("finish")
        yield* memories.write(["a", "b", "c"].map((text) => add(added(workspaceId, text))))
        const [done, soon, late] = (yield* memories.claimProjections(10, hour)).map(({ projection }) => projection)
        yield* memories.finishProjections([done!])
        yield* memories.postponeProjections([{ projection: soon!, delayMs: 0 }, { projection: late!, delayMs: hour }])
        const again = yield* memories.claimProjections(10, hour)
        assert.deepStrictEqual(again.map(({ projection }) => projection), [{ ...soon!, attempts: 2 }])
        yield* memories.finishProjections([done!])
        yield* memories.postponeProjections([{ projection: done!, delayMs: 0 }])
        assert.deepStrictEqual(yield* memories.claimProjections(10, hour), [])
      }))

    it.effect("a projector that lost its claim does not end the next one's", () =>
      Effect.gen(function*() {
        const { memories, workspaceId } = yield* begin("lost")
        yield* memories.write([add(added(workspaceId, "one"))])
        const [lost] = yield* memories.claimProjections(10, 0)
        yield* memories.claimProjections(10, hour)
        yield* memories.postponeProjections([{ projection: lost!.projection, delayMs: 0 }])
        assert.deepStrictEqual(yield* memories.claimProjections(10, hour), [])
      }))

    it.effect("a version that was replaced is claimed without a memory, a deletion with its tombstone", () =>
      Effect.gen(function*() {
        const { memories, workspaceId } = yield* begin("replaced")
        const memory = added(workspaceId, "one")
        const gone = remove(memory)
        yield* memories.write([add(memory)])
        yield* memories.write([gone])
        const claimed = yield* memories.claimProjections(10, hour)
        assert.deepStrictEqual(new Map(claimed.map((one) => [one.projection.version, one.memory])), new Map([
          [1, null],
          [2, gone.memory]
        ]))
      }))

    it.effect("an operation knows how much of it awaits projection, and after how many attempts", () =>
      Effect.gen(function*() {
        const { memories, workspaceId } = yield* begin("attempts")
        const operation = { workspaceId, id: operationId() }
        const mine = ["a", "b"].map((text) => added(workspaceId, text, { operationId: operation.id }))
        const other = added(workspaceId, "other")
        yield* memories.write([...mine, other].map(add))
        assert.deepStrictEqual(yield* memories.projectionAttempts([operation]), [{ ...operation, pending: 2, maxAttempts: 0 }])
        const claimed = yield* memories.claimProjections(10, hour)
        const first = claimed.find(({ projection }) => projection.id === mine[0]!.id)!.projection
        yield* memories.finishProjections([first])
        assert.deepStrictEqual(yield* memories.projectionAttempts([operation]), [{ ...operation, pending: 1, maxAttempts: 1 }])
        yield* memories.finishProjections(claimed.map(({ projection }) => projection))
        const left = yield* memories.projectionAttempts([operation, { workspaceId, id: other.operationId }])
        assert.deepStrictEqual(left, [])
      }))
  })
