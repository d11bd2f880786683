/**
 * A worker process: claims what is due, runs attempts side by side, renews every lease in one statement, and fences
 * itself on its own monotonic clock when it cannot. When its scope closes it drains, then gives the rest back.
 */
import {
  Cause,
  Clock,
  Duration,
  Effect,
  Fiber,
  FiberMap,
  FiberSet,
  Layer,
  Queue as Mailbox,
  Random,
  Result,
  Schedule,
  Semaphore
} from "effect"
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
  const takes = yield* FiberSet.make<boolean>()
  const turn = yield* Semaphore.make(1)
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
            Effect.annotateLogs({ event_id: claimed.operation.id, cause: kindOf(Cause.squash(cause)) })
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

  /** A round that goes wrong is told of, and is not the last one. */
  const round = <B>(what: string, fallback: B) => <A>(effect: Effect.Effect<A, OutcomeUnknown>): Effect.Effect<A | B> =>
    effect.pipe(
      Effect.catch(() => Effect.as(Effect.logWarning(`${what} had no answer`), fallback)),
      Effect.catchDefect((defect) =>
        Effect.as(Effect.logError(`${what} broke off`).pipe(Effect.annotateLogs("defect", kindOf(defect))), fallback)
      )
    )

  /** Claims what there is room for; says whether there may be more. In turn: two at once would take one room twice. */
  const takeInTurn = (how: "claim" | "takeOver") =>
    turn.withPermit(Effect.gen(function*() {
      const room = Math.min(settings.workerConcurrency - held.size, settings.batchSize)
      if (room <= 0) return false
      const askedAt = yield* Clock.monotonicTimeNanos
      const claimed = yield* claims[how](owner, room)
      yield* start(claimed, askedAt)
      return claimed.length === room
    }))

  /** Comes to its end even if its loop is stopped meanwhile: what it takes is in hand when the drain looks. */
  const take = (how: "claim" | "takeOver") =>
    takeInTurn(how).pipe(
      round(how === "claim" ? "A claim" : "A takeover", false),
      (taking) => FiberSet.run(takes, taking),
      Effect.flatMap(Fiber.join)
    )

  /** Claims until there is no more room or no more work, then waits for a nudge or the next poll. */
  const claimLoop = Effect.gen(function*() {
    while (yield* take("claim")) { /* there may be more */ }
    yield* Effect.timeoutOption(Mailbox.take(nudge), settings.pollInterval)
  }).pipe(Effect.forever)

  const takeOverLoop = Effect.gen(function*() {
    while (yield* take("takeOver")) { /* there may be more */ }
    yield* Effect.sleep(settings.pollInterval)
  }).pipe(Effect.forever)

  /** Stops these at once. One that is slow to stop keeps no other waiting. */
  const lose = (keys: ReadonlyArray<string>) =>
    Effect.forEach(keys, (key) =>
      Effect.suspend(() => {
        held.delete(key)
        return FiberMap.remove(attempts, key)
      }), { concurrency: "unbounded", discard: true }).pipe(Effect.timeoutOption(settings.fenceMargin))

  const renewAll = Effect.gen(function*() {
    const asked = [...held]
    if (asked.length === 0) return
    const askedAt = yield* Clock.monotonicTimeNanos
    const renewed = new Set((yield* claims.renew(asked.map(([, { lease }]) => lease))).map(keyOf))
    for (const [key, mine] of asked) {
      if (renewed.has(key)) mine.until = askedAt + validFor
    }
    const missing = asked.flatMap(([key, { lease }]) => renewed.has(key) ? [] : [lease])
    if (missing.length > 0) yield* lose((yield* claims.lost(missing)).map(keyOf))
  })

  // Whole milliseconds, as timers have: a fixed schedule would run again for the rest of a fraction.
  const renewEvery = Duration.millis(Math.floor(Duration.toMillis(settings.lease) / 3))
  // From start to start, and given up in time: after a renewal that came to nothing there is one more before the fence.
  const heartbeat = renewAll.pipe(
    Effect.timeoutOrElse({ duration: Duration.times(renewEvery, 0.75), orElse: () => Effect.logWarning("A renewal of leases had no answer in time") }),
    round("A renewal of leases", undefined),
    Effect.repeat(Schedule.fixed(renewEvery))
  )

  /** Stops whatever outlived its lease by this process's own clock, whether or not the database can be asked. */
  const fence = Effect.gen(function*() {
    yield* Effect.sleep(Duration.millis(Math.max(10, Duration.toMillis(settings.fenceMargin) / 3)))
    const now = yield* Clock.monotonicTimeNanos
    const over = [...held].flatMap(([key, { until }]) => until <= now ? [key] : [])
    if (over.length > 0) yield* lose(over)
  }).pipe(Effect.forever)

  const giveBack = (left: ReadonlyArray<Held>) =>
    settlement.endAll(left.map(({ lease, operation }) => ({ _tag: "Release", lease, lane: operation }))).pipe(
      Effect.timeoutOrElse({
        duration: Duration.max(settings.drainTimeout, giveBackMin),
        orElse: () => Effect.as(Effect.logWarning("Giving back leases had no answer in time"), [])
      }),
      round("Giving back leases", [])
    )

  /** Lets claims and attempts under way end, within bounds, and gives back the attempts of those that did not. */
  const drain = Effect.gen(function*() {
    const inFlight = held.size
    if (inFlight > 0) yield* Effect.logInfo("Draining attempts").pipe(Effect.annotateLogs("in_flight", inFlight))
    yield* Effect.andThen(FiberSet.awaitEmpty(takes), FiberMap.awaitEmpty(attempts)).pipe(
      Effect.timeoutOption(settings.drainTimeout),
      Effect.ignore
    )
    const left = [...held.values()]
    yield* FiberMap.clear(attempts)
    const ended = left.length === 0 ? [] : yield* giveBack(left)
    if (inFlight + left.length === 0) return
    yield* Effect.logInfo("Attempts are drained").pipe(
      Effect.annotateLogs("given_back", ended.filter(Result.isSuccess).length)
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

/** Giving back has this long at least, even where attempts are to end at once. */
const giveBackMin = Duration.seconds(1)

/** The kind of a failure without its words: a message could hold what a caller said. */
const kindOf = (error: unknown): string =>
  error instanceof Error ? error.name : typeof error === "object" && error !== null && "_tag" in error ? String(error._tag) : typeof error

/** Runs a worker until its scope closes. */
export const layer = Layer.effectDiscard(make)
