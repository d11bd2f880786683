/** Every tunable and every bound, with its unit. Production decodes them from the environment; tests override them. */
import { Context, Duration } from "effect"
import type { RetryPolicy } from "../domain/Failure.ts"

export interface SettingsShape {
  /** How long a claim may go without renewal before anybody may take the operation over. */
  readonly lease: Duration.Duration
  /** A worker stops on its own this long before its lease ends, by its monotonic clock. */
  readonly fenceMargin: Duration.Duration
  /** The absolute bound of one attempt, however often its lease is renewed. */
  readonly attemptBound: Duration.Duration
  /** How often a worker looks for work, and a waiter at its event, when no wake-up comes. */
  readonly pollInterval: Duration.Duration
  /** How often repair sweeps. */
  readonly repairInterval: Duration.Duration
  /** How long shutdown waits for attempts to end before it gives them back. */
  readonly drainTimeout: Duration.Duration
  /** Attempts in flight in one worker process. */
  readonly workerConcurrency: number
  /** Operations in one claim, freeze, commit or sweep. */
  readonly batchSize: number
  /** Commands in one group commit of accepts. */
  readonly acceptBatchSize: number
  /** Accepts that may wait for the group commit before callers are told to come back. */
  readonly acceptQueueSize: number
  /** Memories shown to the model beside the new messages. */
  readonly relatedLimit: number
  readonly retry: RetryPolicy
  /** Projections of one sweep, and the cap of their backoff in milliseconds. Projections retry for ever. */
  readonly projectionBatchSize: number
  readonly projectionBackoffBaseMs: number
  readonly projectionBackoffCapMs: number
  /** A projection that failed this often shows as `failing` on its event. */
  readonly projectionFailingAfter: number
  /** How long a search waits for vectors before it answers by words alone. */
  readonly searchTimeout: Duration.Duration
  /** The most memories of a scope, newest first, that one search compares one by one. */
  readonly exactSearchMax: number
  /** Whole credits. */
  readonly prices: { readonly inferAdd: bigint; readonly verbatimAdd: bigint; readonly noMemory: bigint }
  /** Failed input is kept this long. */
  readonly failedInputRetention: Duration.Duration
  /** Announcements of terminal states are kept this long for those who follow them. */
  readonly announcementRetention: Duration.Duration
  /** The longest a long-poll or `Prefer: wait` may hold, in seconds. */
  readonly waitMaxSeconds: number
}

export const defaultSettings: SettingsShape = {
  lease: Duration.seconds(30),
  fenceMargin: Duration.seconds(3),
  attemptBound: Duration.minutes(10),
  pollInterval: Duration.seconds(1),
  repairInterval: Duration.seconds(5),
  drainTimeout: Duration.seconds(10),
  workerConcurrency: 256,
  batchSize: 100,
  acceptBatchSize: 200,
  acceptQueueSize: 10_000,
  relatedLimit: 10,
  retry: {
    maxAttempts: 5,
    backoffBaseMs: 1_000,
    backoffCapMs: 60_000,
    invalidOutputAttempts: 2,
    rateLimitMaxAgeMs: 3_600_000
  },
  projectionBatchSize: 100,
  projectionBackoffBaseMs: 1_000,
  projectionBackoffCapMs: 60_000,
  projectionFailingAfter: 3,
  searchTimeout: Duration.seconds(5),
  exactSearchMax: 20_000,
  prices: { inferAdd: 2n, verbatimAdd: 1n, noMemory: 2n },
  failedInputRetention: Duration.days(7),
  announcementRetention: Duration.days(7),
  waitMaxSeconds: 30
}

export const Settings = Context.Reference<SettingsShape>("indelible/services/Settings", {
  defaultValue: () => defaultSettings
})
