/**
 * Death without a process: ports that, from a chosen moment on, never answer again. What was in a transaction is rolled
 * back, as the server does for a client that is gone; no finalizer of the dead tidies up anything.
 */
import { Context, Deferred, Effect, Layer, Option } from "effect"
import { Ledger } from "../src/services/Ledger.ts"
import { Queue } from "../src/services/Queue.ts"
import { Store } from "../src/services/Store.ts"
import { Transaction } from "../src/services/Transaction.ts"

export class Life extends Context.Service<Life, {
  /** From now on, nothing this process does reaches anybody. */
  readonly end: Effect.Effect<void>
  readonly ended: Effect.Effect<void>
  /** Set to end the life right after the next transaction that wrote memories has committed, before anybody hears of it. */
  endAfterCommit: boolean
}>()("indelible/test/Life") {
  static readonly layer = Layer.effect(Life, Effect.map(Deferred.make<void>(), (death) =>
    Life.of({
      end: Effect.asVoid(Deferred.succeed(death, undefined)),
      ended: Deferred.await(death),
      endAfterCommit: false
    })))
}

/** Death interrupts what is under way, and whoever waits for it waits for ever. */
const untilDeath = <A, E, R>(life: Life["Service"], effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.raceFirst(Effect.asSome(effect), Effect.as(life.ended, Option.none<A>())).pipe(
    Effect.flatMap(Option.match({ onNone: () => Effect.never, onSome: Effect.succeed }))
  )

/** Wraps every method of a port, at any depth, so that it is silent in death. */
const silenced = <A extends object>(life: Life["Service"], port: A): A => {
  const quiet = <B, E, R>(effect: Effect.Effect<B, E, R>) => untilDeath(life, effect)
  return Object.fromEntries(Object.entries(port).map(([name, member]) => [
    name,
    Effect.isEffect(member)
      ? quiet(member)
      : typeof member === "function"
      ? (...args: Array<unknown>) => quiet(member(...args))
      : silenced(life, member)
  ])) as A
}

/** What the transaction at hand has written. */
const Written = Context.Reference<{ memories: boolean }>("indelible/test/Written", {
  defaultValue: () => ({ memories: false })
})

/** The ports of a process that can die, over the ports of one that cannot. */
export const ports = Layer.effectContext(Effect.gen(function*() {
  const life = yield* Life
  const store = silenced(life, yield* Store)
  const inner = yield* Transaction
  const write: typeof store.memories.write = (writes) =>
    Effect.tap(store.memories.write(writes), () => Effect.map(Written, (written) => written.memories = true))
  const run: Transaction["Service"]["run"] = (effect) =>
    Effect.suspend(() => {
      const written = { memories: false }
      return untilDeath(
        life,
        inner.run(Effect.provideService(effect, Written, written)).pipe(
          Effect.tap(() => written.memories && life.endAfterCommit ? Effect.andThen(life.end, Effect.never) : Effect.void)
        )
      )
    })
  return Context.make(Store, Store.of({ ...store, memories: { ...store.memories, write } })).pipe(
    Context.add(Ledger, Ledger.of(silenced(life, yield* Ledger))),
    Context.add(Queue, yield* Queue),
    Context.add(Transaction, Transaction.of({ run }))
  )
}))
