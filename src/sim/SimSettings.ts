/** The settings that one simulated service runs with: every bound in proportion to its lease, some of them uncomfortable. */
import { Duration } from "effect"
import type { SettingsShape } from "../services/Settings.ts"
import type { Key } from "./Keyed.ts"
import type { Shape } from "./Shape.ts"

export interface SimSettings extends SettingsShape {
  /** How long a caller of the model waits for one answer, in milliseconds. A setting of the adapter. */
  readonly providerTimeoutMs: number
}

/** What the operator says, which may change while everything runs. */
export interface Retention {
  /** The inputs of failed operations are removed. */
  atOnce: boolean
  /** There are other prices than in the beginning: whoever has read those goes on with them until it is started anew. */
  repriced?: boolean
}

/** Every process of one world has the same. */
export const drawSettings = (key: Key, { leaseMs, providerMs }: Shape, retention: Retention): SimSettings => {
  const at = (name: string) => key.of(name)
  const times = (name: string, min: number, max: number) => Math.ceil(leaseMs * at(name).logUniform(min, max))
  const millis = (name: string, min: number, max: number) => Duration.millis(times(name, min, max))
  return {
    lease: Duration.millis(leaseMs),
    fenceMargin: Duration.millis(Math.ceil(leaseMs * at("fence margin").choose([0.1, 0.2, 0.25]))),
    attemptBound: millis("attempt bound", 3, 12),
    pollInterval: millis("poll", 0.5, 1.5),
    repairInterval: millis("repair", 1, 4),
    drainTimeout: millis("drain", 0.02, 1),
    workerConcurrency: at("concurrency").choose([1, 2, 4, 256]),
    batchSize: at("batch").choose([1, 2, 3, 100, 100]),
    acceptBatchSize: at("accept batch").choose([1, 2, 200, 200]),
    acceptQueueSize: at("accept queue").choose([2, 10_000, 10_000, 10_000]),
    relatedLimit: at("related").choose([1, 3, 10]),
    retry: {
      maxAttempts: at("attempts").between(2, 5),
      backoffBaseMs: times("backoff base", 0.02, 0.2),
      backoffCapMs: times("backoff cap", 0.2, 1.5),
      invalidOutputAttempts: at("invalid outputs").between(1, 2),
      rateLimitMaxAgeMs: times("rate limit", 2, 10)
    },
    projectionBatchSize: at("projection batch").choose([1, 2, 100, 100]),
    projectionBackoffBaseMs: times("projection base", 0.02, 0.2),
    projectionBackoffCapMs: times("projection cap", 0.2, 1),
    projectionFailingAfter: at("failing").between(1, 3),
    searchTimeout: millis("search", 0.1, 1),
    exactSearchMax: 20_000,
    get prices() {
      return at(retention.repriced === true ? "other prices" : "prices").choose([
        { inferAdd: 2n, verbatimAdd: 1n, noMemory: 2n },
        { inferAdd: 3n, verbatimAdd: 2n, noMemory: 1n },
        { inferAdd: 2n, verbatimAdd: 1n, noMemory: 0n }
      ])
    },
    get failedInputRetention() {
      return retention.atOnce ? Duration.zero : Duration.days(7)
    },
    announcementRetention: at("announcements").chance(0.5) ? Duration.millis(leaseMs * 2) : Duration.days(7),
    waitMaxSeconds: Math.ceil(leaseMs * 2 / 1_000),
    providerTimeoutMs: Math.ceil(Math.max(providerMs * 2.5, leaseMs * at("provider timeout").logUniform(0.5, 4)))
  }
}
