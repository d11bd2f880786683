/** What every `OperationStore` promises of its rows: read as written, written by whoever read last, named by keys. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, type Layer } from "effect"
import { IdempotencyKey, keyHash } from "../../src/domain/Command.ts"
import { derivedMemoryId } from "../../src/domain/Digest.ts"
import { Sha256Hex, Timestamp, type WorkspaceId } from "../../src/domain/Ids.ts"
import type { Operation } from "../../src/domain/Operation.ts"
import type { ResultRef } from "../../src/domain/Plan.ts"
import type { KeyRow } from "../../src/services/OperationStore.ts"
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
  hostile,
  hour,
  ids,
  many,
  type Open,
  planOf,
  said
} from "./operations.ts"
import { operationId, workspaceOf } from "./records.ts"

const hashOf = (key: string) => keyHash(IdempotencyKey.make(key))
const digestOf = (digit: string) => Sha256Hex.make(digit.repeat(64))

const keyOf = (operation: Operation, key: string, fields: Partial<KeyRow> = {}): KeyRow => ({
  workspaceId: operation.workspaceId,
  keyHash: hashOf(key),
  commandVersion: 1,
  commandHash: digestOf("c"),
  operationId: operation.id,
  ...fields
})

/** Every kind of result that there is. */
const results = (workspaceId: WorkspaceId): ReadonlyArray<ResultRef> => {
  const operation = accepted(workspaceId)
  const id = (n: number) => derivedMemoryId(operation.id, n)
  return [
    { id: id(0), change: "add", version: 1 },
    { id: id(1), change: "update", version: 7 },
    { id: id(2), change: "delete", version: 3 },
    { id: null, change: "none", version: null, reason: "empty" },
    { id: id(3), change: "none", version: null, reason: "target_gone" }
  ]
}

