/**
 * What one connection has to work with: the ports of one of the two databases behind a turnstile, and the programs of the
 * service on top of them. Time, randomness and hints are the same on both sides, and no part of the comparison.
 */
import { Clock, Context, Duration, Effect, Exit, Layer, Logger, Random, type Scope } from "effect"
import { OperationId } from "../../src/domain/Ids.ts"
import { Claims } from "../../src/services/Claims.ts"
import { Events } from "../../src/services/Events.ts"
import { Ledger } from "../../src/services/Ledger.ts"
import type { MemoryStore } from "../../src/services/MemoryStore.ts"
import type { OperationStore } from "../../src/services/OperationStore.ts"
import { Queue } from "../../src/services/Queue.ts"
import { Repair } from "../../src/services/Repair.ts"
import { Retries } from "../../src/services/Retries.ts"
import { defaultSettings, Settings, type SettingsShape } from "../../src/services/Settings.ts"
import { Settlement } from "../../src/services/Settlement.ts"
import { Store } from "../../src/services/Store.ts"
import * as SyncWrites from "../../src/services/SyncWrites.ts"
import { Transaction } from "../../src/services/Transaction.ts"
import { root } from "../../src/sim/Keyed.ts"
import type { Turnstile } from "./turnstile.ts"

export type Ports = Store | Ledger | Transaction

export interface Hands {
  readonly owner: string
  readonly operations: OperationStore
  readonly memories: MemoryStore
  readonly ledger: Ledger["Service"]
  readonly transaction: Transaction["Service"]
  readonly settlement: Settlement["Service"]
  readonly repair: Repair["Service"]
  readonly retries: Retries["Service"]
  readonly events: Events["Service"]
  /** Claims of leases that are over at once, and of some that never end. */
  readonly claims: { readonly short: Claims["Service"]; readonly long: Claims["Service"] }
  /** Writes that are finished when they are accepted, by an operation of this id. */
  readonly writes: (id: OperationId) => ReturnType<typeof SyncWrites.make>
}

export interface Desk {
  readonly on: number
  readonly turnstile: Turnstile
  /** Hears every answer of a port: its name, and whether the order of what is in it counts. */
  readonly hear: (name: string, exit: Exit.Exit<unknown, unknown>, ordered: boolean) => void
}

/** Attempts end only where a sequence says so, and what failed is due again at once. */
const settings: SettingsShape = {
  ...defaultSettings,
  lease: Duration.hours(1),
  retry: { ...defaultSettings.retry, maxAttempts: 2, backoffBaseMs: 0 },
  failedInputRetention: Duration.zero,
  announcementRetention: Duration.zero
}
const patient: SettingsShape = { ...settings, retry: { ...settings.retry, maxAttempts: 99 } }
const hasty: SettingsShape = { ...patient, lease: Duration.zero }

export const make = Effect.fnUntraced(function*(desk: Desk): Effect.fn.Return<Hands, never, Ports | Scope.Scope> {
  const store = yield* Store
  const operations = gated(desk, "operations", store.operations)
  const memories = gated(desk, "memories", store.memories)
  const ledger = gated(desk, "ledger", yield* Ledger)
  const transaction = transactionOf(desk, yield* Transaction)
  const queue = Queue.of({ send: () => Effect.void, subscribe: Effect.succeed(Effect.never) })
  const ports = Context.make(Store, Store.of({ operations, memories })).pipe(
    Context.add(Ledger, ledger),
    Context.add(Transaction, transaction),
    Context.add(Queue, queue)
  )
  const programs = Layer.mergeAll(Repair.layer, Retries.layer).pipe(
    Layer.provideMerge(Layer.mergeAll(Settlement.layer, Events.layer))
  )
  const build = <A>(layer: Layer.Layer<A, never, Ports | Queue>, settings: SettingsShape) =>
    Layer.build(Layer.fresh(layer).pipe(Layer.provide(Layer.succeed(Settings, settings)), Layer.provide(Layer.succeedContext(ports))))
  const built = yield* build(programs, settings)
  const claims = Claims.layer.pipe(Layer.provide(Settlement.layer))
  const events = Context.get(built, Events)
  const price = SyncWrites.prices(settings)["verbatim-add"]
  return {
    owner: `worker-${desk.on}`,
    operations,
    memories,
    ledger,
    transaction,
    settlement: Context.get(built, Settlement),
    repair: Context.get(built, Repair),
    retries: Context.get(built, Retries),
    events,
    claims: {
      short: Context.get(yield* build(claims, hasty), Claims),
      long: Context.get(yield* build(claims, patient), Claims)
    },
    writes: (id) => SyncWrites.make({ operations, memories, ledger, transaction, queue, events, newId: Effect.succeed(id), price })
  }
})

