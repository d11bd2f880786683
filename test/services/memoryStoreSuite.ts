/** What every `MemoryStore` promises of its records, whatever it is made of. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, type Layer, Schema } from "effect"
import type { WorkspaceId } from "../../src/domain/Ids.ts"
import type { Memory } from "../../src/domain/Memory.ts"
import type { ScopeFilter } from "../../src/domain/Scope.ts"
import { Store } from "../../src/services/Store.ts"
import { add, added, remove, update, workspaceOf } from "./records.ts"

const everything = { scope: {}, metadata: {}, limit: 100 }
const texts = (memories: ReadonlyArray<Memory>) => memories.map((memory) => memory.text)

/** `open` makes a workspace, where one has to exist before its memories do. */
export const suite = <R, E>(
  name: string,
  store: Layer.Layer<Store | R, E>,
  open: (workspaceId: WorkspaceId) => Effect.Effect<unknown, unknown, R>
) =>
  layer(store, { excludeTestServices: true, timeout: "60 seconds" })(`MemoryStore: ${name}`, (it) => {
    /** The store, and a workspace with nothing in it. */
    const begin = Effect.fnUntraced(function*(test: string) {
      const workspaceId = workspaceOf(test)
      yield* open(workspaceId)
      return { memories: (yield* Store).memories, workspaceId }
    })

    it.effect("a memory is read as it was written", () =>
      Effect.gen(function*() {
        const { memories, workspaceId } = yield* begin("written")
        const memory = added(workspaceId, "Ana 🦜 likes \"tea\",\n<b>'green'</b> \\ and ñandú", {
          scope: { user_id: "ana", agent_id: "🦜", run_id: "r-1", app_id: "a'b" },
          metadata: { tags: ["x", { y: null }], deep: { n: 1.5, s: "é\\u0000" } },
          eventDate: "2025-11-30T12:00:00.000Z"
        })
        assert.deepStrictEqual(yield* memories.write([add(memory)]), [{ workspaceId, id: memory.id }])
        assert.deepStrictEqual(yield* memories.get([memory]), [memory])
      }))

    it.effect("a batch writes all of its memories, and one memory once", () =>
      Effect.gen(function*() {
        const { memories, workspaceId } = yield* begin("batch")
        const [old, fresh, twin] = [added(workspaceId, "old"), added(workspaceId, "fresh"), added(workspaceId, "twin")]
        yield* memories.write([add(old)])
        const batch = [add(twin), add({ ...twin, text: "second twin" }), update(old, "new"), add(fresh)]
        assert.strictEqual((yield* memories.write(batch)).length, 3)
        const read = yield* memories.list({ ...everything, workspaceId, before: null })
        assert.deepStrictEqual(texts(read), ["twin", "fresh", "new"])
        assert.deepStrictEqual(yield* memories.write([]), [])
      }))

    it.effect("an add whose id is taken is not written, and leaves what is there alone", () =>
      Effect.gen(function*() {
        const { memories, workspaceId } = yield* begin("taken")
        const memory = added(workspaceId, "first")
        yield* memories.write([add(memory)])
        assert.deepStrictEqual(yield* memories.write([add({ ...memory, text: "second" })]), [])
        assert.deepStrictEqual(yield* memories.get([memory]), [memory])
        assert.strictEqual((yield* memories.history(memory)).length, 1)
      }))

    it.effect("a change that is not one version ahead is not written", () =>
      Effect.gen(function*() {
        const { memories, workspaceId } = yield* begin("ahead")
        const memory = added(workspaceId, "one")
        const two = update(memory, "two")
        yield* memories.write([add(memory)])
        assert.strictEqual((yield* memories.write([two])).length, 1)
        assert.deepStrictEqual(yield* memories.write([update(memory, "stale")]), [])
        assert.deepStrictEqual(yield* memories.write([update({ ...two.memory, version: 7 }, "ahead")]), [])
        assert.deepStrictEqual(yield* memories.write([update(added(workspaceId, "nowhere"), "nothing")]), [])
        assert.deepStrictEqual(yield* memories.get([memory]), [two.memory])
      }))

    it.effect("of changes of one version at the same time exactly one is written", () =>
      Effect.gen(function*() {
        const { memories, workspaceId } = yield* begin("race")
        const memory = added(workspaceId, "one")
        yield* memories.write([add(memory)])
        const changes = [1, 2, 3, 4, 5].map((n) => memories.write([update(memory, `change ${n}`)]))
        const written = yield* Effect.all(changes, { concurrency: "unbounded" })
        assert.strictEqual(written.flat().length, 1)
        assert.strictEqual((yield* memories.history(memory)).length, 2)
      }))

    it.effect("deleting erases the text of every version and keeps the tombstone for good", () =>
      Effect.gen(function*() {
        const { memories, workspaceId } = yield* begin("deleting")
        const memory = added(workspaceId, "secret one", { metadata: { secret: 1 } })
        const second = update(memory, "secret two")
        const gone = remove(second.memory)
        yield* memories.write([add(memory)])
        yield* memories.write([second])
        yield* memories.write([gone])
        assert.deepStrictEqual(yield* memories.get([memory]), [gone.memory])
        assert.deepStrictEqual(
          (yield* memories.history(memory)).map(({ change, text, version }) => ({ change, text, version })),
          [
            { change: "add", text: null, version: 1 },
            { change: "update", text: null, version: 2 },
            { change: "delete", text: null, version: 3 }
          ]
        )
        assert.deepStrictEqual(yield* memories.write([update(gone.memory, "back")]), [])
        assert.deepStrictEqual(yield* memories.write([add(memory)]), [])
        assert.deepStrictEqual(yield* memories.get([memory]), [gone.memory])
      }))

    it.effect("history tells every version, oldest first", () =>
      Effect.gen(function*() {
        const { memories, workspaceId } = yield* begin("history")
        const memory = added(workspaceId, "one")
        const second = update(memory, "two")
        yield* memories.write([add(memory)])
        yield* memories.write([second])
        assert.deepStrictEqual(yield* memories.history(memory), [
          { memoryId: memory.id, version: 1, change: "add", text: "one", operationId: memory.operationId, at: memory.updatedAt },
          {
            memoryId: memory.id,
            version: 2,
            change: "update",
            text: "two",
            operationId: second.memory.operationId,
            at: second.memory.updatedAt
          }
        ])
        assert.deepStrictEqual(yield* memories.history(added(workspaceId, "never written")), [])
      }))

    it.effect("a lock shows what exists, deleted or not, each once", () =>
      Effect.gen(function*() {
        const { memories, workspaceId } = yield* begin("lock")
        const [live, gone] = [added(workspaceId, "live"), added(workspaceId, "gone")]
        yield* memories.write([add(live), add(gone)])
        yield* memories.write([remove(gone)])
        const locked = yield* memories.lock([gone, added(workspaceId, "missing"), live, live])
        assert.deepStrictEqual(locked.map(({ deleted, id }) => ({ deleted, id })), [
          { deleted: false, id: live.id },
          { deleted: true, id: gone.id }
        ])
      }))

    it.effect("a list is the live memories of the workspace, newest first, page by page", () =>
      Effect.gen(function*() {
        const { memories, workspaceId } = yield* begin("list")
        const other = yield* begin("list-other")
        const all = ["a", "b", "c", "d", "e"].map((text) => added(workspaceId, text))
        yield* memories.write([...all.map(add), add(added(other.workspaceId, "theirs"))])
        yield* memories.write([remove(all[3]!)])
        const page = yield* memories.list({ ...everything, workspaceId, before: null, limit: 2 })
        assert.deepStrictEqual(texts(page), ["e", "c"])
        const rest = yield* memories.list({ ...everything, workspaceId, before: page[1]!.id, limit: 100 })
        assert.deepStrictEqual(texts(rest), ["b", "a"])
      }))

    const scopes: ReadonlyArray<readonly [string, ScopeFilter]> = [
      ["ana", { user_id: "ana" }],
      ["ana+bot", { user_id: "ana", agent_id: "bot" }],
      ["ben+bot", { user_id: "ben", agent_id: "bot" }],
      ["run", { run_id: "ana" }],
      ["app", { app_id: "app" }]
    ]
    const scoped = (workspaceId: WorkspaceId) =>
      scopes.map(([text, scope]) => add(added(workspaceId, `scope of ${text}`, { scope })))

    it.effect("a scope filter matches the ids it names, and a scope itself only its equals", () =>
      Effect.gen(function*() {
        const { memories, workspaceId } = yield* begin("scopes")
        yield* memories.write(scoped(workspaceId))
        const matching = (scope: ScopeFilter) =>
          Effect.gen(function*() {
            const list = yield* memories.list({ ...everything, workspaceId, scope, before: null })
            const words = yield* memories.lexical({ ...everything, workspaceId, scope, query: "scope" })
            assert.deepStrictEqual(words.toSorted(), list.map(({ id }) => id).toSorted())
            return texts(list).map((text) => text!.slice(9))
          })
        const exactly = (scope: ScopeFilter) =>
          Effect.map(memories.recent(workspaceId, scope, 10), (found) => texts(found).map((text) => text!.slice(9)))
        assert.deepStrictEqual(yield* matching({}), ["app", "run", "ben+bot", "ana+bot", "ana"])
        assert.deepStrictEqual(yield* matching({ user_id: "ana" }), ["ana+bot", "ana"])
        assert.deepStrictEqual(yield* matching({ agent_id: "bot" }), ["ben+bot", "ana+bot"])
        assert.deepStrictEqual(yield* matching({ agent_id: "bot", user_id: "ben" }), ["ben+bot"])
        assert.deepStrictEqual(yield* matching({ run_id: "ana", user_id: "ana" }), [])
        assert.deepStrictEqual(yield* exactly({ user_id: "ana" }), ["ana"])
        assert.deepStrictEqual(yield* exactly({ user_id: "ana", agent_id: "bot" }), ["ana+bot"])
        assert.deepStrictEqual(yield* exactly({ agent_id: "bot" }), [])
      }))

    it.effect("the recent memories of a scope are the newest live ones", () =>
      Effect.gen(function*() {
        const { memories, workspaceId } = yield* begin("recent")
        const all = ["a", "b", "c", "d"].map((text) => added(workspaceId, text))
        yield* memories.write(all.map(add))
        yield* memories.write([remove(all[2]!), update(all[0]!, "a again")])
        assert.deepStrictEqual(texts(yield* memories.recent(workspaceId, { user_id: "ana" }, 2)), ["d", "b"])
      }))

    it.effect("a metadata filter holds for lists and words alike", () =>
      Effect.gen(function*() {
        const { memories, workspaceId } = yield* begin("metadata")
        yield* memories.write([
          add(added(workspaceId, "blue thing", { metadata: { team: "blue", tags: ["a", "b"] } })),
          add(added(workspaceId, "red thing", { metadata: { team: "red", tags: ["b"] } }))
        ])
        const matching = (metadata: Memory["metadata"]) =>
          Effect.gen(function*() {
            const list = yield* memories.list({ ...everything, workspaceId, metadata, before: null })
            const words = yield* memories.lexical({ ...everything, workspaceId, metadata, query: "thing" })
            assert.deepStrictEqual(words, list.map(({ id }) => id))
            return texts(list)
          })
        assert.deepStrictEqual(yield* matching({ team: "blue" }), ["blue thing"])
        assert.deepStrictEqual(yield* matching({ tags: ["b"] }), ["red thing", "blue thing"])
        assert.deepStrictEqual(yield* matching({ tags: ["b"], team: "red" }), ["red thing"])
        assert.deepStrictEqual(yield* matching({ team: "green" }), [])
      }))

    const words = Effect.fnUntraced(function*(workspaceId: WorkspaceId, query: string, limit = 100) {
      const { memories } = yield* Store
      const ids = yield* memories.lexical({ ...everything, workspaceId, query, limit })
      const found = new Map((yield* memories.get(ids.map((id) => ({ workspaceId, id })))).map((memory) => [memory.id, memory]))
      return ids.map((id) => found.get(id)!.text)
    })

    it.effect("words find a memory from its commit on, those that match more of the query first", () =>
      Effect.gen(function*() {
        const { memories, workspaceId } = yield* begin("words")
        const other = yield* begin("words-other")
        yield* memories.write([
          "Ana drinks green tea in the morning",
          "Tea, tea, tea and tea",
          "A green tea",
          "Morning runs along the river",
          "Ana lives in Paris"
        ].map((text) => add(added(workspaceId, text))))
        yield* memories.write([add(added(other.workspaceId, "Their green tea in the morning"))])
        assert.deepStrictEqual(yield* words(workspaceId, "green teas, mornings"), [
          "Ana drinks green tea in the morning",
          "A green tea",
          "Tea, tea, tea and tea",
          "Morning runs along the river"
        ])
        assert.deepStrictEqual(yield* words(workspaceId, "green tea morning", 1), ["Ana drinks green tea in the morning"])
        assert.deepStrictEqual(yield* words(workspaceId, "submarine"), [])
      }))

    it.effect("words find what a memory says now, and nothing that is deleted", () =>
      Effect.gen(function*() {
        const { memories, workspaceId } = yield* begin("now")
        const [moved, gone] = [added(workspaceId, "Lives in Paris"), added(workspaceId, "Born in Paris")]
        yield* memories.write([add(moved), add(gone)])
        yield* memories.write([update(moved, "Lives in Berlin"), remove(gone)])
        assert.deepStrictEqual(yield* words(workspaceId, "Paris"), [])
        assert.deepStrictEqual(yield* words(workspaceId, "Berlin"), ["Lives in Berlin"])
      }))

    it.effect("what a query excludes comes last", () =>
      Effect.gen(function*() {
        const { memories, workspaceId } = yield* begin("excludes")
        yield* memories.write([add(added(workspaceId, "black tea")), add(added(workspaceId, "tea with milk, tea with milk"))])
        assert.deepStrictEqual(yield* words(workspaceId, "tea -milk"), ["black tea", "tea with milk, tea with milk"])
      }))

    it.effect.each([
      "", " ", "the of and", "!!! & | <-> :* ()'\\", "\"", "'", "\"unclosed phrase", "-", "-tea", "or", "or or", "tea or", ":*", "T", "%_",
      "\u0000", "tea\u0000pot", "\ud800", "a & b ! (c | d) <2> e:*AB", "';drop table memories;--", "https://x.y/?a=1&b=2 -\"p q\"",
      "日本語 العربية 🦜", "word ".repeat(50_000), "x".repeat(500_000), "a-".repeat(5_000), "(".repeat(5_000)
    ].map((query) => ({ query })))("a hostile query is only a query: %#", ({ query }) =>
      Effect.gen(function*() {
        const { memories, workspaceId } = yield* begin("hostile")
        yield* memories.write([add(added(workspaceId, "tea"))])
        assert.isTrue((yield* memories.lexical({ ...everything, workspaceId, query })).length <= 1)
      }))

    it.effect.prop("any string is a query", [Schema.String], ([query]) =>
      Effect.gen(function*() {
        const { memories } = yield* Store
        yield* memories.lexical({ ...everything, workspaceId: workspaceOf("any"), query })
      }))

    it.effect("a failure is the store's own: nothing of it is written", () =>
      Effect.gen(function*() {
        const { memories, workspaceId } = yield* begin("whole")
        const good = added(workspaceId, "good")
        const written = yield* Effect.exit(memories.write([add(good), add(added(workspaceOf("nowhere"), "no such workspace"))]))
        assert.isTrue(Exit.isFailure(written))
        assert.deepStrictEqual(yield* memories.get([good]), [])
      }))
  })
