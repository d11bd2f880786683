/**
 * The durable task that carries one command to one terminal state. `decide` says what may happen to it, `evolve` says
 * what it is afterwards; whoever holds the row lock saves the result.
 */
import { Result, Schema } from "effect"
import { type FailedAttempt, FailureClass, judge, type RetryPolicy } from "./Failure.ts"
import { Lane, OperationId, Sha256Hex, Timestamp, WorkspaceId } from "./Ids.ts"
import { ResultRef } from "./Plan.ts"
import { ScopeFilter } from "./Scope.ts"

export const OperationKind = Schema.Literals(["memory.infer", "memory.add", "memory.update", "memory.delete"])
export type OperationKind = typeof OperationKind.Type

export const OperationState = Schema.Literals(["pending", "running", "succeeded", "failed"])
export type OperationState = typeof OperationState.Type

export const isTerminal = (state: OperationState): boolean => state === "succeeded" || state === "failed"

export const Outcome = Schema.Literals(["stored", "no_memory"])
export type Outcome = typeof Outcome.Type

/** What is kept of an input after success: enough to explain, nothing to read. Sizes in UTF-8 bytes. */
export const Evidence = Schema.Struct({
  commandVersion: Schema.Int,
  commandHash: Sha256Hex,
  messages: Schema.Int,
  inputBytes: Schema.Int,
  /** Null for a command that asked no model. */
  model: Schema.NullOr(Schema.String),
  planDigest: Schema.NullOr(Sha256Hex),
  /** How many facts the plan offered, and how many were stored. */
  offered: Schema.Int,
  stored: Schema.Int
})
export type Evidence = typeof Evidence.Type

export const Operation = Schema.Struct({
  workspaceId: WorkspaceId,
  id: OperationId,
  kind: OperationKind,
  state: OperationState,
  scope: ScopeFilter,
  lane: Lane,
  /** Place in its lane: acceptance order, and re-entry order after a manual retry. */
  seq: Schema.Finite,
  /** True only for the head of a lane. Nothing else is claimable. */
  ready: Schema.Boolean,
  fairTag: Schema.Finite,
  /** Null when it may run at once. */
  nextAttemptAt: Schema.NullOr(Timestamp),
  /** The fencing token: one more for each claim, never reset. */
  epoch: Schema.Int,
  /** Claims in this window that were not given back. */
  attempts: Schema.Int,
  invalidOutputs: Schema.Int,
  windowStartedAt: Timestamp,
  leaseOwner: Schema.NullOr(Schema.String),
  leaseExpiresAt: Schema.NullOr(Timestamp),
  authorizationNo: Schema.NullOr(Schema.Int),
  /** The last failure: of the operation when failed, of the last attempt when pending. */
  failure: Schema.NullOr(FailureClass),
  outcome: Schema.NullOr(Outcome),
  results: Schema.Array(ResultRef),
  evidence: Evidence,
  createdAt: Timestamp,
  startedAt: Schema.NullOr(Timestamp),
  completedAt: Schema.NullOr(Timestamp)
})
export type Operation = typeof Operation.Type

/** The right to work on an operation: valid while the operation is running and its epoch is this one. */
export interface Lease {
  readonly workspaceId: WorkspaceId
  readonly id: OperationId
  readonly epoch: number
}

/** What somebody wants to happen. `now` is the database clock, in milliseconds. */
export type Input =
  | ({ readonly _tag: "Claim"; readonly owner: string; readonly leaseMs: number } & Limit)
  | ({ readonly _tag: "Exhaust"; readonly epoch: number } & Limit)
  | { readonly _tag: "Freeze"; readonly epoch: number }
  | ({ readonly _tag: "Commit"; readonly epoch: number; readonly now: number } & Success)
  | ({ readonly _tag: "Fail"; readonly epoch: number; readonly policy: RetryPolicy; readonly now: number } & Fault)
  | { readonly _tag: "Release"; readonly epoch: number }
  | { readonly _tag: "Cancel"; readonly now: number }
  | ({ readonly _tag: "Retry"; readonly now: number } & Reentry)

