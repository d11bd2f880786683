/** Both vector indexes on Postgres, and what they leave in the database when writers race and models change. */
import { PgClient } from "@effect/sql-pg"
import { assert, it, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Logger } from "effect"
import { LeasePool } from "../../src/adapters/PgDatabase.ts"
import * as PgStore from "../../src/adapters/PgStore.ts"
import * as PgTransaction from "../../src/adapters/PgTransaction.ts"
import * as PgVectorIndex from "../../src/adapters/PgVectorIndex.ts"
import * as PgVectorIndexAuto from "../../src/adapters/PgVectorIndexAuto.ts"
import * as PgVectorTable from "../../src/adapters/PgVectorTable.ts"
import type { WorkspaceId } from "../../src/domain/Ids.ts"
import type { Memory } from "../../src/domain/Memory.ts"
import type { MemoryWrite } from "../../src/domain/Plan.ts"
import { Store } from "../../src/services/Store.ts"
import { VectorIndex } from "../../src/services/VectorIndex.ts"
import { PGliteTest, PgTest } from "../postgres.ts"
import * as Models from "../services/models.ts"
import { add, added, remove, update, workspaceOf } from "../services/records.ts"
import { dimension } from "../services/vectorIndexSuite.ts"

const open = (workspaceId: WorkspaceId) =>
  Effect.flatMap(PgClient.PgClient, (sql) => sql`insert into workspaces (workspace_id) values (${workspaceId})`)

const model = Models.layer("first", dimension)
const postgres = Layer.mergeAll(PgStore.layer, PgTransaction.layer).pipe(Layer.provideMerge(PgTest.layer))
const pglite = Layer.mergeAll(PgStore.layer, PgTransaction.layer).pipe(
  Layer.provide(Layer.effect(LeasePool, PgClient.PgClient)),
  Layer.provideMerge(PGliteTest.layer)
)

const east = Float32Array.of(1, 0, 0, 0)

layer(PgVectorIndex.layer.pipe(Layer.provideMerge(postgres), Layer.provide(model)), { excludeTestServices: true })(
  "exact index beside the records",
  (it) => {
    /** Puts a memory whose next write is in a transaction that commits only once the put waits for it. */
    const putDuring = Effect.fnUntraced(function*(change: (memory: Memory) => MemoryWrite) {
      const sql = yield* PgClient.PgClient
      const { memories } = yield* Store
      const index = yield* VectorIndex
      const workspaceId = workspaceOf("race")
      yield* open(workspaceId)
      const memory = added(workspaceId, "one")
      yield* memories.write([add(memory)])
      const [written, waiting] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const writer = yield* Effect.forkChild(sql.withTransaction(Effect.gen(function*() {
        yield* memories.write([change(memory)])
        yield* Deferred.succeed(written, undefined)
        yield* Deferred.await(waiting)
      })))
      yield* Deferred.await(written)
      const put = yield* Effect.forkChild(index.put([{ ...memory, vector: east }]))
      yield* Effect.repeat(
        sql`select from pg_stat_activity where cardinality(pg_blocking_pids(pid)) > 0 and query like '%memory_vectors%'`,
        { until: (rows) => rows.length > 0 }
      )
      yield* Deferred.succeed(waiting, undefined)
      yield* Fiber.join(writer)
      yield* Fiber.join(put)
      return yield* sql`select version from memory_vectors where memory_id = ${memory.id}::uuid`
    })

    it.effect("a put that meets a deletion about to commit leaves no vector", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* putDuring(remove), [])
      }))

    it.effect("a put of a tombstone leaves no vector", () =>
      Effect.gen(function*() {
        const sql = yield* PgClient.PgClient
        const { memories } = yield* Store
        const workspaceId = workspaceOf("tombstone")
        yield* open(workspaceId)
        const memory = added(workspaceId, "one")
        const gone = remove(memory).memory
        yield* memories.write([add(memory)])
        yield* memories.write([{ change: "delete", memory: gone }])
        yield* (yield* VectorIndex).put([{ ...gone, vector: east }])
        assert.deepStrictEqual(yield* sql`select from memory_vectors where memory_id = ${memory.id}::uuid`, [])
      }))

    it.effect("a put that meets an edit about to commit leaves no vector of the old version", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* putDuring((memory) => update(memory, "two")), [])
      }))
  }
)

/** Starts an index as a process does, and returns its first line in the log. */
const start = <A, E, R>(index: Layer.Layer<A, E, R>, embedding = model) =>
  Effect.gen(function*() {
    const lines: Array<string> = []
    const log = Logger.make(({ message }) => lines.push(String(message)))
    const built = yield* Layer.build(index.pipe(Layer.provide(embedding), Layer.provide(Logger.layer([log]))))
    return { index: Context.get(built as Context.Context<VectorIndex>, VectorIndex), line: lines[0] }
  })

/** The refusal of a process to start, in one line. */
const refusal = <A, R>(starting: Effect.Effect<A, unknown, R>) =>
  Effect.map(Effect.flip(starting), (error) => {
    assert.instanceOf(error, PgVectorTable.VectorModelMismatch)
    return error.message
  })

/** Projects whatever is due, as the projector does. */
const project = (index: VectorIndex["Service"], vector = east) =>
  Effect.gen(function*() {
    const { memories } = yield* Store
    const claimed = yield* memories.claimProjections(100, 60_000)
    yield* index.put(claimed.flatMap(({ memory, projection }) => memory === null ? [] : [{ ...projection, vector }]))
    yield* memories.finishProjections(claimed.map(({ projection }) => projection))
    return claimed.length
  })

