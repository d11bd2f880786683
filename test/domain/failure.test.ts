/** What is tried again, how long it waits, and when it ends for good. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as Arbitrary from "effect/Arbitrary"
import {
  backoffMs,
  FailureClass,
  failureMessage,
  judge,
  manuallyRetryable,
  rateLimitBackoffMs,
  treatment
} from "../../src/domain/Failure.ts"
import { policy } from "./samples.ts"

const within = (minimum: number, maximum: number) =>
  Arbitrary.schema(Schema.Finite.check(Schema.isBetween({ minimum, maximum })))
const upTo = (maximum: number) => Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum })))
const jitter = within(0, 1).pipe(Arbitrary.filter((value) => value < 1))
const failed = { attempts: 1, invalidOutputs: 0, windowStartedAt: 0, now: 0, retryAfterMs: null, jitter: 0.5 }

describe("retry", () => {
  it.prop("full jitter stays below a ceiling that doubles, and never passes the cap", {
    attempt: upTo(2_000),
    jitter
  }, ({ attempt, jitter }) => {
    const ceiling = Math.min(policy.backoffCapMs, policy.backoffBaseMs * 2 ** (attempt - 1))
    const wait = backoffMs(policy, attempt, jitter)
    assert.isTrue(Number.isInteger(wait) && wait >= 0 && wait < ceiling)
    assert.isAtLeast(wait, jitter * ceiling - 1)
  })

  it.prop("the backoff of a rate limit grows with the time that it has lasted, up to the cap", {
    age: upTo(10_000_000),
    jitter
  }, ({ age, jitter }) => {
    const wait = rateLimitBackoffMs(policy, age, jitter)
    assert.isTrue(wait >= 0 && wait < policy.backoffCapMs && wait < Math.max(policy.backoffBaseMs, age))
  })

  it("a rate limit never costs an attempt, waits as asked, and ends with age alone", () => {
    const limited = { ...failed, failure: "provider_rate_limited", attempts: 1_000, jitter: 0 } as const
    assert.deepStrictEqual(judge(policy, { ...limited, retryAfterMs: 7_000.2 }), {
      _tag: "Retry",
      delayMs: 7_001,
      giveAttemptBack: true
    })
    const old = policy.rateLimitMaxAgeMs
    assert.strictEqual(judge(policy, { ...limited, now: old })._tag, "Retry")
    assert.strictEqual(judge(policy, { ...limited, now: old + 1 })._tag, "Terminal")
    assert.strictEqual(judge(policy, { ...limited, now: old - 10, retryAfterMs: 20 })._tag, "Terminal")
    assert.strictEqual(judge(policy, { ...limited, now: -5_000 })._tag, "Retry")
  })

  it.prop("a provider is never called sooner than it asked, and never waited for without bound", {
    failure: Arbitrary.schema(FailureClass),
    retryAfterMs: within(0, 10_000_000),
    jitter
  }, ({ failure, jitter, retryAfterMs }) => {
    const verdict = judge(policy, { ...failed, failure, retryAfterMs, jitter })
    if (verdict._tag === "Terminal") {
      const longest = policy.rateLimitMaxAgeMs - policy.backoffCapMs
      return assert.isTrue(treatment[failure] === "never" || retryAfterMs > longest)
    }
    assert.isTrue(verdict.delayMs >= retryAfterMs && verdict.delayMs <= policy.rateLimitMaxAgeMs)
  })

  it("a delay that is no number is no delay", () => {
    for (const retryAfterMs of [Number.NaN, -1, 0]) {
      const verdict = judge(policy, { ...failed, failure: "provider_timeout", retryAfterMs })
      assert.deepStrictEqual(verdict, { _tag: "Retry", delayMs: 500, giveAttemptBack: false })
    }
    const never = judge(policy, { ...failed, failure: "provider_timeout", retryAfterMs: Infinity })
    assert.strictEqual(never._tag, "Terminal")
  })

  it("faults are retried while attempts last, and end under their own name", () => {
    for (const failure of ["provider_timeout", "provider_unavailable"] as const) {
      assert.strictEqual(judge(policy, { ...failed, failure, attempts: policy.maxAttempts - 1 })._tag, "Retry")
      const last = judge(policy, { ...failed, failure, attempts: policy.maxAttempts })
      assert.deepStrictEqual(last, { _tag: "Terminal", failure })
    }
  })

  it("invalid output is tried as often as the policy says, and no oftener than attempts last", () => {
    const invalid = { ...failed, failure: "invalid_output" } as const
    assert.strictEqual(judge(policy, { ...invalid, invalidOutputs: 1 })._tag, "Retry")
    assert.strictEqual(judge(policy, { ...invalid, invalidOutputs: 2 })._tag, "Terminal")
    assert.strictEqual(judge(policy, { ...invalid, invalidOutputs: 1, attempts: policy.maxAttempts })._tag, "Terminal")
  })

  it("every class has a treatment and a sentence, and only a lost input is beyond a manual retry", () => {
    for (const failure of FailureClass.literals) {
      assert.match(failureMessage[failure], /^[A-Z].*\.$/)
      assert.include(["again", "later", "policy", "never"], treatment[failure])
      assert.strictEqual(manuallyRetryable(failure), failure !== "input_expired")
    }
  })
})
