/** What every `OperationStore` promises of what an attempt works with: inputs kept to the end, plans written once. */
import { assert, layer } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import type { InferInput } from "../../src/domain/Command.ts"
import { derivedMemoryId } from "../../src/domain/Digest.ts"
import { refKey } from "../../src/domain/Ids.ts"
import type { Operation } from "../../src/domain/Operation.ts"
import type { Store } from "../../src/services/Store.ts"
import type { Transaction } from "../../src/services/Transaction.ts"
import { hash } from "../domain/samples.ts"
import { accepted, bare, begin, hostile, ids, type Open, planOf, said } from "./operations.ts"

/** Every kind of step that there is. */
const everyStep = (operation: Operation) =>
  planOf("model", {
    steps: [
      { change: "add", id: derivedMemoryId(operation.id, 0), text: hostile },
      { change: "update", id: derivedMemoryId(operation.id, 1), expectedVersion: 2, text: "" },
      { change: "delete", id: derivedMemoryId(operation.id, 2), expectedVersion: 9 },
      { change: "none", id: null, reason: "target_unknown" }
    ],
    scope: { user_id: hostile, app_id: "app" },
    metadata: { tags: ["x", { y: null }], deep: { n: 1.5, s: hostile } },
    eventDate: "2025-11-30T12:00:00.000Z"
  })

export const suite = <R, E>(name: string, ports: Layer.Layer<Store | Transaction | R, E>, open: Open<R>) =>
  layer(ports, { excludeTestServices: true, timeout: "60 seconds" })(`OperationStore work: ${name}`, (it) => {
    it.effect("an attempt finds the input and the plan, or that they are not there", () =>
      Effect.gen(function*() {
        const { operations, workspaceId } = yield* begin("work", open)
        const [full, empty] = [accepted(workspaceId), accepted(workspaceId)]
        const input: InferInput = {
          messages: [{ role: "user", content: hostile, name: "Ana 🦜" }, { role: "tool", content: "" }],
          metadata: { tags: ["x", { y: null }], deep: { n: 1.5, s: hostile } },
          eventDate: "2025-11-30T12:00:00.000Z",
          instructions: hostile
        }
        yield* operations.insert([bare(full!, { input }), bare(empty!)])
        const plan = everyStep(full!)
        const frozen = { workspaceId, id: full!.id, plan }
        assert.deepStrictEqual(yield* operations.freeze([frozen]), [frozen])
        const work = yield* operations.work([empty!, full!])
        assert.deepStrictEqual(new Map(work.map((row) => [row.id, row])), new Map([
          [full!.id, { workspaceId, id: full!.id, input, plan }],
          [empty!.id, { workspaceId, id: empty!.id, input: null, plan: null }]
        ]))
        assert.deepStrictEqual(yield* operations.withInput([empty!, full!]), [{ workspaceId, id: full!.id }])
      }))

    it.effect("a plan is frozen once: whoever freezes later is told the first one", () =>
      Effect.gen(function*() {
        const { insert, operations, workspaceId } = yield* begin("freeze", open)
        const [one, two] = yield* insert(accepted(workspaceId), accepted(workspaceId))
        const freeze = (...rows: ReadonlyArray<readonly [Operation, string]>) =>
          Effect.map(
            operations.freeze(rows.map(([row, model]) => ({ workspaceId, id: row.id, plan: planOf(model) }))),
            (frozen) => new Map(frozen.map(({ id, plan }) => [id, plan.model]))
          )
        assert.deepStrictEqual(yield* freeze([one!, "first"]), new Map([[one!.id, "first"]]))
        const inForce = yield* freeze([two!, "second"], [one!, "late"])
        assert.deepStrictEqual(inForce, new Map([[one!.id, "first"], [two!.id, "second"]]))
        const work = yield* operations.work([one!, two!])
        assert.deepStrictEqual(work.map(({ plan }) => plan!.model).toSorted(), ["first", "second"])
      }))

    it.effect("redaction removes the input and the plan for good, and nothing else", () =>
      Effect.gen(function*() {
        const { operations, workspaceId } = yield* begin("redact", open)
        const rows = [1, 2, 3].map((n) => bare(accepted(workspaceId), { input: said(`tea ${n}`) }))
        const [one, two, kept] = rows.map(({ operation }) => operation)
        const key = { workspaceId, keyHash: hash, commandVersion: 1, commandHash: hash, operationId: one!.id }
        yield* operations.insert(rows.map((row) => row.operation === one ? { ...row, key } : row))
        const before = yield* operations.get(one!)
        yield* operations.freeze([one!, two!, kept!].map((row) => ({ ...row, plan: planOf("model") })))
        yield* operations.redact([one!, two!])
        yield* operations.redact([one!])
        const work = new Map((yield* operations.work([one!, two!, kept!])).map((row) => [refKey(row), row]))
        for (const { id } of [one!, two!]) {
          assert.deepStrictEqual(work.get(refKey({ workspaceId, id })), { workspaceId, id, input: null, plan: null })
        }
        assert.deepStrictEqual(work.get(refKey(kept!))!.input, said("tea 3"))
        assert.deepStrictEqual(work.get(refKey(kept!))!.plan, planOf("model"))
        assert.deepStrictEqual(ids(yield* operations.withInput([one!, two!, kept!])), [kept!.id])
        assert.deepStrictEqual(yield* operations.findKeys([key]), [key])
        assert.deepStrictEqual(yield* operations.get(one!), before)
      }))
  })
