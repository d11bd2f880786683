/**
 * Brings committed memories into the vector index, each version once or more, for ever if need be. Repeats are harmless:
 * the index guards its writes, and only what is in the index is marked as done.
 */
import { Clock, Context, Duration, Effect, Layer, Random } from "effect"
import { backoffMs } from "../domain/Failure.ts"
import type { ClaimedProjection, Projection } from "./MemoryStore.ts"
import { Provider, ProviderFailure } from "./Provider.ts"
import { Queue } from "./Queue.ts"
import { Settings } from "./Settings.ts"
import { Store } from "./Store.ts"
import type { OutcomeUnknown } from "./Transaction.ts"
import { VectorIndex, type VectorIndexFailure } from "./VectorIndex.ts"

/** A projection of a live memory. */
interface Wanted {
  readonly projection: Projection
  readonly text: string
}

/** What became of one row: done, or to be tried again, at the earliest when the provider said. */
interface Outcome {
  readonly projection: Projection
  readonly failure: ProviderFailure | VectorIndexFailure | null
}

export class Projector extends Context.Service<Projector, {
  /**
   * Claims a batch of due projections and brings it to an end: in the index, out of it, or postponed. What was not tried
   * before the claim ran out is due again at once. Returns how many were claimed. After `OutcomeUnknown` the rows come
   * back when their claim runs out.
   */
  readonly turn: Effect.Effect<number, OutcomeUnknown>
}>()("indelible/services/Projector") {
  static readonly layer = Layer.effect(Projector, Effect.suspend(() => make))

  /** Runs turns in the background until its scope closes: at every hint, and whenever `pollInterval` has passed. */
  static readonly layerLoop = Layer.effectDiscard(Effect.gen(function*() {
    const { turn } = yield* Projector
    const { pollInterval, projectionBatchSize } = yield* Settings
    const hints = yield* (yield* Queue).subscribe
    const hint = Effect.repeat(hints, { until: (wakeUps) => wakeUps.some((wakeUp) => wakeUp._tag === "Projection") })
    const drain = Effect.repeat(turn, { while: (claimed) => claimed >= projectionBatchSize })
    yield* drain.pipe(
      Effect.catch(() => Effect.logWarning("A turn of the projector had no answer")),
      Effect.catchDefect((defect) =>
        Effect.logError("A turn of the projector broke off").pipe(
          Effect.annotateLogs("defect", defect instanceof Error ? defect.name : typeof defect)
        )
      ),
      Effect.andThen(Effect.timeoutOption(hint, pollInterval)),
      Effect.forever,
      Effect.forkScoped
    )
  }))
}

