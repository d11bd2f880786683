/** Every committed memory reaches the index, whatever fails on the way, and no failure touches the record. */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, Duration, Effect, Fiber, Layer } from "effect"
import type { Memory } from "../../src/domain/Memory.ts"
import { Projector } from "../../src/services/Projector.ts"
import { defaultSettings, type SettingsShape } from "../../src/services/Settings.ts"
import { Store } from "../../src/services/Store.ts"
import { OutcomeUnknown } from "../../src/services/Transaction.ts"
import { VectorIndex, VectorIndexFailure } from "../../src/services/VectorIndex.ts"
import { failing, Faulty, layer, open } from "./faulty.ts"
import * as Models from "./models.ts"
import { add, added, remove, update, workspaceOf } from "./records.ts"

const world = (settings: Partial<SettingsShape> = {}) =>
  Projector.layer.pipe(Layer.provideMerge(layer({ ...defaultSettings, ...settings })))

const workspaceId = workspaceOf("projector")
const begin = Effect.gen(function*() {
  yield* open(workspaceId)
  const faulty = yield* Faulty
  const { memories } = yield* Store
  const { turn } = yield* Projector
  return { faulty, memories, turn }
})

const write = (...memories: ReadonlyArray<Memory>) =>
  Effect.flatMap(Store, (store) => store.memories.write(memories.map(add)))

/** The ids that the index knows, nearest to nothing in particular. */
const indexed = Effect.gen(function*() {
  const index = yield* VectorIndex
  const hits = yield* index.search({ workspaceId, scope: {}, vector: Models.embed("tea", 32), limit: 1_000 })
  return hits.map(({ id }) => id).toSorted()
})
const idsOf = (...memories: ReadonlyArray<Memory>) => memories.map(({ id }) => id).toSorted()

const waiting = Effect.flatMap(PgClient.PgClient, (sql) =>
  sql<{ readonly attempts: number; readonly delay: number }>`select attempts,
    extract(epoch from next_attempt_at - now())::float8 * 1000 as delay from projections order by memory_id`)

/** As if every wait were over. */
const makeDue = Effect.flatMap(PgClient.PgClient, (sql) => sql`update projections set next_attempt_at = now()`)

const tea = () => added(workspaceId, "tea")

describe("a turn", () => {
  it.live("brings what is due into the index, with one call to the model", () =>
    Effect.gen(function*() {
      const { faulty, turn } = yield* begin
      const [a, b, c] = [tea(), tea(), tea()]
      yield* write(a, b, c)
      assert.strictEqual(yield* turn, 3)
      assert.deepStrictEqual(yield* indexed, idsOf(a, b, c))
      assert.strictEqual(faulty.asked.length, 1)
      assert.deepStrictEqual(yield* waiting, [])
      assert.strictEqual(yield* turn, 0)
    }).pipe(Effect.provide(world())))

  it.live("takes deletions out, and skips versions that were replaced without asking the model", () =>
    Effect.gen(function*() {
      const { faulty, memories, turn } = yield* begin
      const [kept, gone, never] = [tea(), tea(), tea()]
      yield* write(kept, gone)
      yield* turn
      yield* write(never)
      yield* memories.write([remove(gone), update(kept, "coffee")])
      yield* memories.write([remove(never)])
      faulty.asked.length = 0
      assert.strictEqual(yield* turn, 4)
      assert.deepStrictEqual(faulty.asked, [["coffee"]])
      assert.deepStrictEqual(yield* waiting, [])
      const sql = yield* PgClient.PgClient
      assert.deepStrictEqual(yield* sql`select memory_id as id, version from memory_vectors`, [{ id: kept.id, version: 2 }])
    }).pipe(Effect.provide(world())))

  it.live("takes no more than a batch", () =>
    Effect.gen(function*() {
      const { turn } = yield* begin
      yield* write(tea(), tea(), tea())
      assert.deepStrictEqual([yield* turn, yield* turn, yield* turn], [2, 1, 0])
    }).pipe(Effect.provide(world({ projectionBatchSize: 2 }))))

  it.live("holds neither a transaction nor a row while the model thinks", () =>
    Effect.gen(function*() {
      const { faulty, memories, turn } = yield* begin
      const sql = yield* PgClient.PgClient
      const thinking = yield* Deferred.make<void>()
      const answer = yield* Deferred.make<void>()
      const { embed } = faulty
      faulty.embed = (texts) =>
        Deferred.succeed(thinking, undefined).pipe(Effect.andThen(Deferred.await(answer)), Effect.andThen(embed(texts)))
      const memory = tea()
      yield* write(memory)
      const fiber = yield* Effect.forkChild(turn)
      yield* Deferred.await(thinking)
      const open = yield* sql`select from pg_stat_activity
        where datname = current_database() and state like 'idle in transaction%'`
      assert.deepStrictEqual(open, [])
      yield* memories.write([update(memory, "coffee")])
      yield* sql`delete from projections where version = 2`
      yield* Deferred.succeed(answer, undefined)
      yield* Fiber.join(fiber)
      // The vector is of a text that is no longer there: the newer version's projection is what counts.
      assert.deepStrictEqual(yield* indexed, [])
    }).pipe(Effect.provide(world())))

  it.live("of several projectors embeds each memory once", () =>
    Effect.gen(function*() {
      const { faulty, turn } = yield* begin
      yield* write(...Array.from({ length: 20 }, tea))
      yield* Effect.all(Array.from({ length: 6 }, () => turn), { concurrency: "unbounded" })
      yield* turn
      assert.strictEqual(faulty.asked.flat().length, 20)
      assert.strictEqual((yield* indexed).length, 20)
    }).pipe(Effect.provide(world({ projectionBatchSize: 4 }))))
})

