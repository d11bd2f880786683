/** What waits too long is named, and what waits for a reason is not. Exactly at its limit nothing is late yet. */
import { assert, describe, it } from "@effect/vitest"
import type { Operation } from "../../src/domain/Operation.ts"
import * as Overdue from "../../src/domain/Overdue.ts"
import type { LaneSlice } from "../../src/domain/Snapshot.ts"
import { accepted, at, lane, memoryId, workspaceId } from "./samples.ts"

const limits = { overdueMs: 900_000, inputRetentionMs: 86_400_000 }
const now = 100_000_000
const inTime = at(now - 900_000)
const late = at(now - 901_000)

const names = <Slice>(invariants: ReadonlyArray<{ name: string; check: (slice: Slice) => ReadonlyArray<string> }>, slice: Slice) =>
  invariants.flatMap(({ check, name }) => check(slice).map(() => name))

const operation = (changes: Partial<Operation>, hasInput = true) =>
  names(Overdue.overdueOperations, {
    ref: accepted(1),
    operation: accepted(1, changes),
    keys: [],
    authorizations: [],
    transfers: [],
    history: [],
    hasPlan: false,
    hasInput,
    limits,
    now
  })
const work = (changes: Partial<Operation>, endedAt: number | null = null) =>
  names(Overdue.overdueWork, { operation: accepted(1, { createdAt: late, windowStartedAt: late, ...changes }), endedAt, limits, now })
const inLane = (...operations: ReadonlyArray<Operation>) =>
  names<LaneSlice>(Overdue.overdueLanes, { ref: { workspaceId, lane }, operations })
const projection = (nextAttemptAt: number, attempts: number, updatedAt: number) =>
  names(Overdue.overdueProjections, {
    workspaceId,
    id: memoryId(1),
    version: 1,
    attempts,
    nextAttemptAt,
    updatedAt,
    limits,
    now
  })

describe("what should have moved on", () => {
  it("an expired lease that nobody takes over", () => {
    const running = { state: "running", epoch: 1, attempts: 1, leaseOwner: "w" } as const
    assert.deepStrictEqual(operation({ ...running, leaseExpiresAt: late }), ["leases-are-taken-over"])
    assert.deepStrictEqual(operation({ ...running, leaseExpiresAt: inTime }), [])
  })

  it("an attempt that is due, but not one that waits behind its lane", () => {
    assert.deepStrictEqual(operation({ nextAttemptAt: late }), ["retries-start"])
    assert.deepStrictEqual(operation({ nextAttemptAt: inTime }), [])
    assert.deepStrictEqual(operation({ nextAttemptAt: late, ready: false }), [])
  })

  it("input past its retention, but not of an operation that lives", () => {
    const failedAt = (ms: number) => ({ state: "failed", ready: false, failure: "cancelled", completedAt: at(ms) } as const)
    assert.deepStrictEqual(operation(failedAt(late - limits.inputRetentionMs)), ["failed-input-expires"])
    assert.deepStrictEqual(operation(failedAt(inTime - limits.inputRetentionMs)), [])
    assert.deepStrictEqual(operation(failedAt(late - limits.inputRetentionMs), false), [])
    assert.deepStrictEqual(operation({}), [])
  })

  it("work that nobody claims, counted from when it could have started", () => {
    assert.deepStrictEqual(work({}), ["work-starts"])
    assert.deepStrictEqual(work({ createdAt: inTime }), [])
    assert.deepStrictEqual(work({ windowStartedAt: inTime }), [], "reopened by a manual retry")
    assert.deepStrictEqual(work({ startedAt: inTime }), [], "given back by a worker")
    assert.deepStrictEqual(work({}, inTime), [], "its turn came when the one before it ended")
    assert.deepStrictEqual(work({ ready: false }), [])
    assert.deepStrictEqual(work({ nextAttemptAt: at(now + 1) }), [])
    assert.deepStrictEqual(work({ state: "running", leaseOwner: "w", leaseExpiresAt: at(now) }), [])
  })

  it("a lane with work and no head", () => {
    assert.deepStrictEqual(inLane(accepted(1, { ready: false }), accepted(2, { ready: false })), ["lanes-have-a-head"])
    assert.deepStrictEqual(inLane(accepted(1), accepted(2, { ready: false })), [])
    assert.deepStrictEqual(inLane(accepted(1, { state: "failed", ready: false })), [])
  })

  it("a projection that nobody tries, or that fails and fails", () => {
    assert.deepStrictEqual(projection(late, 0, now), ["projections-advance"])
    assert.deepStrictEqual(projection(late, 9, late), ["projections-advance"])
    assert.deepStrictEqual(projection(now + 1, 3, late), ["projections-advance"])
    assert.deepStrictEqual(projection(inTime, 2, late), [])
    assert.deepStrictEqual(projection(now + 1, 9, inTime), [])
  })
})
