/**
 * A worker process: claims what is due, runs attempts side by side, renews every lease in one statement, and fences
 * itself on its own monotonic clock when it cannot. When its scope closes it drains, then gives the rest back.
 */
import { Cause, Clock, Duration, Effect, FiberMap, Layer, Queue as Mailbox, Random } from "effect"
import { refKey } from "../domain/Ids.ts"
import type { Lease, Operation } from "../domain/Operation.ts"
import { Attempt } from "./Attempt.ts"
import { type Claimed, Claims, leaseOf } from "./Claims.ts"
import { Queue } from "./Queue.ts"
import { Settings } from "./Settings.ts"
import { Settlement } from "./Settlement.ts"
import type { OutcomeUnknown } from "./Transaction.ts"

/** A lease in hand: until when this process may act on it, by its own monotonic clock, in nanoseconds. */
interface Held {
  readonly operation: Operation
  readonly lease: Lease
  until: bigint
}

/** One operation may be in hand twice, under an old epoch and a new one: the old one is only not stopped yet. */
const keyOf = (lease: Lease): string => `${refKey(lease)}#${lease.epoch}`

const nanos = (duration: Duration.Duration): bigint => BigInt(Math.round(Duration.toMillis(duration))) * 1_000_000n

const make = Effect.gen(function*() {
  const claims = yield* Claims
  const attempt = yield* Attempt
  const settlement = yield* Settlement
  const queue = yield* Queue
  const settings = yield* Settings
  const owner = `worker-${yield* Random.nextIntBetween(0, 2 ** 48)}`
  const held = new Map<string, Held>()
  const attempts = yield* FiberMap.make<string, void>()
  const nudge = yield* Mailbox.sliding<void>(1)
  // A lease is counted from before it was asked for, less a margin: this clock gives up before the database's does.
  const validFor = nanos(settings.lease) - nanos(settings.fenceMargin)

  const runAttempt = (key: string, claimed: Claimed) =>
    attempt.run(claimed).pipe(
      Effect.catchCause((cause) =>
        Cause.hasInterruptsOnly(cause)
          ? Effect.void
          // The lease is left to expire: what went wrong here may go better elsewhere, and attempts are bounded.
          : Effect.logError("An attempt ended without a verdict").pipe(
            Effect.annotateLogs({ event_id: claimed.operation.id, cause: causeName(cause) })
          )
      ),
      Effect.ensuring(Effect.sync(() => {
        held.delete(key)
        Mailbox.offerUnsafe(nudge, undefined)
      }))
    )

  const start = Effect.fnUntraced(function*(claimed: ReadonlyArray<Claimed>, askedAt: bigint) {
    for (const one of claimed) {
      const lease = leaseOf(one.operation)
      const key = keyOf(lease)
      held.set(key, { operation: one.operation, lease, until: askedAt + validFor })
      yield* FiberMap.run(attempts, key, Effect.asVoid(runAttempt(key, one)))
    }
  })

  const take = Effect.fnUntraced(function*(how: "claim" | "takeOver") {
    const room = Math.min(settings.workerConcurrency - held.size, settings.batchSize)
    if (room <= 0) return false
    const askedAt = yield* Clock.monotonicTimeNanos
    const claimed = yield* claims[how](owner, room)
    yield* start(claimed, askedAt)
    return claimed.length === room
  })

  const logged = <B>(what: string, fallback: B) => <A>(effect: Effect.Effect<A, OutcomeUnknown>): Effect.Effect<A | B> =>
    Effect.catch(effect, () => Effect.as(Effect.logWarning(what), fallback))

  /** Claims until there is no more room or no more work, then waits for a nudge or the next poll. */
  const claimLoop = Effect.gen(function*() {
    while (yield* take("claim").pipe(logged("A claim had no answer", false))) { /* there may be more */ }
    yield* Effect.timeoutOption(Mailbox.take(nudge), settings.pollInterval)
  }).pipe(Effect.forever)

  const takeOverLoop = Effect.gen(function*() {
    while (yield* take("takeOver").pipe(logged("A takeover had no answer", false))) { /* there may be more */ }
    yield* Effect.sleep(settings.pollInterval)
  }).pipe(Effect.forever)

  const lose = (key: string) =>
    Effect.andThen(FiberMap.remove(attempts, key), Effect.sync(() => held.delete(key)))

  const renewAll = Effect.gen(function*() {
    const asked = [...held]
    if (asked.length === 0) return
    const askedAt = yield* Clock.monotonicTimeNanos
    const kept = new Set((yield* claims.renew(asked.map(([, { lease }]) => lease))).map(keyOf))
    for (const [key, mine] of asked) {
      if (kept.has(key)) mine.until = askedAt + validFor
      else yield* lose(key)
    }
  })

  const renewEvery = Duration.millis(Duration.toMillis(settings.lease) / 3)
  const heartbeat = renewAll.pipe(
    Effect.timeoutOrElse({ duration: renewEvery, orElse: () => Effect.logWarning("A renewal of leases had no answer in time") }),
    logged("A renewal of leases had no answer", undefined),
    Effect.andThen(Effect.sleep(renewEvery)),
    Effect.forever
  )

  /** Stops whatever outlived its lease by this process's own clock, whether or not the database can be asked. */
  const fence = Effect.gen(function*() {
    yield* Effect.sleep(Duration.millis(Math.max(10, Duration.toMillis(settings.fenceMargin) / 3)))
    const now = yield* Clock.monotonicTimeNanos
    for (const [key, { until }] of held) {
      if (until <= now) yield* lose(key)
    }
  }).pipe(Effect.forever)

  /** Lets running attempts end, within bounds, and gives back the attempts of those that did not. */
  const drain = Effect.gen(function*() {
    yield* FiberMap.awaitEmpty(attempts).pipe(Effect.timeoutOption(settings.drainTimeout), Effect.ignore)
    const left = [...held.values()]
    yield* FiberMap.clear(attempts)
    if (left.length === 0) return
    yield* settlement.endAll(left.map(({ lease, operation }) => ({ _tag: "Release", lease, lane: operation }))).pipe(
      Effect.timeoutOption(settings.drainTimeout),
      logged("Leases could not be given back", undefined)
    )
  })

  const hints = yield* queue.subscribe
  const listen = hints.pipe(
    Effect.flatMap((wakeUps) => wakeUps.some(({ _tag }) => _tag === "Work") ? Mailbox.offer(nudge, undefined) : Effect.void),
    Effect.forever
  )

  // Finalizers run last to first: claiming stops first, then the drain, and renewals go on until it is over.
  yield* Effect.forkScoped(heartbeat)
  yield* Effect.forkScoped(fence)
  yield* Effect.addFinalizer(() => drain)
  yield* Effect.forkScoped(listen)
  yield* Effect.forkScoped(takeOverLoop)
  yield* Effect.forkScoped(claimLoop)
})

/** The kind of a failure without its words: a message could hold what a caller said. */
const causeName = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  return error instanceof Error ? error.name : typeof error === "object" && error !== null && "_tag" in error ? String(error._tag) : typeof error
}

/** Runs a worker until its scope closes. */
export const layer = Layer.effectDiscard(make)
