/**
 * `Queue` on LISTEN and NOTIFY, as a wake-up only. Hints reach this process at once and others in one notification for
 * all that gathers in a few milliseconds, after the commits they tell of: notifying inside a transaction would make every
 * commit wait for its neighbours.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, PubSub, Queue as Mailbox, Schedule, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { OperationId, type OperationRef, refKey, WorkspaceId } from "../domain/Ids.ts"
import { Queue, type WakeUp } from "../services/Queue.ts"

const channel = "indelible_wake_up"
/** How long hints gather after a notification, in milliseconds. */
const gatherMs = 5
/** References in one notification: Postgres takes 8,000 bytes, and a reference at most 110. */
const perNotification = 60
/** Hints a slow subscriber may be behind before the oldest is dropped. */
const subscriberCapacity = 4_096

const Notification = Schema.fromJsonString(Schema.Struct({
  from: Schema.String,
  work: Schema.Boolean,
  projection: Schema.Boolean,
  changed: Schema.Array(Schema.Tuple([WorkspaceId, OperationId]))
}))
const decode = Schema.decodeUnknownEffect(Notification)
const encode = Schema.encodeSync(Notification)

export const layer = Layer.effect(
  Queue,
  Effect.gen(function*() {
    const sql = yield* PgClient.PgClient
    const self = yield* (yield* SecureRandom.SecureRandom).uuidV4()
    const hub = yield* PubSub.sliding<ReadonlyArray<WakeUp>>(subscriberCapacity)
    const outgoing = yield* Mailbox.sliding<ReadonlyArray<WakeUp>>(subscriberCapacity)

    // The first hint goes at once, and those that follow it gather.
    const notify = Mailbox.takeAll(outgoing).pipe(
      Effect.flatMap((wakeUps) =>
        Effect.forEach(notifications(self, wakeUps.flat()), (payload) => sql.notify(channel, payload), { discard: true })
      ),
      // A hint that could not be sent is a hint lost: whoever polls will find what it told of.
      Effect.catch(() => Effect.logDebug("A wake-up could not be sent")),
      Effect.andThen(Effect.sleep(gatherMs)),
      Effect.forever
    )

    /** Whoever was deaf may have missed anything, so that each new connection starts with a look at everything. */
    const listen = Effect.gen(function*() {
      const incoming = yield* sql.listen(channel)
      yield* PubSub.publish(hub, [{ _tag: "Work" }, { _tag: "Projection" }])
      while (true) {
        const { payload } = yield* Mailbox.take(incoming)
        const notification = yield* Effect.option(decode(payload))
        if (notification._tag === "None" || notification.value.from === self) continue
        yield* PubSub.publish(hub, hintsOf(notification.value))
      }
    }).pipe(
      Effect.scoped,
      Effect.tapError(() => Effect.logWarning("The wake-up listener lost its connection and will reconnect")),
      Effect.retry(Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("5 seconds")]).pipe(Schedule.jittered))
    )

    yield* Effect.forkScoped(notify)
    yield* Effect.forkScoped(listen)
    return Queue.of({
      send: (wakeUps) =>
        wakeUps.length === 0
          ? Effect.void
          : Effect.andThen(PubSub.publish(hub, wakeUps), Effect.asVoid(Mailbox.offer(outgoing, wakeUps))),
      subscribe: Effect.map(PubSub.subscribe(hub), (subscription) =>
        Effect.map(PubSub.takeAll(subscription), (wakeUps) => wakeUps.flat())
      )
    })
  })
)

/** All hints in as few notifications as hold them, each reference once. */
const notifications = (from: string, wakeUps: ReadonlyArray<WakeUp>): ReadonlyArray<string> => {
  const changed = new Map<string, OperationRef>()
  for (const wakeUp of wakeUps) {
    if (wakeUp._tag === "Changed") wakeUp.operations.forEach((ref) => changed.set(refKey(ref), ref))
  }
  const refs = [...changed.values()].map(({ workspaceId, id }) => [workspaceId, id] as const)
  return Array.from({ length: Math.max(1, Math.ceil(refs.length / perNotification)) }, (_, page) =>
    encode({
      from,
      work: page === 0 && wakeUps.some(({ _tag }) => _tag === "Work"),
      projection: page === 0 && wakeUps.some(({ _tag }) => _tag === "Projection"),
      changed: refs.slice(page * perNotification, (page + 1) * perNotification)
    }))
}

const hintsOf = (notification: typeof Notification.Type): ReadonlyArray<WakeUp> => [
  ...(notification.work ? [{ _tag: "Work" as const }] : []),
  ...(notification.projection ? [{ _tag: "Projection" as const }] : []),
  ...(notification.changed.length > 0
    ? [{ _tag: "Changed" as const, operations: notification.changed.map(([workspaceId, id]) => ({ workspaceId, id })) }]
    : [])
]