const make = Effect.gen(function*() {
  const { memories } = yield* Store
  const provider = yield* Provider
  const index = yield* VectorIndex
  const settings = yield* Settings
  const policy = {
    ...settings.retry,
    backoffBaseMs: settings.projectionBackoffBaseMs,
    backoffCapMs: settings.projectionBackoffCapMs
  }
  // Past the end of its claim a row is somebody else's too: the answer would be worth nothing. A claim is counted from
  // before it was asked for, less a margin: this clock gives up before the database's does.
  const validFor = Duration.toNanosUnsafe(Duration.subtract(settings.lease, settings.fenceMargin))

  const put = Effect.fnUntraced(function*(rows: ReadonlyArray<Wanted>, left: bigint) {
    const vectors = yield* provider.embed(rows.map((row) => row.text)).pipe(Effect.timeoutOrElse({
      duration: Duration.nanos(left),
      orElse: () => Effect.fail(new ProviderFailure({ failure: "provider_timeout", retryAfterMs: null }))
    }))
    if (vectors.length !== rows.length) {
      return yield* new ProviderFailure({ failure: "invalid_output", retryAfterMs: null })
    }
    yield* index.put(rows.map(({ projection }, place) => ({ ...projection, vector: vectors[place]! })))
  })

  /**
   * A row that is itself at fault takes no other with it. New rows are tried together, those that failed before after
   * them, few at a time while it is not clear that they go well. Whatever fails as a whole is not asked again for the rest.
   * At the end of the claim the rest has no outcome.
   */
  const project = Effect.fnUntraced(function*(rows: ReadonlyArray<Wanted>, until: bigint) {
    const outcomes: Array<Outcome> = []
    let left = rows.toSorted((one, other) => one.projection.attempts - other.projection.attempts)
    let size = Math.max(1, left.filter(({ projection }) => projection.attempts === 1).length)
    let trusted = 1
    let now = yield* Clock.monotonicTimeNanos
    for (let isFirst = true; left.length > 0 && now < until; isFirst = false) {
      const some = left.slice(0, size)
      const failure = yield* Effect.match(put(some, until - now), { onFailure: (failure) => failure, onSuccess: () => null })
      now = yield* Clock.monotonicTimeNanos
      const isRow = failure !== null && mayBeOneRow(failure)
      trusted = failure === null ? 2 * trusted : 1
      size = trusted
      // Once more, each by itself.
      if (isRow && some.length > 1) continue
      // Whoever had the rest of a claim only says nothing of the others.
      const isAlone = failure === null || isRow || (!isFirst && now >= until)
      const ended = isAlone ? some : left
      outcomes.push(...ended.map(({ projection }) => ({ projection, failure })))
      left = left.slice(ended.length)
    }
    return outcomes
  })

  const drop = (projections: ReadonlyArray<Projection>): Effect.Effect<ReadonlyArray<Outcome>> =>
    index.remove(projections).pipe(
      Effect.match({
        onSuccess: () => projections.map((projection): Outcome => ({ projection, failure: null })),
        onFailure: (failure) => projections.map((projection): Outcome => ({ projection, failure }))
      })
    )

  const postpone = Effect.fnUntraced(function*(projection: Projection, failure: NonNullable<Outcome["failure"]>) {
    const asked = failure._tag === "ProviderFailure" ? failure.retryAfterMs ?? 0 : 0
    const wait = Math.max(backoffMs(policy, projection.attempts, yield* Random.next), asked)
    return { projection, delayMs: Math.min(wait, policy.backoffCapMs) }
  })

  /** Nobody lets rows that he does not try wait for the end of a claim. */
  const atOnce = ({ projection }: { readonly projection: Projection }) => ({ projection, delayMs: 0 })
  const giveBack = (claimed: ReadonlyArray<ClaimedProjection>) =>
    Effect.ignore(memories.postponeProjections(claimed.map(atOnce)))

  const turn = Effect.gen(function*() {
    const until = (yield* Clock.monotonicTimeNanos) + validFor
    const claimed = yield* memories.claimProjections(settings.projectionBatchSize, Duration.toMillis(settings.lease))
    if (claimed.length === 0) return 0
    const { deleted, live, replaced } = sort(claimed)
    const outcomes = yield* Effect.zipWith(
      deleted.length > 0 ? drop(deleted) : Effect.succeed([]),
      live.length > 0 ? project(live, until) : Effect.succeed([]),
      (dropped, projected) => [...dropped, ...projected]
    ).pipe(Effect.onInterrupt(() => giveBack(claimed)))
    const failed = outcomes.flatMap(({ projection, failure }) => failure === null ? [] : [{ projection, failure }])
    if (failed.length > 0) {
      yield* Effect.logWarning("Projections failed and will be tried again").pipe(
        Effect.annotateLogs({ count: failed.length, failure: describe(failed[0]!.failure) })
      )
    }
    yield* memories.finishProjections([
      ...replaced,
      ...outcomes.flatMap(({ projection, failure }) => failure === null ? [projection] : [])
    ])
    const tried = new Set(outcomes.map(({ projection }) => projection))
    yield* memories.postponeProjections([
      ...yield* Effect.forEach(failed, ({ projection, failure }) => postpone(projection, failure)),
      ...live.filter(({ projection }) => !tried.has(projection)).map(atOnce)
    ])
    return claimed.length
  }).pipe(Effect.withSpan("Projector.turn"))

  return Projector.of({ turn })
})

/** Whether one row of a batch may be what failed all of it. */
const mayBeOneRow = (failure: ProviderFailure | VectorIndexFailure): boolean =>
  failure._tag === "VectorIndexFailure"
    ? failure.reason === "bad_vector"
    : rowFailures.has(failure.failure)

/** What a provider says of a text, and not of itself. It rejects a text that is too long for it as it does a wrong key. */
const rowFailures: ReadonlySet<ProviderFailure["failure"]> = new Set(["invalid_output", "extraction_refused", "provider_rejected"])

const describe = (failure: ProviderFailure | VectorIndexFailure): string =>
  failure._tag === "VectorIndexFailure" ? `index_${failure.reason}` : failure.failure

/** Live memories go in, deleted ones out; versions that were replaced have no place in the index. */
const sort = (claimed: ReadonlyArray<ClaimedProjection>) => {
  const live: Array<Wanted> = []
  const deleted: Array<Projection> = []
  const replaced: Array<Projection> = []
  for (const { memory, projection } of claimed) {
    if (memory === null) replaced.push(projection)
    else if (memory.text === null) deleted.push(projection)
    else live.push({ projection, text: memory.text })
  }
  return { deleted, live, replaced }
}