/** What happened. */
export type Event =
  | { readonly _tag: "Claimed"; readonly owner: string; readonly leaseExpiresAt: number; readonly at: number }
  | { readonly _tag: "Frozen" }
  | ({ readonly _tag: "Succeeded"; readonly at: number } & Success)
  | {
    readonly _tag: "AttemptFailed"
    readonly failure: FailureClass
    readonly nextAttemptAt: number
    readonly attemptGivenBack: boolean
  }
  | { readonly _tag: "Released" }
  | { readonly _tag: "Failed"; readonly failure: FailureClass; readonly at: number }
  | ({ readonly _tag: "Reopened"; readonly at: number } & Reentry)

interface Limit {
  readonly maxAttempts: number
  readonly now: number
}

interface Success {
  readonly results: ReadonlyArray<ResultRef>
  readonly evidence: Evidence
}

interface Fault {
  readonly failure: FailureClass
  readonly retryAfterMs: number | null
  /** In [0, 1). */
  readonly jitter: number
}

/** Where a manual retry puts an operation, and the authorization that it runs under. */
interface Reentry {
  readonly authorizationNo: number
  readonly seq: number
  readonly ready: boolean
  readonly fairTag: number
}

/** Why not. `lease_lost` is not a failure: somebody else has the operation now. */
export type Refusal = "lease_lost" | "not_claimable" | "not_due" | "attempts_spent" | "already_terminal" | "not_failed"

/** What a worker's input is held against: the epoch it was given, and a running operation. */
const holds = (operation: Operation, epoch: number): boolean =>
  operation.state === "running" && operation.epoch === epoch

const fenced = (operation: Operation, epoch: number, event: () => Event): Result.Result<Event, Refusal> =>
  holds(operation, epoch) ? Result.succeed(event()) : Result.fail("lease_lost")

/** Whether `input` may happen to `operation`, and as what. */
export const decide = (operation: Operation, input: Input): Result.Result<Event, Refusal> => {
  switch (input._tag) {
    case "Claim":
      return decideClaim(operation, input)
    case "Exhaust":
      return isAbandoned(operation, input) && operation.attempts >= input.maxAttempts
        ? Result.succeed({ _tag: "Failed", failure: "attempts_exhausted", at: input.now })
        : Result.fail("lease_lost")
    case "Freeze":
      return fenced(operation, input.epoch, () => ({ _tag: "Frozen" }))
    case "Commit":
      return fenced(operation, input.epoch, () => ({
        _tag: "Succeeded",
        results: input.results,
        evidence: input.evidence,
        at: input.now
      }))
    case "Fail":
      return fenced(operation, input.epoch, () => failAttempt(operation, input))
    case "Release":
      return fenced(operation, input.epoch, () => ({ _tag: "Released" }))
    case "Cancel":
      return isTerminal(operation.state)
        ? Result.fail("already_terminal")
        : Result.succeed({ _tag: "Failed", failure: "cancelled", at: input.now })
    case "Retry":
      return operation.state === "failed"
        ? Result.succeed({
          _tag: "Reopened",
          authorizationNo: input.authorizationNo,
          seq: input.seq,
          ready: input.ready,
          fairTag: input.fairTag,
          at: input.now
        })
        : Result.fail("not_failed")
  }
}

const leaseExpired = (operation: Operation, now: number): boolean =>
  operation.leaseExpiresAt !== null && operation.leaseExpiresAt <= now

/** Nobody works on it. A pending one counts: its attempts are spent when the operator lowers their number. */
const isAbandoned = (operation: Operation, { epoch, now }: { readonly epoch: number; readonly now: number }): boolean =>
  operation.epoch === epoch &&
  (operation.state === "pending" || (operation.state === "running" && leaseExpired(operation, now)))