const populated = Effect.gen(function*() {
  const { memories } = yield* Store
  const workspaceId = workspaceOf("models")
  yield* open(workspaceId)
  const [live, gone] = [added(workspaceId, "live"), added(workspaceId, "gone")]
  yield* memories.write([add(live), add(gone)])
  yield* memories.write([remove(gone)])
  return { live, search: { workspaceId, scope: {}, vector: east, limit: 10 } }
})

it.live("a model of another dimension or name stops the start with one line, before any write", () =>
  Effect.gen(function*() {
    const { live, search } = yield* populated
    const { index } = yield* start(PgVectorIndex.layer)
    yield* project(index)
    const other = yield* refusal(start(PgVectorIndex.layer, Models.layer("first", 8)))
    assert.match(other, /made by first \(4 dimensions, exact index\).* configured first \(8 dimensions, exact index\)/)
    const renamed = yield* refusal(start(PgVectorIndexAuto.layer, Models.layer("second", dimension)))
    assert.match(renamed, /made by first .* configured second/)
    assert.notMatch(renamed, /\n/)
    assert.deepStrictEqual((yield* index.search(search)).map(({ id }) => id), [live.id])
    assert.strictEqual(yield* project(index), 0)
  }).pipe(Effect.provide(postgres)))

it.live("after a reset the next start has every live memory embedded anew, and the old process writes nothing", () =>
  Effect.gen(function*() {
    const { live, search } = yield* populated
    const old = yield* start(PgVectorIndex.layer)
    yield* project(old.index)
    yield* PgVectorTable.reset
    assert.deepStrictEqual(yield* old.index.search(search), [])
    const between = yield* Effect.flip(old.index.put([{ ...live, vector: east }]))
    assert.strictEqual(between.reason, "unavailable")
    const { index } = yield* start(PgVectorIndex.layer, Models.layer("second", 8))
    const late = yield* Effect.flip(old.index.put([{ ...live, vector: east }]))
    assert.strictEqual(late.reason, "unavailable")
    assert.deepStrictEqual(yield* (yield* PgClient.PgClient)`select from memory_vectors`, [])
    const wide = new Float32Array(8).fill(1)
    assert.strictEqual(yield* project(index, wide), 1)
    assert.deepStrictEqual((yield* index.search({ ...search, vector: wide })).map(({ id }) => id), [live.id])
  }).pipe(Effect.provide(postgres)))

it.live("a second process joins without embedding anything again", () =>
  Effect.gen(function*() {
    yield* populated
    const { index } = yield* start(PgVectorIndex.layer)
    yield* project(index)
    yield* Effect.all([start(PgVectorIndex.layer), start(PgVectorIndexAuto.layer)], { concurrency: "unbounded" })
    assert.strictEqual(yield* project(index), 0)
  }).pipe(Effect.provide(postgres)))

it.live("without pgvector vectors are compared exactly, and the log says so in one line", () =>
  Effect.gen(function*() {
    const { live, search } = yield* populated
    const { index, line } = yield* start(PgVectorIndexAuto.layer)
    assert.strictEqual(line, "Searching vectors exactly, within the asked scope: this database has no pgvector")
    yield* project(index)
    assert.deepStrictEqual((yield* index.search(search)).map(({ id }) => id), [live.id])
  }).pipe(Effect.provide(postgres)))

it.live("where pgvector can be had it is used, unless the vectors have too many dimensions for it", () =>
  Effect.gen(function*() {
    const { live, search } = yield* populated
    const wide = yield* Effect.scoped(start(PgVectorIndexAuto.layer, Models.layer("wide", 2_001)))
    assert.match(wide.line!, /exactly.*2000 dimensions/)
    yield* PgVectorTable.reset
    const { index, line } = yield* start(PgVectorIndexAuto.layer)
    assert.strictEqual(line, "Searching vectors with pgvector (HNSW)")
    yield* project(index)
    assert.deepStrictEqual((yield* index.search(search)).map(({ id }) => id), [live.id])
    const again = yield* start(PgVectorIndexAuto.layer)
    assert.deepStrictEqual((yield* again.index.search(search)).map(({ id }) => id), [live.id])
  }).pipe(Effect.provide(pglite)))

it.live("a database that began without pgvector keeps its exact index until it is reset", () =>
  Effect.gen(function*() {
    const { live, search } = yield* populated
    yield* project((yield* start(PgVectorIndex.layer)).index)
    const kept = yield* start(PgVectorIndexAuto.layer)
    assert.match(kept.line!, /exactly.*began without pgvector/)
    assert.deepStrictEqual((yield* kept.index.search(search)).map(({ id }) => id), [live.id])
    yield* PgVectorTable.reset
    const moved = yield* start(PgVectorIndexAuto.layer)
    assert.match(moved.line!, /pgvector \(HNSW\)/)
    assert.strictEqual(yield* project(moved.index), 1)
    assert.deepStrictEqual((yield* moved.index.search(search)).map(({ id }) => id), [live.id])
  }).pipe(Effect.provide(pglite)))

it.live("an index whose table is gone is unavailable, not a crash, and the log says which error it was", () => {
  const lines: Array<string> = []
  const log = Logger.layer([Logger.make(({ message }) => lines.push(String(message)))])
  return Effect.gen(function*() {
    const { live, search } = yield* populated
    const sql = yield* PgClient.PgClient
    const { index } = yield* start(PgVectorIndex.layer)
    yield* sql`drop table memory_vectors`
    assert.strictEqual((yield* Effect.flip(index.search(search))).reason, "unavailable")
    assert.strictEqual((yield* Effect.flip(index.remove([live]))).reason, "unavailable")
    assert.strictEqual((yield* Effect.flip(index.put([{ ...live, vector: east }]))).reason, "bad_vector")
    assert.strictEqual(lines.length, 3)
    for (const line of lines) assert.match(line, /out of order.* 42P01$/)
  }).pipe(Effect.provide(Layer.merge(postgres, log)))
})
