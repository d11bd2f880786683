/** A search finds what was committed, by meaning and by words, and answers by words alone when it must. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Latch, Layer } from "effect"
import type { Memory } from "../../src/domain/Memory.ts"
import { Memories, type SearchQuery } from "../../src/services/Memories.ts"
import { Projector } from "../../src/services/Projector.ts"
import { defaultSettings } from "../../src/services/Settings.ts"
import { Store } from "../../src/services/Store.ts"
import { OutcomeUnknown } from "../../src/services/Transaction.ts"
import { VectorIndexFailure } from "../../src/services/VectorIndex.ts"
import { failing, Faulty, layer, open } from "./faulty.ts"
import { add, added, remove, update, workspaceOf } from "./records.ts"

const world = Layer.mergeAll(Memories.layer, Projector.layer).pipe(
  Layer.provideMerge(layer({ ...defaultSettings, searchTimeout: Duration.millis(200) }))
)

const workspaceId = workspaceOf("search")
const memory = (text: string, fields: Partial<Memory> = {}) => added(workspaceId, text, fields)

/** Commits memories, and leaves their projection for later. */
const commit = (...memories: ReadonlyArray<Memory>) =>
  Effect.flatMap(Store, (store) => store.memories.write(memories.map(add)))

const project = Effect.flatMap(Projector, ({ turn }) => Effect.repeat(turn, { until: (claimed) => claimed === 0 }))

const search = (query: string, fields: Partial<SearchQuery> = {}) =>
  Effect.flatMap(Memories, (memories) =>
    memories.search({ workspaceId, scope: {}, metadata: {}, query, limit: 10, ...fields }))

const texts = (query: string, fields?: Partial<SearchQuery>) =>
  Effect.map(search(query, fields), ({ hits }) => hits.map((hit) => hit.memory.text))

const test = <A, E>(name: string, body: Effect.Effect<A, E, Layer.Success<typeof world>>) =>
  it.live(name, () => Effect.andThen(open(workspaceId), body).pipe(Effect.provide(world)))

