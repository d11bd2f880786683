/**
 * Group commit: callers hand in one item each and get one answer each, while a few loops serve whatever has gathered in
 * one transaction. Nothing is delayed to fill a batch: the batch is what arrived while the last one was committing.
 */
import { Cause, Deferred, Effect, Exit, Queue, type Scope } from "effect"
import { OutcomeUnknown } from "./Transaction.ts"

/** The queue is full. Nothing was done with the item: come back later. */
export class Full {
  readonly _tag = "Full"
}

export interface Batcher<In, Out> {
  /** Interrupting a caller does not take its item back: it may be served all the same. */
  readonly submit: (item: In) => Effect.Effect<Out, OutcomeUnknown | Full>
}

export interface BatcherOptions<In, Out> {
  /** Items in one batch. */
  readonly maxSize: number
  /** Items that may wait. */
  readonly capacity: number
  /** Batches under way at once. */
  readonly loops: number
  /** Serves a batch: one answer for each item, in order. Repeats are its own affair. */
  readonly run: (items: ReadonlyArray<In>) => Effect.Effect<ReadonlyArray<Out>, OutcomeUnknown>
}

interface Entry<In, Out> {
  readonly item: In
  readonly answer: Deferred.Deferred<Out, OutcomeUnknown>
}

/** A batcher that serves until its scope closes; what still waits then is told that its outcome is unknown. */
export const make = Effect.fnUntraced(function*<In, Out>(
  options: BatcherOptions<In, Out>
): Effect.fn.Return<Batcher<In, Out>, never, Scope.Scope> {
  const queue = yield* Queue.dropping<Entry<In, Out>>(options.capacity)
  const unknown = Exit.fail(new OutcomeUnknown({ reason: "connection" }))

  const settle = (entry: Entry<In, Out>, exit: Exit.Exit<Out, OutcomeUnknown>) => Deferred.done(entry.answer, exit)

  const serve = Effect.fnUntraced(function*(entries: ReadonlyArray<Entry<In, Out>>) {
    const exit = yield* Effect.exit(options.run(entries.map((entry) => entry.item)))
    if (Exit.isSuccess(exit)) {
      return yield* Effect.forEach(entries, (entry, index) => settle(entry, Exit.succeed(exit.value[index]!)), { discard: true })
    }
    // One item that cannot be served must not take its neighbours with it.
    if (Cause.hasDies(exit.cause) && entries.length > 1) {
      yield* Effect.logError("A batch broke off, and each of its items is served by itself").pipe(
        Effect.annotateLogs("items", entries.length)
      )
      return yield* Effect.forEach(entries, (entry) =>
        Effect.exit(options.run([entry.item])).pipe(
          Effect.flatMap((alone) => settle(entry, Exit.map(alone, (answers) => answers[0]!)))
        ), { discard: true })
    }
    yield* Effect.forEach(entries, (entry) => settle(entry, Exit.failCause(exit.cause)), { discard: true })
  })

  const loop = Queue.takeBetween(queue, 1, options.maxSize).pipe(
    Effect.flatMap((entries) =>
      serve(entries).pipe(
        Effect.onInterrupt(() => Effect.forEach(entries, (entry) => settle(entry, unknown), { discard: true }))
      )
    ),
    Effect.forever
  )

  yield* Effect.addFinalizer(() =>
    Queue.clear(queue).pipe(
      Effect.flatMap((left) => Effect.forEach(left, (entry) => settle(entry, unknown), { discard: true })),
      Effect.andThen(Queue.shutdown(queue)),
      Effect.ignore
    )
  )
  for (let index = 0; index < options.loops; index++) yield* Effect.forkScoped(loop)

  return {
    submit: Effect.fnUntraced(function*(item) {
      const answer = yield* Deferred.make<Out, OutcomeUnknown>()
      const taken = yield* Queue.offer(queue, { item, answer })
      if (!taken) return yield* Effect.fail(new Full())
      return yield* Deferred.await(answer)
    })
  }
})

/** A batcher for callers that somebody else keeps few: there is room for all of them. Returns its `submit`. */
export const makeRoomy = Effect.fnUntraced(function*<In, Out>(
  options: Omit<BatcherOptions<In, Out>, "capacity">
): Effect.fn.Return<(item: In) => Effect.Effect<Out, OutcomeUnknown>, never, Scope.Scope> {
  const { submit } = yield* make({ ...options, capacity: Number.MAX_SAFE_INTEGER })
  return (item) => submit(item).pipe(Effect.catchTag("Full", () => Effect.die("a batcher with room for all was full")))
})
