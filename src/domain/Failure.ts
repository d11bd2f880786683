/** Why an operation failed, whether it is tried again, and when. The class is stable on the wire; the message is ours. */
import { Schema } from "effect"

export const FailureClass = Schema.Literals([
  "authorization_revoked",
  "provider_timeout",
  "provider_unavailable",
  "provider_rate_limited",
  "provider_rejected",
  "invalid_output",
  "extraction_refused",
  "attempts_exhausted",
  "cancelled",
  "input_expired"
])
export type FailureClass = typeof FailureClass.Type

/** One sentence per class, safe to show to anyone: no provider text, no SQL, no host names. */
export const failureMessage: Record<FailureClass, string> = {
  authorization_revoked: "The usage authorization of this operation was revoked. Nothing was stored.",
  provider_timeout: "The model provider did not answer in time.",
  provider_unavailable: "The model provider could not be reached or reported a fault of its own.",
  provider_rate_limited: "The model provider asked us to slow down.",
  provider_rejected: "The model provider refused the request. The operator has to look at its configuration.",
  invalid_output: "The model answered in a form that cannot be used. Nothing was stored.",
  extraction_refused: "The model declined to extract anything from this input. Nothing was stored.",
  attempts_exhausted: "Every allowed attempt ended without a result. Nothing was stored.",
  cancelled: "The operation was cancelled. Nothing was stored.",
  input_expired: "The input was removed before the operation finished. Send it again as a new command."
}

/** Whether an explicit retry by the caller can help. */
export const manuallyRetryable = (failure: FailureClass): boolean => failure !== "input_expired"

/** How an attempt that failed is treated. */
export type Treatment = "again" | "later" | "policy" | "never"

/** `again` spends an attempt; `later` gives it back and is bounded by age; `policy` follows the extraction policy. */
export const treatment: Record<FailureClass, Treatment> = {
  authorization_revoked: "never",
  provider_timeout: "again",
  provider_unavailable: "again",
  provider_rate_limited: "later",
  provider_rejected: "never",
  invalid_output: "policy",
  extraction_refused: "never",
  attempts_exhausted: "never",
  cancelled: "never",
  input_expired: "never"
}

/** Bounds of automatic retry. All durations in milliseconds. */
export interface RetryPolicy {
  /** Claims allowed in one window (from accept, or from a manual retry). */
  readonly maxAttempts: number
  /** First ceiling of the backoff; doubled by each attempt. */
  readonly backoffBaseMs: number
  /** The ceiling never exceeds this. */
  readonly backoffCapMs: number
  /** How many attempts of a window may end in `invalid_output` before it is terminal. */
  readonly invalidOutputAttempts: number
  /**
   * An operation that has been worked on for longer than this no longer waits for a rate limit to pass. Nor does any
   * wait for a provider that asks for more than this.
   */
  readonly rateLimitMaxAgeMs: number
}

/** Exponential backoff with full jitter: uniform in [0, min(cap, base * 2^(attempt-1))). `jitter` is in [0, 1). */
export const backoffMs = (policy: RetryPolicy, attempt: number, jitter: number): number =>
  Math.floor(jitter * Math.min(policy.backoffCapMs, policy.backoffBaseMs * 2 ** Math.min(attempt - 1, 30)))

/**
 * The same for a rate limit, which leaves the count of attempts as it was: the ceiling is the time that has passed so
 * far, so that it too doubles, without a counter.
 */
export const rateLimitBackoffMs = (policy: RetryPolicy, ageMs: number, jitter: number): number =>
  Math.floor(jitter * Math.min(policy.backoffCapMs, Math.max(policy.backoffBaseMs, ageMs)))

/** One failed attempt, seen at `now`. */
export interface FailedAttempt {
  readonly failure: FailureClass
  /** Attempts of this window so far, this one included. */
  readonly attempts: number
  /** How many of them, this one included, ended in `invalid_output`. */
  readonly invalidOutputs: number
  /** When the window began: from here the age of an operation that meets rate limits is counted. */
  readonly windowStartedAt: number
  readonly now: number
  /** What the provider asked for, if it did. */
  readonly retryAfterMs: number | null
  readonly jitter: number
}

export type Verdict =
  | { readonly _tag: "Retry"; readonly delayMs: number; readonly giveAttemptBack: boolean }
  | { readonly _tag: "Terminal"; readonly failure: FailureClass }

/** The retry decision: which failures are tried again, after how long, and whether the attempt counts. */
export const judge = (policy: RetryPolicy, attempt: FailedAttempt): Verdict => {
  const kind = treatment[attempt.failure]
  if (kind === "never") return { _tag: "Terminal", failure: attempt.failure }
  const asked = attempt.retryAfterMs !== null && attempt.retryAfterMs > 0 ? Math.ceil(attempt.retryAfterMs) : 0
  if (asked > policy.rateLimitMaxAgeMs) return { _tag: "Terminal", failure: attempt.failure }
  if (kind === "later") {
    const age = Math.max(0, attempt.now - attempt.windowStartedAt)
    const wait = Math.max(rateLimitBackoffMs(policy, age, attempt.jitter), asked)
    return age + wait > policy.rateLimitMaxAgeMs
      ? { _tag: "Terminal", failure: attempt.failure }
      : { _tag: "Retry", delayMs: wait, giveAttemptBack: true }
  }
  const wait = Math.max(backoffMs(policy, attempt.attempts, attempt.jitter), asked)
  if (kind === "policy" && attempt.invalidOutputs >= policy.invalidOutputAttempts) {
    return { _tag: "Terminal", failure: attempt.failure }
  }
  return attempt.attempts >= policy.maxAttempts
    ? { _tag: "Terminal", failure: attempt.failure }
    : { _tag: "Retry", delayMs: wait, giveAttemptBack: false }
}