const decideClaim = (
  operation: Operation,
  input: Extract<Input, { _tag: "Claim" }>
): Result.Result<Event, Refusal> => {
  if (isTerminal(operation.state) || !operation.ready) return Result.fail("not_claimable")
  if (operation.state === "running" && !leaseExpired(operation, input.now)) return Result.fail("not_claimable")
  if (operation.state === "pending" && operation.nextAttemptAt !== null && operation.nextAttemptAt > input.now) {
    return Result.fail("not_due")
  }
  if (operation.attempts >= input.maxAttempts) return Result.fail("attempts_spent")
  return Result.succeed({
    _tag: "Claimed",
    owner: input.owner,
    leaseExpiresAt: input.now + input.leaseMs,
    at: input.now
  })
}

const failAttempt = (operation: Operation, input: Extract<Input, { _tag: "Fail" }>): Event => {
  const attempt: FailedAttempt = {
    failure: input.failure,
    attempts: operation.attempts,
    invalidOutputs: operation.invalidOutputs + (input.failure === "invalid_output" ? 1 : 0),
    windowStartedAt: operation.windowStartedAt,
    now: input.now,
    retryAfterMs: input.retryAfterMs,
    jitter: input.jitter
  }
  const verdict = judge(input.policy, attempt)
  return verdict._tag === "Terminal"
    ? { _tag: "Failed", failure: verdict.failure, at: input.now }
    : {
      _tag: "AttemptFailed",
      failure: input.failure,
      nextAttemptAt: input.now + verdict.delayMs,
      attemptGivenBack: verdict.giveAttemptBack
    }
}

const at = Timestamp.make
const withoutLease = { leaseOwner: null, leaseExpiresAt: null } as const

/** Whether nobody needs the input and the plan any more: it has succeeded, or failed and waited long enough for a retry. */
export const inputIsOver = ({ completedAt, state }: Operation, now: number, retentionMs: number): boolean =>
  state === "succeeded" || (state === "failed" && completedAt !== null && completedAt <= now - retentionMs)

/** Whether nothing has gone wrong in this window so far: nobody has claimed it, or whoever did has given it back. */
const isUntried = ({ attempts, failure }: Operation): boolean => attempts === 0 && failure === null

/** The operation after `event`. Total: `decide` has already said that it may happen. */
export const evolve = (operation: Operation, event: Event): Operation => {
  switch (event._tag) {
    case "Claimed":
      return {
        ...operation,
        state: "running",
        epoch: operation.epoch + 1,
        attempts: operation.attempts + 1,
        leaseOwner: event.owner,
        leaseExpiresAt: at(event.leaseExpiresAt),
        nextAttemptAt: null,
        // Time spent waiting for the first claim of a window is nobody's rate limit.
        windowStartedAt: isUntried(operation) ? at(event.at) : operation.windowStartedAt,
        startedAt: operation.startedAt ?? at(event.at)
      }
    case "Frozen":
      return operation
    case "Succeeded":
      return {
        ...operation,
        ...withoutLease,
        state: "succeeded",
        ready: false,
        failure: null,
        outcome: event.results.some((result) => result.change !== "none") ? "stored" : "no_memory",
        results: event.results,
        evidence: event.evidence,
        completedAt: at(event.at)
      }
    case "AttemptFailed":
      return {
        ...operation,
        ...withoutLease,
        state: "pending",
        attempts: operation.attempts - (event.attemptGivenBack ? 1 : 0),
        invalidOutputs: operation.invalidOutputs + (event.failure === "invalid_output" ? 1 : 0),
        failure: event.failure,
        nextAttemptAt: at(event.nextAttemptAt)
      }
    case "Released":
      return { ...operation, ...withoutLease, state: "pending", attempts: operation.attempts - 1, nextAttemptAt: null }
    case "Failed":
      return {
        ...operation,
        ...withoutLease,
        state: "failed",
        ready: false,
        failure: event.failure,
        nextAttemptAt: null,
        completedAt: at(event.at)
      }
    case "Reopened":
      return {
        ...operation,
        state: "pending",
        seq: event.seq,
        ready: event.ready,
        fairTag: event.fairTag,
        attempts: 0,
        invalidOutputs: 0,
        windowStartedAt: at(event.at),
        authorizationNo: event.authorizationNo,
        failure: null,
        nextAttemptAt: null,
        completedAt: null
      }
  }
}