describe("search", () => {
  test("finds by meaning what has none of the words, and puts first what has both", Effect.gen(function*() {
    yield* commit(memory("Ana likes coffee"), memory("The best beverage"), memory("Her dog is called Rex"))
    yield* project
    const { hits, semantic } = yield* search("some coffee")
    assert.isTrue(semantic)
    assert.deepStrictEqual(hits.slice(0, 2).map((hit) => hit.memory.text), ["Ana likes coffee", "The best beverage"])
    assert.strictEqual(hits[0]!.score, 1)
    assert.isAbove(hits[0]!.similarity!, 0.9)
    assert.isBelow(hits[1]!.score, 0.5)
  }))

  test("finds a memory by its words from its commit on, before it is projected", Effect.gen(function*() {
    const fresh = memory("Her umbrella is yellow")
    yield* commit(fresh)
    const answer = yield* search("what is the colour of the umbrella?")
    assert.deepStrictEqual(answer, { semantic: true, hits: [{ memory: fresh, score: 0.5, similarity: null }] })
    yield* project
    assert.isNotNull((yield* search("umbrella")).hits[0]!.similarity)
  }))

  test("shows what a memory says now, and never one that is deleted", Effect.gen(function*() {
    const { memories } = yield* Store
    const [moved, gone] = [memory("lives in Paris"), memory("the cat lives in Paris")]
    yield* commit(moved, gone)
    yield* project
    yield* memories.write([update(moved, "lives in Berlin"), remove(gone)])
    assert.deepStrictEqual(yield* texts("Paris"), ["lives in Berlin"])
    yield* project
    assert.deepStrictEqual(yield* texts("Paris"), ["lives in Berlin"])
  }))

  test("drops what was deleted while it searched", Effect.gen(function*() {
    const { get, write } = (yield* Store).memories
    const faulty = yield* Faulty
    const [gone, kept] = [memory("secret tea"), memory("tea")]
    yield* commit(gone, kept)
    yield* project
    faulty.memories = { get: (refs) => Effect.andThen(write([remove(gone)]), get(refs)) }
    assert.deepStrictEqual(yield* texts("secret tea"), ["tea"])
  }))

  const outages: ReadonlyArray<readonly [string, (faulty: Faulty["Service"]) => void]> = [
    ["the model fails", (faulty) => {
      faulty.embed = () => failing("provider_unavailable")
    }],
    ["the model never answers", (faulty) => {
      faulty.embed = () => Effect.never
    }],
    ["the model answers with nothing", (faulty) => {
      faulty.embed = () => Effect.succeed([])
    }],
    ["the model answers nonsense", (faulty) => {
      faulty.embed = (asked) => Effect.succeed(asked.map(() => Float32Array.of(NaN)))
    }],
    ["the index is down", (faulty) => {
      faulty.index = { search: () => Effect.fail(new VectorIndexFailure({ reason: "unavailable" })) }
    }],
    ["the index never answers", (faulty) => {
      faulty.index = { search: () => Effect.never }
    }]
  ]
  for (const [name, fail] of outages) {
    test(`is answered by words alone when ${name}, and says so`, Effect.gen(function*() {
      const faulty = yield* Faulty
      yield* commit(memory("green tea"), memory("a beverage"))
      yield* project
      fail(faulty)
      const { hits, semantic } = yield* search("tea")
      assert.isFalse(semantic)
      assert.deepStrictEqual(hits.map((hit) => [hit.memory.text, hit.similarity]), [["green tea", null]])
    }))
  }

  test("asks the model and the words side by side", Effect.gen(function*() {
    const faulty = yield* Faulty
    const { lexical } = (yield* Store).memories
    const { embed } = faulty
    const [asked, looked] = [yield* Latch.make(), yield* Latch.make()]
    yield* commit(memory("tea"))
    yield* project
    faulty.embed = (batch) => asked.open.pipe(Effect.andThen(looked.await), Effect.andThen(embed(batch)))
    faulty.memories = {
      lexical: (query) => looked.open.pipe(Effect.andThen(asked.await), Effect.andThen(lexical(query)))
    }
    assert.isTrue((yield* search("tea")).semantic)
  }))

  test("stays in its workspace and its scope", Effect.gen(function*() {
    const other = workspaceOf("theirs")
    yield* open(other)
    yield* commit(
      memory("tea of Ana"),
      memory("tea of Ana and the bot", { scope: { user_id: "ana", agent_id: "bot" } }),
      memory("tea of Ben", { scope: { user_id: "ben" } }),
      added(other, "tea of others")
    )
    yield* project
    const sorted = (fields: Partial<SearchQuery>) => Effect.map(texts("tea", fields), (found) => found.toSorted())
    assert.deepStrictEqual(yield* sorted({}), ["tea of Ana", "tea of Ana and the bot", "tea of Ben"])
    assert.deepStrictEqual(yield* sorted({ scope: { user_id: "ana" } }), ["tea of Ana", "tea of Ana and the bot"])
    assert.deepStrictEqual(yield* sorted({ scope: { user_id: "ana", agent_id: "bot" } }), ["tea of Ana and the bot"])
    assert.deepStrictEqual(yield* sorted({ scope: { run_id: "ana" } }), [])
    assert.deepStrictEqual(yield* sorted({ workspaceId: other }), ["tea of others"])
  }))

  test("holds a metadata filter against meaning and words alike, and finds what is behind many others", Effect.gen(function*() {
    const crowd = Array.from({ length: 150 }, (_, n) => memory(`tea ${n}`, { metadata: { team: "red", n } }))
    yield* commit(...crowd, memory("a beverage with a dog and a cat", { metadata: { team: "blue", tags: ["x", "y"] } }))
    yield* project
    assert.deepStrictEqual(yield* texts("tea", { metadata: { team: "blue" } }), ["a beverage with a dog and a cat"])
    assert.deepStrictEqual(yield* texts("tea", { metadata: { tags: ["y"] } }), ["a beverage with a dog and a cat"])
    assert.deepStrictEqual(yield* texts("tea", { metadata: { team: "red", n: 7 } }), ["tea 7"])
    assert.deepStrictEqual(yield* texts("tea", { metadata: { team: "green" } }), [])
  }))

  test("gives no more than was asked for, each memory once, best first", Effect.gen(function*() {
    yield* commit(...Array.from({ length: 30 }, (_, n) => memory(n % 2 === 0 ? `tea ${n}` : `beverage ${n}`)))
    yield* project
    const { hits } = yield* search("tea", { limit: 7 })
    assert.strictEqual(new Set(hits.map((hit) => hit.memory.id)).size, 7)
    for (const [place, hit] of hits.entries()) {
      assert.isTrue(hit.score > 0 && hit.score <= 1)
      assert.isTrue(place === 0 || hits[place - 1]!.score >= hit.score)
    }
    assert.deepStrictEqual((yield* search("tea", { limit: 0 })).hits, [])
  }))

  test("of nothing finds nothing", Effect.gen(function*() {
    assert.deepStrictEqual(yield* search(""), { semantic: true, hits: [] })
    assert.deepStrictEqual(yield* search("tea"), { semantic: true, hits: [] })
  }))
})