describe("when something fails", () => {
  const outages: ReadonlyArray<readonly [string, (faulty: Faulty["Service"]) => void]> = [
    ["the model is down", (faulty) => {
      faulty.embed = () => failing("provider_unavailable")
    }],
    ["the index is down", (faulty) => {
      faulty.index = { put: () => Effect.fail(new VectorIndexFailure({ reason: "unavailable" })) }
    }],
    ["the model never answers", (faulty) => {
      faulty.embed = () => Effect.never
    }]
  ]
  it.live.each(outages)("%s: the projection waits and is repaired later, and the record stays as it was", ([, fail]) =>
    Effect.gen(function*() {
      const { faulty, memories, turn } = yield* begin
      const { embed } = faulty
      const memory = tea()
      yield* write(memory)
      for (const attempt of [1, 2, 3]) {
        fail(faulty)
        assert.strictEqual(yield* turn, 1)
        const [row] = yield* waiting
        assert.strictEqual(row!.attempts, attempt)
        assert.isBelow(row!.delay, 1_000 * 2 ** (attempt - 1))
        yield* makeDue
      }
      assert.deepStrictEqual(yield* indexed, [])
      Object.assign(faulty, { embed, index: {} })
      assert.strictEqual(yield* turn, 1)
      assert.deepStrictEqual(yield* indexed, [memory.id])
      assert.deepStrictEqual(yield* memories.get([memory]), [memory])
      assert.strictEqual((yield* memories.history(memory)).length, 1)
    }).pipe(Effect.provide(world({ lease: Duration.millis(80), fenceMargin: Duration.millis(30) }))))

  it.live("a deletion that the index did not take is tried again", () =>
    Effect.gen(function*() {
      const { faulty, memories, turn } = yield* begin
      const [memory, other] = [tea(), tea()]
      yield* write(memory)
      yield* turn
      yield* memories.write([remove(memory), add(other)])
      faulty.index = { remove: () => Effect.fail(new VectorIndexFailure({ reason: "unavailable" })) }
      yield* turn
      assert.strictEqual((yield* waiting).length, 1)
      faulty.index = {}
      yield* makeDue
      yield* turn
      const sql = yield* PgClient.PgClient
      assert.deepStrictEqual(yield* sql`select memory_id as id from memory_vectors`, [{ id: other.id }])
      assert.deepStrictEqual(yield* waiting, [])
    }).pipe(Effect.provide(world())))

  it.live.each([
    ["NaN", (vectors: ReadonlyArray<Float32Array>, bad: number) => vectors.map((v, n) => n === bad ? v.map(() => NaN) : v)],
    ["another dimension", (vectors: ReadonlyArray<Float32Array>, bad: number) => vectors.map((v, n) => n === bad ? v.slice(1) : v)],
    ["too few vectors", (vectors: ReadonlyArray<Float32Array>, bad: number) => bad < 0 ? vectors : vectors.slice(1)],
    ["too many vectors", (vectors: ReadonlyArray<Float32Array>, bad: number) => bad < 0 ? vectors : [...vectors, vectors[0]!]]
  ] as const)("one bad row (%s) never blocks the others, nor shifts their vectors", ([, spoil]) =>
    Effect.gen(function*() {
      const { faulty, turn } = yield* begin
      const { embed } = faulty
      faulty.embed = (texts) => Effect.map(embed(texts), (vectors) => spoil(vectors, texts.indexOf("bad")))
      const [dog, bad, paris] = [added(workspaceId, "dog"), added(workspaceId, "bad"), added(workspaceId, "paris")]
      yield* write(dog, bad, paris)
      yield* turn
      assert.deepStrictEqual(yield* indexed, idsOf(dog, paris))
      const index = yield* VectorIndex
      const [near] = yield* index.search({ workspaceId, scope: {}, vector: Models.embed("paris", 32), limit: 1 })
      assert.strictEqual(near!.id, paris.id)
      assert.closeTo(near!.score, 1, 1e-6)
      const left = yield* waiting
      assert.deepStrictEqual(left.map(({ attempts }) => attempts), [1])
    }).pipe(Effect.provide(world())))

  it.live("a text that the model rejects takes no other with it", () =>
    Effect.gen(function*() {
      const { faulty, turn } = yield* begin
      const { embed } = faulty
      faulty.embed = (texts) => texts.includes("bad") ? failing("provider_rejected") : embed(texts)
      const [dog, bad, paris] = [added(workspaceId, "dog"), added(workspaceId, "bad"), added(workspaceId, "paris")]
      yield* write(dog, bad, paris)
      yield* turn
      assert.deepStrictEqual(yield* indexed, idsOf(dog, paris))
      assert.lengthOf(yield* waiting, 1)
    }).pipe(Effect.provide(world())))

  it.live("a text at which the model breaks down is tried after all others, and they go few at a time", () =>
    Effect.gen(function*() {
      const { faulty, turn } = yield* begin
      const sql = yield* PgClient.PgClient
      const { embed } = faulty
      faulty.embed = (texts) => texts.includes("bad") ? failing("provider_unavailable") : embed(texts)
      const [dog, bad, paris] = [added(workspaceId, "dog"), added(workspaceId, "bad"), added(workspaceId, "paris")]
      yield* write(dog, bad, paris)
      yield* turn
      assert.deepStrictEqual(yield* indexed, [])
      yield* sql`update projections set attempts = 2 where memory_id = ${bad.id}`
      yield* makeDue
      yield* write(added(workspaceId, "rome"))
      yield* turn
      assert.lengthOf(yield* indexed, 3)
      assert.lengthOf(yield* waiting, 1)
    }).pipe(Effect.provide(world())))

  it.live("a model that is down is asked once in a turn, however many failed before", () =>
    Effect.gen(function*() {
      const { faulty, turn } = yield* begin
      yield* write(tea(), tea(), tea(), tea())
      let asked = 0
      faulty.embed = () => {
        asked++
        return failing("provider_unavailable")
      }
      yield* turn
      yield* makeDue
      yield* turn
      assert.strictEqual(asked, 2)
      assert.lengthOf(yield* waiting, 4)
    }).pipe(Effect.provide(world())))

  it.live("a turn that tries many by themselves ends with its claim, and leaves the others to the next turn", () =>
    Effect.gen(function*() {
      const { faulty, turn } = yield* begin
      const real = yield* Clock.Clock
      let passed = 0n
      const monotonicTimeNanos = Effect.map(real.monotonicTimeNanos, (now) => now + passed)
      const clock: Clock.Clock = Object.assign(Object.create(real), { monotonicTimeNanos })
      yield* write(tea(), tea(), tea(), tea(), tea(), tea())
      faulty.embed = () =>
        Effect.suspend(() => {
          passed += 10_000_000_000n
          return failing("provider_rejected")
        })
      const turned = Effect.provideService(turn, Clock.Clock, clock)
      assert.strictEqual(yield* turned, 6)
      assert.deepStrictEqual(faulty.asked.map((texts) => texts.length), [6, 1, 1])
      assert.lengthOf((yield* waiting).filter(({ delay }) => delay > 0), 2)
      // The four that were not tried come back at once, and not when the claim runs out.
      assert.strictEqual(yield* turned, 4)
      assert.deepStrictEqual(faulty.asked.slice(3).map((texts) => texts.length), [1, 1, 1])
    }).pipe(Effect.provide(world({ projectionBackoffBaseMs: 600_000, projectionBackoffCapMs: 600_000 }))))

  it.live("a crash between the index and the mark that it is done repeats harmlessly", () =>
    Effect.gen(function*() {
      const { faulty, memories, turn } = yield* begin
      const [memory, gone] = [tea(), tea()]
      yield* write(memory, gone)
      yield* memories.write([remove(gone)])
      faulty.memories = { finishProjections: () => Effect.fail(new OutcomeUnknown({ reason: "connection" })) }
      assert.strictEqual((yield* Effect.flip(turn))._tag, "OutcomeUnknown")
      assert.deepStrictEqual(yield* indexed, [memory.id])
      faulty.memories = {}
      assert.strictEqual(yield* turn, 0)
      yield* makeDue
      assert.strictEqual(yield* turn, 3)
      assert.deepStrictEqual(yield* indexed, [memory.id])
      assert.deepStrictEqual(yield* waiting, [])
    }).pipe(Effect.provide(world())))

  it.live("a projector that is stopped gives its rows back at once", () =>
    Effect.gen(function*() {
      const { faulty, turn } = yield* begin
      const { embed } = faulty
      const thinking = yield* Deferred.make<void>()
      faulty.embed = () => Effect.andThen(Deferred.succeed(thinking, undefined), Effect.never)
      const memory = tea()
      yield* write(memory)
      const fiber = yield* Effect.forkChild(turn)
      yield* Deferred.await(thinking)
      yield* Fiber.interrupt(fiber)
      faulty.embed = embed
      assert.strictEqual(yield* turn, 1)
      assert.deepStrictEqual(yield* indexed, [memory.id])
    }).pipe(Effect.provide(world())))

  it.live("waits grow with the attempts, up to a cap that not even the model can raise", () =>
    Effect.gen(function*() {
      const { faulty, turn } = yield* begin
      const sql = yield* PgClient.PgClient
      const delays: Array<number> = []
      const { postponeProjections } = (yield* Store).memories
      faulty.memories = {
        postponeProjections: (rows) => {
          delays.push(...rows.map(({ delayMs }) => delayMs))
          return postponeProjections(rows)
        }
      }
      yield* write(tea())
      const fail = Effect.fnUntraced(function*(attempts: number, retryAfterMs: number | null) {
        faulty.embed = () => failing("provider_rate_limited", retryAfterMs)
        yield* sql`update projections set attempts = ${attempts - 1}, next_attempt_at = now()`
        yield* turn
        return delays.at(-1)!
      })
      for (const [attempts, ceiling] of [[1, 100], [2, 200], [3, 400], [4, 800], [5, 1_000], [2_000_000, 1_000]] as const) {
        for (let n = 0; n < 5; n++) assert.isBelow(yield* fail(attempts, null), ceiling)
      }
      assert.isAtLeast(yield* fail(1, 700), 700)
      assert.strictEqual(yield* fail(1, 3_600_000), 1_000)
    }).pipe(Effect.provide(world({ projectionBackoffBaseMs: 100, projectionBackoffCapMs: 1_000 }))))
})
