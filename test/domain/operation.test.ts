/** The operation under every sequence of inputs: fenced by its epoch, bounded in attempts, final at its end. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as Arbitrary from "effect/Arbitrary"
import { FailureClass } from "../../src/domain/Failure.ts"
import { checkOperationTransition, perOperation } from "../../src/domain/Invariants.ts"
import { decide, evolve, type Input, isTerminal, type Operation } from "../../src/domain/Operation.ts"
import type { ResultRef } from "../../src/domain/Plan.ts"
import { oneOf } from "./arbitraries.ts"
import { accepted, memoryId, policy as usual } from "./samples.ts"

const maxAttempts = 3
const policy = { ...usual, maxAttempts }
const leaseMs = 30_000
const evidence = accepted(1).evidence
const reopen = { _tag: "Retry", authorizationNo: 2, seq: 9, ready: true, fairTag: 8, now: 9_000 } as const
const failWith = (failure: FailureClass, now: number) =>
  ({ _tag: "Fail", epoch: 1, failure, retryAfterMs: null, jitter: 0, policy, now }) as const

/** Somebody tries something. Its epoch may be stale, and its moment may be early. */
const moves = Arbitrary.all({
  what: oneOf(
    ...["Claim", "Claim", "Claim", "Claim", "Exhaust", "Exhaust", "Fail", "Fail"] as const,
    ...["Freeze", "Commit", "Release", "Cancel", "Retry"] as const
  ),
  staleBy: oneOf(0, 0, 0, 0, 1, 2, -1),
  pause: oneOf(0, 1, 1_000, leaseMs, leaseMs, 120_000),
  failure: Arbitrary.schema(FailureClass),
  retryAfterMs: oneOf(null, 0, 5_000),
  stored: oneOf(true, false)
})
type Move = typeof moves extends Arbitrary.Arbitrary<infer A> ? A : never
const sequences = Arbitrary.array(moves, { maxLength: 60 })

const inputOf = (move: Move, operation: Operation, now: number): Input => {
  const epoch = operation.epoch - move.staleBy
  const results: ReadonlyArray<ResultRef> = move.stored
    ? [{ id: memoryId(1), change: "add", version: 1 }]
    : [{ id: null, change: "none", version: null, reason: "empty" }]
  switch (move.what) {
    case "Claim":
      return { _tag: "Claim", owner: `w${move.pause}`, leaseMs, maxAttempts, now }
    case "Exhaust":
      return { _tag: "Exhaust", maxAttempts, epoch, now }
    case "Freeze":
      return { _tag: "Freeze", epoch }
    case "Commit":
      return { _tag: "Commit", epoch, results, evidence, now }
    case "Fail":
      return { _tag: "Fail", epoch, failure: move.failure, retryAfterMs: move.retryAfterMs, jitter: 0.5, policy, now }
    case "Release":
      return { _tag: "Release", epoch }
    case "Cancel":
      return { _tag: "Cancel", now }
    case "Retry":
      return { ...reopen, authorizationNo: (operation.authorizationNo ?? 0) + 1, seq: operation.seq + 10, now }
  }
}

interface Step {
  readonly input: Input
  readonly before: Operation
  readonly after: Operation
  readonly refused: string | null
}

const play = (sequence: ReadonlyArray<Move>): ReadonlyArray<Step> => {
  const steps: Array<Step> = []
  let operation = accepted(1)
  let now = 1_000
  for (const move of sequence) {
    now += move.pause
    const input = inputOf(move, operation, now)
    const event = decide(operation, input)
    const after = Result.isSuccess(event) ? evolve(operation, event.success) : operation
    steps.push({ input, before: operation, after, refused: Result.isFailure(event) ? event.failure : null })
    operation = after
  }
  return steps
}

const after = (operation: Operation, input: Input): Operation =>
  evolve(operation, Result.getOrThrow(decide(operation, input)))
const exhaust = (epoch: number, now: number) => ({ _tag: "Exhaust", maxAttempts, epoch, now }) as const
const commit = (epoch: number, now: number) => ({ _tag: "Commit", epoch, results: [], evidence, now }) as const
const claim = (now: number) => ({ _tag: "Claim", owner: "w", leaseMs, maxAttempts, now }) as const
const refusal = (operation: Operation, input: Input) => {
  const event = decide(operation, input)
  return Result.isFailure(event) ? event.failure : null
}