export const suite = <R, E>(name: string, ports: Layer.Layer<Store | Transaction | R, E>, open: Open<R>) =>
  layer(ports, { excludeTestServices: true, timeout: "60 seconds" })(`OperationStore: ${name}`, (it) => {
    it.effect("an operation is read as it was inserted, and has a place", () =>
      Effect.gen(function*() {
        const { operations, workspaceId } = yield* begin("inserted", open)
        const pending = accepted(workspaceId, {
          scope: { user_id: hostile, agent_id: "🦜", run_id: "r-1", app_id: "a'b" },
          fairTag: Number.MAX_SAFE_INTEGER
        })
        const behind = accepted(workspaceId, { scope: pending.scope, ready: false, authorizationNo: null })
        const born = done(workspaceId, { kind: "memory.update", results: results(workspaceId), completedAt: at(17) })
        yield* operations.insert([bare(pending), bare(behind), bare(born)])
        for (const operation of [pending, behind, born]) {
          const stored = yield* operations.get(operation)
          assert.deepStrictEqual(stored, { ...operation, seq: stored!.seq })
          assert.isAbove(stored!.seq, 0)
        }
      }))

    it.effect("places are given in the order of acceptance, whatever the ids, and never twice", () =>
      Effect.gen(function*() {
        const { insert, operations, workspaceId } = yield* begin("places", open)
        const rows = Array.from({ length: 5 }, () => accepted(workspaceId)).toReversed()
        const first = yield* insert(...rows)
        const between = yield* operations.nextSeq
        const second = yield* insert(accepted(workspaceId))
        const seqs = (rows: ReadonlyArray<Operation>) => rows.map(({ seq }) => seq)
        const places = [...seqs(first), between, ...seqs(second), yield* operations.nextSeq]
        assert.deepStrictEqual(places, [...new Set(places)].toSorted((a, b) => a - b))
      }))

    it.effect("an operation that does not exist is null, and so is one of another workspace", () =>
      Effect.gen(function*() {
        const { insert, operations, workspaceId } = yield* begin("null", open)
        const [operation] = yield* insert(accepted(workspaceId))
        assert.isNull(yield* operations.get({ workspaceId, id: operationId() }))
        assert.isNull(yield* operations.get({ workspaceId: workspaceOf("elsewhere"), id: operation!.id }))
      }))

    it.effect("the same id in two workspaces is two operations", () =>
      Effect.gen(function*() {
        const mine = yield* begin("mine", open)
        const theirs = yield* begin("theirs", open)
        const { operations } = mine
        const a = accepted(mine.workspaceId)
        const twin = { ...accepted(theirs.workspaceId), id: a.id }
        yield* operations.insert([
          bare(a, { input: said("mine"), key: keyOf(a, "key") }),
          bare(twin, { input: said("theirs"), key: keyOf(twin, "key", { commandHash: digestOf("b") }) })
        ])
        const untouched = yield* operations.get(twin)
        const running = yield* mine.become((yield* operations.get(a))!, claimed(at(hour)))
        yield* operations.freeze([{ ...a, plan: planOf("mine") }, { ...twin, plan: planOf("theirs") }])
        assert.deepStrictEqual((yield* mine.run(operations.lock([a]))).operations, [running])
        assert.deepStrictEqual(yield* operations.renew([{ ...a, epoch: 1 }, { ...twin, epoch: 1 }], hour), [
          { workspaceId: a.workspaceId, id: a.id, epoch: 1 }
        ])
        yield* operations.redact([a])
        assert.deepStrictEqual(yield* operations.get(twin), untouched)
        assert.deepStrictEqual(yield* operations.work([twin]), [
          { workspaceId: twin.workspaceId, id: twin.id, input: said("theirs"), plan: planOf("theirs") }
        ])
        const keys = yield* operations.findKeys([{ workspaceId: theirs.workspaceId, keyHash: hashOf("key") }])
        assert.deepStrictEqual(keys, [keyOf(twin, "key", { commandHash: digestOf("b") })])
      }))

    it.effect("a key leads to its operation and its command, in its own workspace only", () =>
      Effect.gen(function*() {
        const { operations, workspaceId } = yield* begin("keys", open)
        const [one, two] = [accepted(workspaceId), accepted(workspaceId)]
        const first = keyOf(one!, "first", { commandVersion: 3, commandHash: digestOf("1") })
        const second = keyOf(two!, "second")
        const retry = keyOf(one!, "retry")
        yield* operations.insert([bare(one!, { key: first }), bare(two!, { key: second })])
        yield* operations.insertKeys([retry])
        const find = (...keys: ReadonlyArray<Pick<KeyRow, "workspaceId" | "keyHash">>) =>
          Effect.map(operations.findKeys(keys), (rows) => new Map(rows.map((row) => [row.keyHash, row])))
        const unknown = { workspaceId, keyHash: hashOf("unknown") }
        assert.deepStrictEqual(
          yield* find(retry, unknown, second, first),
          new Map([first, second, retry].map((row) => [row.keyHash, row]))
        )
        assert.deepStrictEqual(yield* find({ ...first, workspaceId: workspaceOf("elsewhere") }), new Map())
      }))

    it.effect("a key is taken for good: an insert that takes it again is a defect, and writes nothing", () =>
      Effect.gen(function*() {
        const { operations, workspaceId } = yield* begin("taken", open)
        const [first, thief, innocent] = [1, 2, 3].map(() => accepted(workspaceId))
        const key = keyOf(first!, "key")
        yield* operations.insert([bare(first!, { key })])
        const thefts = [
          operations.insert([
            bare(innocent!, { input: said("tea"), key: keyOf(innocent!, "other") }),
            bare(thief!, { key: keyOf(thief!, "key") })
          ]),
          operations.insertKeys([keyOf(first!, "more"), keyOf(first!, "key")])
        ]
        for (const theft of thefts) {
          assert.isTrue(Exit.hasDies(yield* Effect.exit(theft)))
        }
        assert.deepStrictEqual(ids(yield* operations.list(everything(workspaceId))), [first!.id])
        const keys = ["key", "other", "more"].map((text) => ({ workspaceId, keyHash: hashOf(text) }))
        assert.deepStrictEqual(yield* operations.findKeys(keys), [key])
      }))

    it.effect("every column that may change is read as it was saved, and null again when it is null again", () =>
      Effect.gen(function*() {
        const { insert, operations, workspaceId } = yield* begin("saved", open)
        const [pending] = yield* insert(accepted(workspaceId, { authorizationNo: null }))
        const running: Operation = {
          ...pending!,
          state: "running",
          seq: yield* operations.nextSeq,
          fairTag: 9_007_199_254_740_990,
          nextAttemptAt: at(1),
          epoch: 3,
          attempts: 4,
          invalidOutputs: 5,
          windowStartedAt: at(999),
          leaseOwner: "worker 🦜 'one'",
          leaseExpiresAt: at(1_001),
          authorizationNo: 6,
          failure: "provider_timeout",
          startedAt: Timestamp.make(1_700_000_000_007)
        }
        const again: Operation = {
          ...running,
          state: "pending",
          ready: false,
          nextAttemptAt: null,
          leaseOwner: null,
          leaseExpiresAt: null,
          authorizationNo: null,
          failure: null,
          startedAt: null
        }
        const succeeded: Operation = {
          ...again,
          state: "succeeded",
          outcome: "no_memory",
          results: results(workspaceId),
          evidence: {
            commandVersion: 2,
            commandHash: digestOf("d"),
            messages: 7,
            inputBytes: 8,
            model: hostile,
            planDigest: digestOf("e"),
            offered: 9,
            stored: 10
          },
          completedAt: at(1_234_567)
        }
        for (const [from, to] of [[pending!, running], [running, again], [again, succeeded]] as const) {
          assert.deepStrictEqual(yield* operations.save([{ from, to }]), [{ workspaceId, id: to.id }])
          assert.deepStrictEqual(yield* operations.get(to), to)
        }
      }))

    it.effect("a row that is not as it was read is not written, and the rest of the batch is", () =>
      Effect.gen(function*() {
        const { become, insert, operations, workspaceId } = yield* begin("fenced", open)
        const [taken, ended, mine] = yield* insert(accepted(workspaceId), accepted(workspaceId), accepted(workspaceId))
        const held = yield* become(taken!, claimed(at(hour)))
        const newer = yield* become(held, claimed(at(2 * hour)))
        const failure = yield* become(ended!, failed(at(5)))
        const late = (from: Operation) => ({ from, to: { ...from, attempts: 99, fairTag: 99 } })
        const never = accepted(workspaceId)
        // The wrong epoch, the wrong state and epoch, the wrong state.
        for (const stale of [held, taken!, { ...newer, state: "pending" as const }]) {
          assert.deepStrictEqual(yield* operations.save([late(stale)]), [])
        }
        const saved = yield* operations.save([late(ended!), late(never), late(mine!)])
        assert.deepStrictEqual(saved, [{ workspaceId, id: mine!.id }])
        assert.deepStrictEqual(yield* operations.get(taken!), newer)
        assert.deepStrictEqual(yield* operations.get(ended!), failure)
        assert.isNull(yield* operations.get(never))
        assert.strictEqual((yield* operations.get(mine!))!.attempts, 99)
      }))

    it.effect("a lock shows what exists in lock order, and the clock of the store", () =>
      Effect.gen(function*() {
        const one = yield* begin("lock-1", open)
        const two = yield* begin("lock-2", open)
        const { operations, run } = one
        const [a, b] = yield* one.insert(accepted(one.workspaceId), accepted(one.workspaceId))
        const [c] = yield* two.insert(accepted(two.workspaceId))
        const before = yield* operations.now
        const locked = yield* run(operations.lock([c!, { workspaceId: one.workspaceId, id: operationId() }, b!, a!]))
        assert.deepStrictEqual(locked.operations, [a!, b!, c!])
        assert.isAtLeast(locked.now, before)
        assert.isAtMost(locked.now, yield* operations.now)
      }))
  })

const everything = (workspaceId: WorkspaceId) =>
  ({ workspaceId, state: null, kind: null, scope: {}, before: null, limit: many })