/** What programs draw from: the same draws on both sides, a time that stands still, and sleeps that end at the turnstile. */
export const environment = ({ on, turnstile }: Desk): Context.Context<never> => {
  const key = root("random").of(on)
  let draws = 0
  const next = () => key.of(draws++)
  const now = 1_767_225_600_000
  const clock: Clock.Clock = {
    currentTimeMillisUnsafe: () => now,
    currentTimeMillis: Effect.succeed(now),
    currentTimeNanosUnsafe: () => BigInt(now) * 1_000_000n,
    currentTimeNanos: Effect.succeed(BigInt(now) * 1_000_000n),
    monotonicTimeNanosUnsafe: () => 0n,
    monotonicTimeNanos: Effect.succeed(0n),
    sleep: () => turnstile.pass
  }
  const random = { nextDoubleUnsafe: () => next().unit(), nextIntUnsafe: () => next().below(2 ** 53) - 2 ** 52 }
  return Context.make(Random.Random, random).pipe(
    Context.add(Clock.Clock, clock),
    Context.add(Logger.CurrentLoggers, new Set())
  ) as Context.Context<never>
}

/** Answers whose order is promised. */
const inOrder = new Set([
  "operations.list", "operations.expired", "memories.lock", "memories.list", "memories.history", "ledger.lock",
  "ledger.openAuthorizations", "ledger.authorizations", "ledger.transfers"
])

/** Answers that nobody may read. */
const silent = new Set(["memories.finishProjections"])

/** The same port, but each of its calls waits at the turnstile first, and is heard. */
const gated = <Port extends object>(desk: Desk, of: string, port: Port): Port =>
  Object.fromEntries(
    Object.entries(port).map(([name, member]: [string, unknown]) => {
      const full = `${of}.${name}`
      const call = (effect: Effect.Effect<unknown, unknown>) =>
        Effect.andThen(
          desk.turnstile.pass,
          Effect.onExit(effect, (exit) => Effect.sync(() => {
            desk.hear(full, Exit.isSuccess(exit) && silent.has(full) ? Exit.void : exit, inOrder.has(full))
          }))
        )
      return [name, Effect.isEffect(member)
        ? call(member as Effect.Effect<unknown, unknown>)
        : (...args: ReadonlyArray<unknown>) => call((member as (...args: ReadonlyArray<unknown>) => Effect.Effect<unknown, unknown>)(...args))]
    })
  ) as Port

const Inside = Context.Reference<boolean>("indelible/differential/Inside", { defaultValue: () => false })

/** A commit has its turn, too. What fails is rolled back at once. */
const transactionOf = (desk: Desk, { run }: Transaction["Service"]): Transaction["Service"] =>
  Transaction.of({
    run: (effect) =>
      Effect.flatMap(Inside, (inside) =>
        inside ? run(effect) : Effect.onExit(
          run(Effect.tap(Effect.provideService(effect, Inside, true), () => desk.turnstile.pass)),
          (exit) => Effect.sync(() => desk.hear(Exit.isSuccess(exit) ? "commit" : "rollback", Exit.void, true))
        ))
  })
