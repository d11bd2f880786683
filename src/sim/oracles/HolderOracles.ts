/** Who may write what of an operation, until when, and how often: epochs, leases and attempts, one commit at a time. */
import { Duration } from "effect"
import type { FailureClass, RetryPolicy } from "../../domain/Failure.ts"
import type { Invariant } from "../../domain/Invariant.ts"
import type { Operation } from "../../domain/Operation.ts"
import type { SettingsShape } from "../../services/Settings.ts"
import { fine } from "./Oracle.ts"
import { did, type OperationTrack } from "./OperationTrack.ts"

type OperationOracle = Invariant<OperationTrack>

const onlyTheHolderWrites: OperationOracle = {
  name: "only-the-holder-writes",
  promise: "A running operation is written by the process that claimed its epoch, but for cancels, takeovers and spent attempts.",
  check: ({ before, commit, holder, operation }) => {
    if (before === null || operation === null || before === operation || before.state !== "running") return fine
    if (operation.epoch !== before.epoch || commit.by === holder || endsWithoutHolder(operation)) return fine
    return [`${commit.by} made it ${operation.state} in epoch ${before.epoch}, which ${holder} holds`]
  }
}

/** Anybody may cancel, and whoever finds attempts spent may say so. */
const endsWithoutHolder = ({ failure, state }: Operation): boolean =>
  state === "failed" && (failure === "cancelled" || failure === "attempts_exhausted")

const frozenByTheHolder: OperationOracle = {
  name: "frozen-by-the-holder",
  promise: "A plan is frozen by the process that holds the operation, while it runs.",
  check: (track) => {
    const { commit, holder, operation } = track
    if ((track.did & did.froze) === 0 || (operation?.state === "running" && commit.by === holder)) return fine
    return [`${commit.by} froze a plan while it was ${operation?.state} and ${holder} held it`]
  }
}

const oneClaimAtATime: OperationOracle = {
  name: "a-claim-is-one-epoch",
  promise: "Each claim begins one epoch, of an operation that is at the head of its lane and due.",
  check: ({ before, claimed, commit, operation }) => {
    if (!claimed) return operation === null || before !== null || operation.epoch === 0 ? fine : ["it was born claimed"]
    const { epoch, nextAttemptAt, ready, state } = before!
    const problems: Array<string> = []
    if (operation!.epoch !== epoch + 1) problems.push(`its epoch went from ${epoch} to ${operation!.epoch} in one commit`)
    if (operation!.state !== "running") problems.push(`a claim made it ${operation!.state}`)
    if (state !== "pending" && state !== "running") problems.push(`it was claimed while ${state}`)
    if (!ready) problems.push("it was claimed behind the head of its lane")
    if (nextAttemptAt !== null && nextAttemptAt > commit.at) problems.push(`it was claimed ${nextAttemptAt - commit.at} ms early`)
    return problems
  }
}

/** How much longer a lease ran, by the database clock, when somebody acted as if it had ended. Not positive: it had. */
const tooEarly = ({ before, claimed, commit, operation }: OperationTrack, leaseMs: number): number => {
  if (before?.state !== "running" || operation === null) return 0
  const exhausted = operation.state === "failed" && operation.failure === "attempts_exhausted"
  if (!claimed && !exhausted) return 0
  const end = before.leaseExpiresAt ?? 0
  // The claim itself tells at what time it was decided.
  return end - (claimed ? Math.min(commit.at, (operation.leaseExpiresAt ?? 0) - leaseMs) : commit.at)
}

const oneHolderInDatabaseTime = (leaseMs: number): OperationOracle => ({
  name: "one-holder-in-database-time",
  promise: "Nobody takes an operation over, or ends it for its spent attempts, while a lease is valid by the database clock.",
  check: (track) => {
    const early = tooEarly(track, leaseMs)
    return early > 0 ? [`${track.commit.by} acted ${early} ms before the lease of ${track.holder} ended`] : fine
  }
})

const leasesByTheDatabaseClock = (leaseMs: number): OperationOracle => ({
  name: "leases-by-the-database-clock",
  promise: "A lease is counted from the database clock: it never reaches further than one length from its commit.",
  check: ({ before, commit, operation }) => {
    const end = operation?.leaseExpiresAt ?? null
    if (end === null || end === before?.leaseExpiresAt || end <= commit.at + leaseMs) return fine
    return [`its lease ends ${end - commit.at} ms after its commit, and a lease is ${leaseMs} ms`]
  }
})

