/** What every `VectorIndex` promises, whatever it is made of. */
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import type { WorkspaceId } from "../../src/domain/Ids.ts"
import type { Memory } from "../../src/domain/Memory.ts"
import type { ScopeFilter } from "../../src/domain/Scope.ts"
import { Store } from "../../src/services/Store.ts"
import { VectorIndex } from "../../src/services/VectorIndex.ts"
import { add, added, remove, update, workspaceOf } from "./records.ts"

/** The dimension of the index under test. */
export const dimension = 4

const vector = (...components: ReadonlyArray<number>) => Float32Array.from({ length: dimension }, (_, n) => components[n] ?? 0)
const east = vector(1)
const north = vector(0, 1)

/** `open` makes a workspace, where one has to exist before its memories do. */
export const suite = <R, E>(
  name: string,
  index: Layer.Layer<VectorIndex | Store | R, E>,
  open: (workspaceId: WorkspaceId) => Effect.Effect<unknown, unknown, R>
) =>
  layer(index, { excludeTestServices: true, timeout: "60 seconds" })(`VectorIndex: ${name}`, (it) => {
    const begin = Effect.fnUntraced(function*(test: string) {
      const workspaceId = workspaceOf(test)
      yield* open(workspaceId)
      const { memories } = yield* Store
      const vectors = yield* VectorIndex
      const near = (wanted: Float32Array, scope: ScopeFilter = {}, limit = 10) =>
        vectors.search({ workspaceId, scope, vector: wanted, limit })
      /** Adds memories, each with its vector in the index. */
      const indexed = Effect.fnUntraced(function*(rows: ReadonlyArray<readonly [Memory, Float32Array]>) {
        yield* memories.write(rows.map(([memory]) => add(memory)))
        yield* vectors.put(rows.map(([memory, direction]) => ({ ...memory, vector: direction })))
        return rows.map(([memory]) => memory.id)
      })
      return { indexed, memories, near, vectors, workspaceId }
    })

    it.effect("the nearest come first, with their cosine similarity, up to the limit", () =>
      Effect.gen(function*() {
        const { indexed, near, workspaceId } = yield* begin("nearest")
        const [same, half, right, opposite] = yield* indexed([
          [added(workspaceId, "same"), vector(2)],
          [added(workspaceId, "half"), vector(3, 3)],
          [added(workspaceId, "right angle"), vector(0, 0, 5)],
          [added(workspaceId, "opposite"), vector(-0.1)]
        ])
        const found = yield* near(vector(7))
        assert.deepStrictEqual(found.map(({ id }) => id), [same, half, right, opposite])
        for (const [place, score] of [1, Math.SQRT1_2, 0, -1].entries()) assert.closeTo(found[place]!.score, score, 1e-6)
        assert.deepStrictEqual((yield* near(east, {}, 2)).map(({ id }) => id), [same, half])
        assert.deepStrictEqual(yield* near(east, {}, 0), [])
      }))

    it.effect("a search stays in its workspace and in its scope", () =>
      Effect.gen(function*() {
        const mine = yield* begin("mine")
        const theirs = yield* begin("theirs")
        const id = mine.workspaceId
        const [ana, bot, ben] = yield* mine.indexed([
          [added(id, "ana"), east],
          [added(id, "ana and bot", { scope: { user_id: "ana", agent_id: "bot" } }), vector(1, 0.1)],
          [added(id, "ben", { scope: { user_id: "ben" } }), vector(1, 0.2)]
        ])
        yield* theirs.indexed([[added(theirs.workspaceId, "theirs"), east]])
        const ids = (scope: ScopeFilter) => Effect.map(mine.near(east, scope), (hits) => hits.map((hit) => hit.id))
        assert.deepStrictEqual(yield* ids({}), [ana, bot, ben])
        assert.deepStrictEqual(yield* ids({ user_id: "ana" }), [ana, bot])
        assert.deepStrictEqual(yield* ids({ user_id: "ana", agent_id: "bot" }), [bot])
        assert.deepStrictEqual(yield* ids({ agent_id: "ana" }), [])
      }))

    it.effect("a memory of another workspace is not put under its name", () =>
      Effect.gen(function*() {
        const mine = yield* begin("own")
        const theirs = yield* begin("foreign")
        const memory = added(theirs.workspaceId, "theirs")
        yield* theirs.memories.write([add(memory)])
        yield* mine.vectors.put([{ workspaceId: mine.workspaceId, id: memory.id, version: 1, vector: east }])
        assert.deepStrictEqual(yield* mine.near(east), [])
        assert.deepStrictEqual(yield* theirs.near(east), [])
      }))

    it.effect("a small scope is found behind any number of nearer strangers", () =>
      Effect.gen(function*() {
        const { indexed, near, workspaceId } = yield* begin("crowd")
        const strangers = Array.from({ length: 600 }, (_, n) =>
          [
            added(workspaceId, `stranger ${n}`, { scope: { user_id: `stranger ${n % 7}` } }),
            vector(1, Math.sin(n) / 10, Math.cos(n) / 10, n / 6_000)
          ] as const)
        yield* indexed(strangers)
        const rare = yield* indexed([
          [added(workspaceId, "first", { scope: { user_id: "rare" } }), vector(-1, 0.3)],
          [added(workspaceId, "second", { scope: { user_id: "rare" } }), vector(-1, 0.2)],
          [added(workspaceId, "third", { scope: { user_id: "rare" } }), vector(-1, 0.1)]
        ])
        assert.deepStrictEqual((yield* near(east, { user_id: "rare" })).map(({ id }) => id), rare)
      }))

    it.effect("a newer version replaces an older one, which never comes back", () =>
      Effect.gen(function*() {
        const { indexed, memories, near, vectors, workspaceId } = yield* begin("newer")
        const memory = added(workspaceId, "one")
        yield* indexed([[memory, east]])
        yield* memories.write([update(memory, "two")])
        yield* vectors.put([{ ...memory, version: 2, vector: north }])
        yield* vectors.put([{ ...memory, version: 1, vector: east }])
        assert.closeTo((yield* near(north))[0]!.score, 1, 1e-6)
        yield* vectors.remove([memory])
        yield* vectors.put([{ ...memory, version: 1, vector: east }])
        assert.deepStrictEqual(yield* near(east), [])
      }))

    it.effect("a vector is never ahead of its record", () =>
      Effect.gen(function*() {
        const { memories, near, vectors, workspaceId } = yield* begin("ahead")
        const memory = added(workspaceId, "one")
        yield* vectors.put([{ ...memory, vector: east }])
        yield* memories.write([add(memory)])
        yield* vectors.put([{ ...memory, version: 2, vector: east }])
        assert.deepStrictEqual(yield* near(east), [])
      }))

    it.effect("a deleted memory is not found from its commit on, and a late put does not bring it back", () =>
      Effect.gen(function*() {
        const { indexed, memories, near, vectors, workspaceId } = yield* begin("deleted")
        const memory = added(workspaceId, "one")
        const gone = remove(memory)
        const [, stays] = yield* indexed([[memory, east], [added(workspaceId, "stays"), north]])
        yield* memories.write([gone])
        const left = Effect.map(near(east), (hits) => hits.map(({ id }) => id))
        assert.deepStrictEqual(yield* left, [stays])
        yield* vectors.remove([memory])
        yield* vectors.put([{ ...memory, vector: east }, { ...gone.memory, vector: east }])
        assert.deepStrictEqual(yield* left, [stays])
      }))

    it.effect("removing is idempotent, and a live memory can be put again", () =>
      Effect.gen(function*() {
        const { indexed, memories, near, vectors, workspaceId } = yield* begin("again")
        const memory = added(workspaceId, "one")
        yield* indexed([[memory, east]])
        yield* vectors.remove([memory, memory, added(workspaceId, "never there")])
        yield* vectors.remove([memory])
        yield* vectors.remove([])
        assert.deepStrictEqual(yield* near(east), [])
        yield* memories.write([update(memory, "two")])
        yield* vectors.put([{ ...memory, version: 2, vector: north }])
        assert.deepStrictEqual((yield* near(north)).map(({ id }) => id), [memory.id])
      }))

    it.effect("repeating a put changes nothing, within a batch and after it", () =>
      Effect.gen(function*() {
        const { indexed, near, vectors, workspaceId } = yield* begin("repeat")
        const memory = added(workspaceId, "one")
        yield* indexed([[memory, east]])
        yield* vectors.put([{ ...memory, vector: east }, { ...memory, vector: east }])
        yield* vectors.put([])
        assert.strictEqual((yield* near(east)).length, 1)
      }))

    it.effect.each([
      ["another dimension", new Float32Array(dimension + 1).fill(1)],
      ["no dimension", new Float32Array(0)],
      ["NaN", vector(NaN, 1)],
      ["infinity", vector(1, Infinity)],
      ["no length", vector(0)]
    ] as const)("a vector with %s is refused before anything of its batch is written", ([, bad]) =>
      Effect.gen(function*() {
        const { memories, near, vectors, workspaceId } = yield* begin("bad")
        const [good, poor] = [added(workspaceId, "good"), added(workspaceId, "poor")]
        yield* memories.write([add(good), add(poor)])
        const refused = yield* Effect.flip(vectors.put([{ ...good, vector: east }, { ...poor, vector: bad }]))
        assert.strictEqual(refused.reason, "bad_vector")
        assert.deepStrictEqual(yield* near(east), [])
        assert.strictEqual((yield* Effect.flip(near(bad))).reason, "bad_vector")
      }))
  })
