/** What every `OperationStore` promises to those who look: lists, what retention finds, and batches of nothing. */
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import type { OperationId } from "../../src/domain/Ids.ts"
import type { Operation } from "../../src/domain/Operation.ts"
import type { ScopeFilter } from "../../src/domain/Scope.ts"
import type { OperationPage } from "../../src/services/OperationStore.ts"
import type { Store } from "../../src/services/Store.ts"
import type { Transaction } from "../../src/services/Transaction.ts"
import {
  accepted,
  at,
  bare,
  begin,
  claimed,
  done,
  failed,
  fromNow,
  hour,
  ids,
  many,
  type Open,
  postponed,
  said
} from "./operations.ts"

export const suite = <R, E>(name: string, ports: Layer.Layer<Store | Transaction | R, E>, open: Open<R>) =>
  layer(ports, { excludeTestServices: true, timeout: "60 seconds" })(`OperationStore reads: ${name}`, (it) => {
    /** A way to list the workspace of this test. */
    const listing = Effect.fnUntraced(function*(test: string) {
      const world = yield* begin(test, open)
      const list = (page: Partial<OperationPage> = {}) =>
        world.operations.list({
          workspaceId: world.workspaceId,
          state: null,
          kind: null,
          scope: {},
          before: null,
          limit: many,
          ...page
        })
      return { ...world, list }
    })

    it.effect("a list is the operations of the workspace, newest first, page by page", () =>
      Effect.gen(function*() {
        const { insert, list, workspaceId } = yield* listing("pages")
        const other = yield* listing("pages-other")
        const all = yield* insert(...Array.from({ length: 5 }, () => accepted(workspaceId)))
        yield* other.insert(accepted(other.workspaceId))
        const pages: Array<ReadonlyArray<Operation>> = []
        let before: OperationId | null = null
        do {
          const page: ReadonlyArray<Operation> = yield* list({ before, limit: 2 })
          pages.push(page)
          before = page.at(-1)?.id ?? null
        } while (before !== null)
        assert.deepStrictEqual(pages.map((page) => page.length), [2, 2, 1, 0])
        assert.deepStrictEqual(pages.flat(), all.toReversed())
        assert.deepStrictEqual(yield* list({ limit: 0 }), [])
      }))

    it.effect("a list may be of one state, of one kind, and of both", () =>
      Effect.gen(function*() {
        const { become, insert, list, workspaceId } = yield* listing("filters")
        const kinds = ["memory.infer", "memory.infer", "memory.infer"] as const
        const [pending, running, ended] = yield* insert(...kinds.map((kind) => accepted(workspaceId, { kind })))
        const [add, update, remove] = yield* insert(
          done(workspaceId),
          done(workspaceId, { kind: "memory.update" }),
          done(workspaceId, { kind: "memory.delete" })
        )
        yield* become(running!, claimed(at(hour)))
        yield* become(ended!, failed(at(1)))
        const of = (page: Partial<OperationPage>) => Effect.map(list(page), ids)
        assert.deepStrictEqual(yield* of({ state: "pending" }), ids([pending!]))
        assert.deepStrictEqual(yield* of({ state: "running" }), ids([running!]))
        assert.deepStrictEqual(yield* of({ state: "failed" }), ids([ended!]))
        assert.deepStrictEqual(yield* of({ state: "succeeded" }), ids([remove!, update!, add!]))
        assert.deepStrictEqual(yield* of({ kind: "memory.infer" }), ids([ended!, running!, pending!]))
        assert.deepStrictEqual(yield* of({ kind: "memory.add" }), ids([add!]))
        assert.deepStrictEqual(yield* of({ kind: "memory.update", state: "succeeded" }), ids([update!]))
        assert.deepStrictEqual(yield* of({ kind: "memory.delete", state: "failed" }), [])
        assert.deepStrictEqual(yield* of({ kind: "memory.infer", before: ended!.id, limit: 1 }), ids([running!]))
      }))

    it.effect("a scope filter matches the ids it names, whatever else a scope names", () =>
      Effect.gen(function*() {
        const { insert, list, workspaceId } = yield* listing("scopes")
        const scopes: ReadonlyArray<ScopeFilter> = [
          { user_id: "ana" },
          { user_id: "ana", agent_id: "bot" },
          { user_id: "ben", agent_id: "bot" },
          { run_id: "ana" },
          { app_id: "a'b \"🦜\" \\u0041" }
        ]
        const [ana, both, ben, run, app] = yield* insert(...scopes.map((scope) => accepted(workspaceId, { scope })))
        const of = (scope: ScopeFilter) => Effect.map(list({ scope }), ids)
        assert.deepStrictEqual(yield* of({}), ids([app!, run!, ben!, both!, ana!]))
        assert.deepStrictEqual(yield* of({ user_id: "ana" }), ids([both!, ana!]))
        assert.deepStrictEqual(yield* of({ agent_id: "bot" }), ids([ben!, both!]))
        assert.deepStrictEqual(yield* of({ agent_id: "bot", user_id: "ben" }), ids([ben!]))
        assert.deepStrictEqual(yield* of({ run_id: "ana" }), ids([run!]))
        assert.deepStrictEqual(yield* of(scopes[4]!), ids([app!]))
        assert.deepStrictEqual(yield* of({ user_id: "an" }), [])
        assert.deepStrictEqual(yield* of({ run_id: "ana", user_id: "ana" }), [])
      }))

    it.effect("retention finds the inputs of what failed long enough ago, the oldest first", () =>
      Effect.gen(function*() {
        const { become, operations, workspaceId } = yield* listing("retention")
        const ages = [3, 5, 4, 1].map((hours) => -hours * hour)
        const rows = Array.from({ length: 8 }, () => bare(accepted(workspaceId), { input: said("tea") }))
        yield* operations.insert(rows)
        const stored = yield* Effect.forEach(rows, ({ operation }) =>
          Effect.map(operations.get(operation), (row) => row!))
        const [three, five, four, , purged, succeeded, running, waiting] = stored
        for (const [n, age] of ages.entries()) yield* become(stored[n]!, failed(yield* fromNow(age)))
        yield* become(purged!, failed(yield* fromNow(-9 * hour)))
        yield* operations.redact([purged!])
        const ended = { results: [], evidence: succeeded!.evidence, at: yield* fromNow(-9 * hour) }
        yield* become(succeeded!, claimed(at(0)), { _tag: "Succeeded", ...ended })
        yield* become(running!, claimed(yield* fromNow(-9 * hour)))
        yield* become(waiting!, claimed(at(0)), postponed(yield* fromNow(-9 * hour)))
        const expired = (hours: number, limit = many) => Effect.map(operations.expiredInputs(hours * hour, limit), ids)
        assert.deepStrictEqual(yield* expired(2), ids([five!, four!, three!]))
        assert.deepStrictEqual(yield* expired(2, 2), ids([five!, four!]))
        assert.deepStrictEqual(yield* expired(6), [])
        yield* operations.redact([four!])
        assert.deepStrictEqual(yield* expired(2), ids([five!, three!]))
      }))

    it.effect("announcements are pruned by age and in bounded numbers, and none is left of what was rolled back", () =>
      Effect.gen(function*() {
        const { insert, operations, run, workspaceId } = yield* listing("announcements")
        const rows = yield* insert(...Array.from({ length: 3 }, () => done(workspaceId)))
        yield* Effect.flip(run(Effect.andThen(operations.announce(rows), Effect.fail("no"))))
        // Older than in the future: whatever there is, though the clock may not have moved since.
        const prune = (limit: number, ageMs = -1) => operations.pruneAnnouncements(ageMs, limit)
        assert.strictEqual(yield* prune(many), 0)
        yield* run(operations.announce(rows.slice(0, 2)))
        yield* operations.announce(rows.slice(1))
        assert.strictEqual(yield* prune(many, hour), 0)
        assert.strictEqual(yield* prune(3), 3)
        assert.strictEqual(yield* prune(3), 1)
        assert.strictEqual(yield* prune(3), 0)
      }))

    it.effect("of nothing there is nothing, whatever is asked", () =>
      Effect.gen(function*() {
        const { insert, operations, run, workspaceId } = yield* listing("nothing")
        const [operation] = yield* insert(accepted(workspaceId))
        yield* operations.announce([operation!])
        yield* run(operations.lockLanes([]))
        yield* operations.insert([])
        yield* operations.insertKeys([])
        yield* operations.redact([])
        yield* operations.announce([])
        assert.deepStrictEqual(yield* operations.occupiedLanes([]), [])
        assert.deepStrictEqual(yield* operations.findKeys([]), [])
        assert.deepStrictEqual((yield* run(operations.claimable(0))).operations, [])
        assert.deepStrictEqual((yield* run(operations.expired(0))).operations, [])
        assert.deepStrictEqual((yield* run(operations.lock([]))).operations, [])
        assert.deepStrictEqual(yield* operations.save([]), [])
        assert.deepStrictEqual(yield* operations.renew([], hour), [])
        assert.deepStrictEqual(yield* operations.work([]), [])
        assert.deepStrictEqual(yield* operations.freeze([]), [])
        assert.strictEqual(yield* operations.readyNext([]), 0)
        assert.deepStrictEqual(yield* operations.withInput([]), [])
        assert.deepStrictEqual(yield* operations.expiredInputs(-hour, 0), [])
        assert.strictEqual(yield* operations.pruneAnnouncements(-1, 0), 0)
        assert.deepStrictEqual(yield* operations.get(operation!), operation)
      }))
  })
