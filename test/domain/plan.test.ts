/** A plan trusts nothing that a model says, names the same records for ever, and applies the same way each time. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as Arbitrary from "effect/Arbitrary"
import { derivedMemoryId } from "../../src/domain/Digest.ts"
import { MemoryId } from "../../src/domain/Ids.ts"
import { type Memory, memoryMaxLength } from "../../src/domain/Memory.ts"
import {
  applyPlan,
  buildPlan,
  type Fact,
  nextVersion,
  Plan,
  planDigest,
  planTargets,
  type Related
} from "../../src/domain/Plan.ts"
import { oneOf } from "./arbitraries.ts"
import { added, at, operationId, workspaceId } from "./samples.ts"

const memories = [added(1), added(2), added(3)]
const related: ReadonlyArray<Related> = memories.map(({ id, text, version }) => ({ id, version, text: text! }))
const current = (rows: ReadonlyArray<Memory> = memories) => new Map(rows.map((memory) => [memory.id, memory]))
const about = { scope: { user_id: "ada" }, metadata: { a: 1, b: 2 }, eventDate: null, model: "m" }
const input = { operationId: operationId(9), related, ...about }
const plan = (facts: ReadonlyArray<Fact>) => buildPlan({ ...input, facts })
const context = { operation: { workspaceId, id: operationId(9) }, now: at(5_000), current: current() }

const add = (text: string | null): Fact => ({ change: "add", text, target: null })
const update = (target: number | null, text: string): Fact => ({ change: "update", text, target })
const remove = (target: number | null): Fact => ({ change: "delete", text: null, target })
const outcomes = (facts: ReadonlyArray<Fact>, rows?: ReadonlyArray<Memory>) =>
  applyPlan(plan(facts), { ...context, current: current(rows) }).results.map((result) => result.reason ?? result.change)

const facts = Arbitrary.array(
  Arbitrary.all({
    change: oneOf("add", "add", "update", "delete", "none"),
    text: Arbitrary.schema(Schema.NullOr(Schema.String)).pipe(
      Arbitrary.flatMap((text) => oneOf(text, "fact 1", "new", " new "))
    ),
    target: oneOf(null, 0, 1, 2, 2, 3, -1, 0.5, 1e21, Number.NaN)
  }),
  { maxLength: 12 }
)

describe("building a plan", () => {
  it.prop("is total, and names only the memories that the model was shown or that it adds", { facts }, ({ facts }) => {
    const built = plan(facts)
    assert.strictEqual(built.steps.length, facts.length)
    assert.isTrue(Schema.is(Plan)(built))
    const shown = new Set<string>(related.map(({ id }) => id))
    const own = new Set<string>(facts.map((_, index) => derivedMemoryId(input.operationId, index)))
    built.steps.forEach((step, index) => {
      if (step.change === "add") assert.strictEqual(step.id, derivedMemoryId(input.operationId, index))
      else if (step.id !== null) assert.isTrue(shown.has(step.id) || (step.change === "none" && own.has(step.id)))
    })
    const targets = planTargets(built)
    assert.strictEqual(new Set(targets).size, targets.length)
  }, { arbitrary: { runs: 300 } })

  it.prop("is the same each time, and has the same digest however it was stored", { facts }, ({ facts }) => {
    const built = plan(facts)
    assert.deepStrictEqual(plan(facts), built)
    const { metadata, ...others } = built
    const reordered = { metadata: Object.fromEntries(Object.entries(metadata).toReversed()), ...others }
    assert.strictEqual(planDigest(reordered), planDigest(built))
  })

  it("a target out of range is unknown, never guessed", () => {
    for (const target of [3, -1, 0.5, 1e21, -0.5, Number.NaN, Infinity, null]) {
      assert.deepStrictEqual(outcomes([remove(target), update(target, "x")]), ["target_unknown", "target_unknown"])
    }
  })

  it("the second step on one target is a duplicate, and the first one counts", () => {
    const built = plan([update(0, "x"), update(0, "y"), remove(0)])
    assert.deepStrictEqual(built.steps.map((step) => step.change), ["update", "none", "none"])
    assert.deepStrictEqual(outcomes([update(0, "x"), update(0, "y"), remove(0)]), ["update", "duplicate", "duplicate"])
  })

  it("what is known is not stored twice, neither from the list nor from the plan itself", () => {
    assert.deepStrictEqual(outcomes([add("fact 1"), add("new"), add(" new\n"), update(1, "new")]), [
      "duplicate", "add", "duplicate", "duplicate"
    ])
    assert.deepStrictEqual(outcomes([update(0, "fact 1")]), ["duplicate"])
  })

  it("what a deleted or changed memory said may be said anew", () => {
    assert.deepStrictEqual(outcomes([remove(0), add("fact 1")]), ["delete", "add"])
    assert.deepStrictEqual(outcomes([update(0, "x"), add("fact 1"), add("x")]), ["update", "add", "duplicate"])
  })

  it("text that cannot be stored is skipped with a reason, and the rest is stored", () => {
    const tooLong = "x".repeat(memoryMaxLength + 1)
    const declined: Fact = { change: "none", text: "x", target: null }
    assert.deepStrictEqual(
      outcomes([add(null), add(" \n"), add("a\u0000"), add("\ud800"), add(tooLong), declined, add("ok")]),
      ["empty", "empty", "empty", "empty", "too_long", "model_declined", "add"]
    )
  })
})

describe("applying a plan", () => {
  it.prop("gives the same from the same state, and one result for each fact", { facts }, ({ facts }) => {
    const built = plan(facts)
    const applied = applyPlan(built, context)
    assert.deepStrictEqual(applyPlan(built, context), applied)
    assert.strictEqual(applied.results.length, facts.length)
    const stored = applied.results.filter((result) => result.change !== "none")
    assert.deepStrictEqual(
      applied.writes.map(({ change, memory }) => [memory.id, change, memory.version]),
      stored.map(({ change, id, version }) => [id, change, version])
    )
  }, { arbitrary: { runs: 200 } })

  it("a target that moved or vanished is skipped with a reason, and the rest is applied", () => {
    const asked = [update(0, "x"), remove(1), update(2, "z"), add("new")]
    assert.deepStrictEqual(outcomes(asked), ["update", "delete", "update", "add"])
    const moved = [added(1, { version: 2 }), added(2, { deleted: true, text: null })]
    assert.deepStrictEqual(outcomes(asked, moved), ["target_changed", "target_gone", "target_gone", "add"])
  })

  it("applied again to what it made, it changes nothing that it changed", () => {
    const built = plan([update(0, "x"), remove(1)])
    const { writes } = applyPlan(built, context)
    const again = applyPlan(built, { ...context, current: current(writes.map(({ memory }) => memory)) })
    assert.deepStrictEqual(again.writes, [])
    assert.deepStrictEqual(again.results.map(({ reason }) => reason), ["target_changed", "target_gone"])
  })

  it("a stored plan with two steps on one target makes one version of it", () => {
    const [first] = plan([update(0, "x")]).steps
    const doubled = { ...plan([]), steps: [first!, first!] }
    const { results, writes } = applyPlan(doubled, context)
    assert.deepStrictEqual(results.map((result) => result.reason ?? result.change), ["update", "target_changed"])
    assert.strictEqual(writes.length, 1)
  })

  it("a new memory is what the plan says; a changed one keeps what is its own", () => {
    const { writes } = applyPlan(plan([add("new"), update(0, "x")]), context)
    assert.deepStrictEqual(writes.map(({ memory }) => memory), [
      {
        workspaceId,
        id: derivedMemoryId(operationId(9), 0),
        version: 1,
        text: "new",
        scope: { user_id: "ada" },
        metadata: { a: 1, b: 2 },
        eventDate: null,
        operationId: operationId(9),
        createdAt: at(5_000),
        updatedAt: at(5_000),
        deleted: false
      },
      { ...added(1), version: 2, text: "x", operationId: operationId(9), updatedAt: at(5_000) }
    ])
  })

  it("a deletion leaves a tombstone that says nothing", () => {
    const gone = nextVersion(added(1), { text: null, operationId: operationId(9), now: at(5_000) })
    const said = { text: null, metadata: {}, eventDate: null }
    assert.deepStrictEqual(gone, {
      ...added(1),
      ...said,
      version: 2,
      deleted: true,
      operationId: operationId(9),
      updatedAt: at(5_000)
    })
  })
})

describe("a derived id", () => {
  it("is a UUIDv8 that keeps the time of its operation, and is fixed for ever", () => {
    const id = derivedMemoryId(operationId(1), 0)
    assert.strictEqual(id, golden)
    assert.match(id, /^018f0000-0000-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    assert.isTrue(Schema.is(MemoryId)(id))
  })

  it("is of one operation and one place", () => {
    const ids = [1, 2, 11].flatMap((n) => [0, 1, 2, 10, 11].map((index) => derivedMemoryId(operationId(n), index)))
    assert.strictEqual(new Set(ids).size, ids.length)
  })
})

const golden = "018f0000-0000-81ec-9030-b722b1d8cad5"