/** The invariants that the row alone can break. */
const ofTheRow = ["lease-follows-state", "terminal-is-finished", "attempts-are-claims"].map((name) =>
  perOperation.find((invariant) => invariant.name === name)!
)
const nothingElse = { keys: [], authorizations: [], transfers: [], history: [], hasPlan: false, hasInput: false }

describe("an operation", () => {
  it.effect("meets every event and every refusal in the sequences below", () =>
    Effect.gen(function*() {
      const played = yield* Arbitrary.sampleEffect(sequences, { count: 200, size: 60, seed: 1 })
      const met = played.flatMap((sequence) => play(sequence).map(({ after, before, input, refused }) =>
        refused ?? `${before.state} ${input._tag} ${after.state}`
      ))
      assert.deepStrictEqual([...new Set(met)].toSorted(), [
        "already_terminal", "attempts_spent", "failed Retry pending", "lease_lost", "not_claimable",
        "not_due", "not_failed", "pending Cancel failed", "pending Claim running", "running Cancel failed",
        "running Claim running", "running Commit succeeded", "running Exhaust failed", "running Fail failed",
        "running Fail pending", "running Freeze running", "running Release pending"
      ])
    }))

  it.prop("keeps every invariant, whatever is tried in whatever order", { sequence: sequences }, ({ sequence }) => {
    for (const { after, before } of play(sequence)) {
      assert.deepStrictEqual(checkOperationTransition({ before, after }), [])
      const slice = { ref: after, operation: after, ...nothingElse }
      assert.deepStrictEqual(ofTheRow.flatMap(({ check }) => check(slice)), [])
    }
  }, { arbitrary: { runs: 500, size: 60 } })

  it.prop("leaves a terminal state by a manual retry of a failure, and by nothing else", {
    sequence: sequences
  }, ({ sequence }) => {
    for (const { after, before, input } of play(sequence)) {
      if (!isTerminal(before.state) || after === before) continue
      assert.deepStrictEqual([before.state, input._tag, after.state], ["failed", "Retry", "pending"])
      assert.isAbove(after.authorizationNo!, before.authorizationNo!)
    }
  }, { arbitrary: { runs: 300, size: 60 } })

  it.prop("has one epoch more for each claim, and keeps it through everything else", {
    sequence: sequences
  }, ({ sequence }) => {
    for (const { after, before, input, refused } of play(sequence)) {
      assert.strictEqual(after.epoch, before.epoch + (input._tag === "Claim" && refused === null ? 1 : 0))
    }
  }, { arbitrary: { runs: 300, size: 60 } })

  it.prop("refuses every write under an epoch that is not its own, or while it does not run", {
    sequence: sequences
  }, ({ sequence }) => {
    for (const { before, input, refused } of play(sequence)) {
      if (!("epoch" in input) || input._tag === "Exhaust") continue
      const holds = before.state === "running" && input.epoch === before.epoch
      assert.strictEqual(refused, holds ? null : "lease_lost")
    }
  }, { arbitrary: { runs: 300, size: 60 } })

  it.prop("counts attempts from zero to the most that are allowed, and counts no rate limit", {
    sequence: sequences
  }, ({ sequence }) => {
    for (const { after, before, input, refused } of play(sequence)) {
      assert.isTrue(after.attempts >= 0 && after.attempts <= maxAttempts)
      if (refused !== null) continue
      if (input._tag === "Release") assert.strictEqual(after.attempts, before.attempts - 1)
      if (input._tag === "Fail" && input.failure === "provider_rate_limited" && after.state === "pending") {
        assert.strictEqual(after.attempts, before.attempts - 1)
      }
    }
  }, { arbitrary: { runs: 300, size: 60 } })

  it("that kills whoever claims it is exhausted, not tried for ever", () => {
    let operation = accepted(1)
    let now = 1_000
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      operation = after(operation, claim(now))
      assert.strictEqual(refusal(operation, exhaust(operation.epoch, now)), "lease_lost")
      now += leaseMs
    }
    assert.strictEqual(refusal(operation, claim(now)), "attempts_spent")
    assert.strictEqual(refusal(operation, exhaust(operation.epoch - 1, now)), "lease_lost")
    const ended = after(operation, exhaust(operation.epoch, now))
    assert.deepStrictEqual([ended.state, ended.failure, ended.ready], ["failed", "attempts_exhausted", false])
  })

  it("that waits with more attempts than are now allowed is exhausted too", () => {
    const waiting = after(after(accepted(1), claim(1_000)), failWith("provider_timeout", 1_001))
    assert.strictEqual(refusal(waiting, { ...claim(2_000), maxAttempts: 1 }), "attempts_spent")
    assert.strictEqual(after(waiting, { ...exhaust(1, 2_000), maxAttempts: 1 }).failure, "attempts_exhausted")
    assert.strictEqual(refusal(waiting, exhaust(1, 2_000)), "lease_lost")
  })

  it("is taken over only when its lease has run out, and the old holder can do nothing more", () => {
    const first = after(accepted(1), claim(1_000))
    assert.strictEqual(refusal(first, claim(1_000 + leaseMs - 1)), "not_claimable")
    const second = after(first, { ...claim(1_000 + leaseMs), owner: "other" })
    assert.deepStrictEqual([second.epoch, second.attempts, second.leaseOwner], [2, 2, "other"])
    assert.strictEqual(refusal(second, commit(1, 40_000)), "lease_lost")
    assert.strictEqual(after(second, commit(2, 40_000)).outcome, "no_memory")
  })

  it("behind the head of its lane cannot be claimed, and can be cancelled", () => {
    const behind = accepted(2, { ready: false })
    assert.strictEqual(refusal(behind, claim(2_000)), "not_claimable")
    const cancelled = after(behind, { _tag: "Cancel", now: 2_000 })
    assert.deepStrictEqual([cancelled.state, cancelled.failure, cancelled.startedAt], ["failed", "cancelled", null])
    assert.strictEqual(refusal(cancelled, { _tag: "Cancel", now: 3_000 }), "already_terminal")
  })

  it("waits until its next attempt is due, and is given back at once", () => {
    const running = after(accepted(1), claim(1_000))
    const waiting = after(running, { ...failWith("provider_timeout", 2_000), retryAfterMs: 5_000 })
    assert.strictEqual(refusal(waiting, claim(6_999)), "not_due")
    assert.strictEqual(after(waiting, claim(7_000)).attempts, 2)
    const released = after(running, { _tag: "Release", epoch: 1 })
    assert.deepStrictEqual([released.attempts, released.epoch, released.nextAttemptAt], [0, 1, null])
  })

  it("that a rate limit meets after a long wait for its turn is not too old for it", () => {
    const late = 1_000 + 2 * policy.rateLimitMaxAgeMs
    const running = after(accepted(1), claim(late))
    assert.strictEqual(after(running, failWith("provider_rate_limited", late + 1)).state, "pending")
    const tooLate = failWith("provider_rate_limited", late + policy.rateLimitMaxAgeMs + 1)
    assert.deepStrictEqual(after(running, tooLate).state, "failed")
  })

  it("that is retried by hand and waits long for its turn is not too old for a rate limit either", () => {
    const failed = after(after(accepted(1), claim(1_000)), failWith("extraction_refused", 2_000))
    const late = reopen.now + 2 * policy.rateLimitMaxAgeMs
    const running = after(after(failed, reopen), claim(late))
    const waiting = after(running, { ...failWith("provider_rate_limited", late + 1), epoch: 2 })
    assert.strictEqual(waiting.state, "pending")
    const again = after(waiting, claim(late + policy.rateLimitMaxAgeMs - 1))
    const tooLate = { ...failWith("provider_rate_limited", late + policy.rateLimitMaxAgeMs + 1), epoch: 3 }
    assert.strictEqual(after(again, tooLate).state, "failed")
  })

  it("that is retried by hand starts a new window, at a new place, and keeps its epoch", () => {
    const failed = after(after(accepted(1), claim(1_000)), failWith("extraction_refused", 2_000))
    const reopened = after(failed, { ...reopen, ready: false })
    assert.deepStrictEqual(reopened, {
      ...accepted(1),
      epoch: 1,
      seq: 9,
      ready: false,
      fairTag: 8,
      authorizationNo: 2,
      windowStartedAt: reopened.windowStartedAt,
      startedAt: failed.startedAt
    })
    assert.strictEqual(reopened.windowStartedAt, 9_000)
    assert.strictEqual(refusal(reopened, { ...reopen, authorizationNo: 3 }), "not_failed")
    assert.strictEqual(refusal(reopened, commit(1, 9_001)), "lease_lost")
  })
})