const attemptsAreExact: OperationOracle = {
  name: "attempts-are-exact",
  promise: "A claim counts one attempt; release and rate limit give it back, a manual retry starts anew, nothing else counts; likewise invalid outputs.",
  check: (track) => {
    const { before, operation } = track
    if (operation === null || operation === before) return fine
    const due = attemptsDue(track, operation)
    if (operation.attempts !== due) return [`${operation.attempts} attempts, and ${due} are due`]
    const invalid = invalidDue(track, operation)
    return operation.invalidOutputs === invalid ? fine : [`${operation.invalidOutputs} invalid outputs, and ${invalid} are due`]
  }
}

const attemptsDue = ({ before, claimed, reopened }: OperationTrack, after: Operation): number => {
  if (before === null || reopened) return 0
  if (claimed) return before.attempts + 1
  const left = before.state === "running" && after.state === "pending"
  const givenBack = after.nextAttemptAt === null || after.failure === "provider_rate_limited"
  return left && givenBack ? before.attempts - 1 : before.attempts
}

const invalidDue = ({ before, reopened }: OperationTrack, after: Operation): number => {
  if (before === null || reopened) return 0
  const isOne = before.state === "running" && after.state === "pending" && after.nextAttemptAt !== null
  return before.invalidOutputs + (isOne && after.failure === "invalid_output" ? 1 : 0)
}

const attemptsAreCapped = ({ retry }: SettingsShape): OperationOracle => ({
  name: "attempts-are-capped",
  promise: "No operation is claimed more often, or waits longer, than the retry policy allows, and none is given up before.",
  check: ({ before, commit, ended, operation }) => {
    if (operation === null || operation === before) return fine
    const { attempts, failure, invalidOutputs, nextAttemptAt, startedAt, state, windowStartedAt } = operation
    const problems: Array<string> = []
    if (attempts > retry.maxAttempts) problems.push(`${attempts} attempts of ${retry.maxAttempts}`)
    if (invalidOutputs >= retry.invalidOutputAttempts) problems.push(`it goes on after ${invalidOutputs} invalid outputs`)
    if (ended && before !== null && isTooEarly(before, failure, retry)) {
      problems.push(`given up for ${failure} in attempt ${before.attempts} of ${retry.maxAttempts}`)
    }
    if (state === "pending" && before?.state === "running" && attempts >= retry.maxAttempts) {
      problems.push(`it waits for attempt ${attempts + 1} of ${retry.maxAttempts}`)
    }
    if (nextAttemptAt !== null && nextAttemptAt - commit.at > Math.max(retry.backoffCapMs, retry.rateLimitMaxAgeMs)) {
      problems.push(`it waits ${nextAttemptAt - commit.at} ms`)
    }
    const age = (nextAttemptAt ?? 0) - Math.max(windowStartedAt, startedAt ?? 0)
    if (state === "pending" && failure === "provider_rate_limited" && age > retry.rateLimitMaxAgeMs) {
      problems.push(`it waits for a rate limit until it is ${age} ms old`)
    }
    return problems
  }
})

/** Whether this failure ended an operation that had an attempt left. Of others it depends on what the model asked for. */
const isTooEarly = (before: Operation, failure: FailureClass | null, retry: RetryPolicy): boolean => {
  const left = before.attempts < retry.maxAttempts
  if (failure === "attempts_exhausted" || failure === "provider_timeout") return left
  return failure === "invalid_output" && left && before.invalidOutputs + 1 < retry.invalidOutputAttempts
}

export const holderOracles = (settings: SettingsShape): ReadonlyArray<OperationOracle> => {
  const leaseMs = Duration.toMillis(settings.lease)
  return [
    onlyTheHolderWrites,
    frozenByTheHolder,
    oneClaimAtATime,
    oneHolderInDatabaseTime(leaseMs),
    leasesByTheDatabaseClock(leaseMs),
    attemptsAreExact,
    attemptsAreCapped(settings)
  ]
}