describe("reads", () => {
  test("find a live memory, and neither a deleted one nor one of another workspace", Effect.gen(function*() {
    const { memories } = yield* Store
    const reads = yield* Memories
    const [live, gone] = [memory("live"), memory("gone")]
    yield* commit(live, gone)
    yield* memories.write([remove(gone)])
    assert.deepStrictEqual(yield* reads.get(live), live)
    assert.strictEqual((yield* Effect.flip(reads.get(gone)))._tag, "NotFound")
    assert.strictEqual((yield* Effect.flip(reads.get({ ...live, workspaceId: workspaceOf("other") })))._tag, "NotFound")
    const page = { workspaceId, scope: {}, metadata: {}, before: null, limit: 10 }
    assert.deepStrictEqual(yield* reads.list(page), [live])
  }))

  test("tell the history of a deleted memory without its texts", Effect.gen(function*() {
    const { memories } = yield* Store
    const reads = yield* Memories
    const gone = memory("gone")
    yield* commit(gone)
    yield* memories.write([remove(gone)])
    const told = (yield* reads.history(gone)).map(({ change, text }) => ({ change, text }))
    assert.deepStrictEqual(told, [{ change: "add", text: null }, { change: "delete", text: null }])
    assert.strictEqual((yield* Effect.flip(reads.history(memory("never written"))))._tag, "NotFound")
  }))

  test("are repeated while the database does not answer, and then ask to come back later", Effect.gen(function*() {
    const faulty = yield* Faulty
    const { memories } = yield* Store
    const reads = yield* Memories
    const live = memory("live")
    yield* commit(live)
    const { get } = memories
    let failures = 0
    const unknown = Effect.fail(new OutcomeUnknown({ reason: "connection" }))
    faulty.memories = { get: (refs) => Effect.suspend(() => ++failures > 2 ? get(refs) : unknown) }
    assert.deepStrictEqual(yield* reads.get(live), live)
    faulty.memories = { get: () => unknown, list: () => unknown, history: () => unknown, lexical: () => unknown }
    const page = { workspaceId, scope: {}, metadata: {}, before: null, limit: 10 }
    const refused = yield* Effect.all([
      Effect.flip(reads.get(live)),
      Effect.flip(reads.list(page)),
      Effect.flip(reads.history(live)),
      Effect.flip(search("live"))
    ], { concurrency: "unbounded" })
    assert.deepStrictEqual(refused.map(({ _tag }) => _tag), Array.from({ length: 4 }, () => "ComeBackLater"))
  }))
})
