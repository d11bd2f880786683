/**
 * The simplest world that production programs run in: hints that reach everybody, a model that repeats what it is told,
 * an index that only remembers, and a trivial database.
 */
import { Context, Effect, Exit, Layer } from "effect"
import { refKey } from "../../src/domain/Ids.ts"
import { Ledger } from "../../src/services/Ledger.ts"
import { Provider } from "../../src/services/Provider.ts"
import { Queue, type WakeUp } from "../../src/services/Queue.ts"
import { Store } from "../../src/services/Store.ts"
import { Transaction } from "../../src/services/Transaction.ts"
import { VectorIndex } from "../../src/services/VectorIndex.ts"
import { type Call, io } from "../../src/sim/Io.ts"
import type { Kernel } from "../../src/sim/Kernel.ts"
import { database, ledger, memoryStore, operationStore } from "./trivialDatabase.ts"

/** Hints reach whoever listens, a little later. */
const queue = (kernel: Kernel): Queue["Service"] => {
  const subscribers = new Set<{ pending: Array<WakeUp>; call: Call<ReadonlyArray<WakeUp>, never> | null }>()
  const deliver = () => {
    for (const one of subscribers) {
      if (one.call === null || one.pending.length === 0) continue
      if (one.call.waiting) one.call.answer(Exit.succeed(one.pending.splice(0)))
      one.call = null
    }
  }
  return Queue.of({
    send: (wakeUps) =>
      Effect.sync(() => {
        for (const one of subscribers) one.pending.push(...wakeUps)
        kernel.after(1, "hints", deliver)
      }),
    subscribe: Effect.sync(() => {
      const mine = { pending: new Array<WakeUp>(), call: null as Call<ReadonlyArray<WakeUp>, never> | null }
      subscribers.add(mine)
      return io<ReadonlyArray<WakeUp>>({
        label: "hint",
        latencyMs: 0,
        arrive: (call) => {
          mine.call = call
          deliver()
        },
        abandoned: () => mine.call = null
      })
    })
  })
}

/** A model that takes `seconds` to say each message again as a fact. */
const provider = (calls: { count: number }, seconds: number): Provider["Service"] =>
  Provider.of({
    model: "echo",
    embeddingModel: "echo",
    dimension: 2,
    extract: ({ messages }) =>
      io({
        label: "extract",
        latencyMs: seconds * 1_000,
        arrive: (call) => {
          calls.count++
          const fact = (text: string) => ({ change: "add" as const, text, target: null })
          call.answer(Exit.succeed(messages.map(({ content }) => fact(content))))
        }
      }),
    embed: (texts) =>
      io({
        label: "embed",
        latencyMs: 20,
        arrive: (call) => call.answer(Exit.succeed(texts.map(() => Float32Array.of(1, 0))))
      })
  })

/** A world, and the ports by which every process of it reaches it. */
export const trivialWorld = (kernel: Kernel, extractSeconds = 2) => {
  const { state, statement, transaction } = database(kernel)
  const calls = { count: 0 }
  const indexed = new Set<string>()
  const index = VectorIndex.of({
    put: (rows) =>
      io({ label: "index put", latencyMs: 10, arrive: (call) => {
        for (const row of rows) indexed.add(refKey(row))
        call.answer(Exit.void)
      } }),
    remove: () => Effect.void,
    search: () => io({ label: "index search", latencyMs: 10, arrive: (call) => call.answer(Exit.succeed([])) })
  })
  const ports = Layer.succeedContext(
    Context.make(Store, Store.of({ operations: operationStore(statement), memories: memoryStore(statement) })).pipe(
      Context.add(Ledger, ledger(statement)),
      Context.add(Queue, queue(kernel)),
      Context.add(Transaction, Transaction.of({ run: transaction })),
      Context.add(Provider, provider(calls, extractSeconds)),
      Context.add(VectorIndex, index)
    )
  )
  return { ports, calls, indexed, tables: () => state.tables }
}
