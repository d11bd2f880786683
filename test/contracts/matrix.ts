/** Every contract, and what it is kept on: the tests beside this run it, and `docs/contracts.md` shows it. */
import type { Effect, Layer } from "effect"
import type { ApiKeys } from "../../src/services/ApiKeys.ts"
import type { Ledger } from "../../src/services/Ledger.ts"
import type { Provider } from "../../src/services/Provider.ts"
import type { Queue } from "../../src/services/Queue.ts"
import type { Store } from "../../src/services/Store.ts"
import type { Transaction } from "../../src/services/Transaction.ts"
import type { VectorIndex } from "../../src/services/VectorIndex.ts"
import * as Keys from "../services/apiKeysSuite.ts"
import * as LedgerTogether from "../services/ledgerConcurrentSuite.ts"
import * as Money from "../services/ledgerSuite.ts"
import * as Records from "../services/memoryStoreSuite.ts"
import * as Claims from "../services/operationClaimsSuite.ts"
import * as Together from "../services/operationConcurrentSuite.ts"
import * as Lanes from "../services/operationLanesSuite.ts"
import * as Reads from "../services/operationReadsSuite.ts"
import type { Open } from "../services/operations.ts"
import * as Rows from "../services/operationStoreSuite.ts"
import * as Work from "../services/operationWorkSuite.ts"
import * as Projections from "../services/projectionsSuite.ts"
import * as Model from "../services/providerSuite.ts"
import * as Trouble from "../services/providerTroubleSuite.ts"
import * as Hints from "../services/queueSuite.ts"
import * as Transactions from "../services/transactionSuite.ts"
import * as Index from "../services/vectorIndexSuite.ts"

const all = ["simulated", "PGlite", "Postgres"] as const
/** Where two transactions can be open at the same time. */
const several = ["simulated", "Postgres"] as const

/** What each suite is run on. A suite says its name and that of the implementation: "Queue: PGlite". */
export const matrix = {
  "Transaction": all,
  "Transaction together": several,
  "OperationStore": all,
  "OperationStore reads": all,
  "OperationStore claims": all,
  "OperationStore lanes": all,
  "OperationStore work": all,
  "OperationStore together": several,
  "MemoryStore": all,
  "Projections": all,
  "Ledger": all,
  "Ledger together": several,
  "ApiKeys": all,
  "VectorIndex": [...all, "pgvector", "pgvector by its graph"],
  "Queue": all,
  "Provider": ["simulated", "local", "OpenAI-compatible"],
  "Provider in trouble": ["simulated", "OpenAI-compatible"]
} as const

export type SuiteName = keyof typeof matrix
export type Implementation = (typeof matrix)[SuiteName][number]

type Ports = Transaction | Store | Ledger | ApiKeys | VectorIndex

/** What stands on a database. `open` makes a workspace; `blocked` returns once a transaction waits for another. */
export interface Ground<R, E> {
  readonly ports: Layer.Layer<Ports | R, E>
  readonly open: Open<Ports | R>
  readonly blocked: Effect.Effect<unknown, unknown, Ports | R>
}

type Suite = <R, E>(
  name: string,
  ports: Layer.Layer<Ports | R, E>,
  open: Open<R>,
  blocked: Effect.Effect<unknown, unknown, R>
) => void

const onDatabase: { readonly [Name in Exclude<SuiteName, "Queue" | `Provider${string}`>]: Suite } = {
  "Transaction": Transactions.suite,
  "Transaction together": Transactions.concurrentSuite,
  "OperationStore": Rows.suite,
  "OperationStore reads": Reads.suite,
  "OperationStore claims": Claims.suite,
  "OperationStore lanes": Lanes.suite,
  "OperationStore work": Work.suite,
  "OperationStore together": Together.concurrentSuite,
  "MemoryStore": Records.suite,
  "Projections": Projections.suite,
  "Ledger": Money.suite,
  "Ledger together": LedgerTogether.concurrentSuite,
  "ApiKeys": Keys.suite,
  "VectorIndex": Index.suite
}

const kept = (suite: SuiteName, on: Implementation): boolean => (matrix[suite] as ReadonlyArray<Implementation>).includes(on)

/** Runs all that the matrix has of the ports that stand on a database. */
export const keepPorts = <R, E>(on: Implementation, { blocked, open, ports }: Ground<R, E>): void => {
  for (const [name, suite] of Object.entries(onDatabase)) {
    if (kept(name as SuiteName, on)) suite<Ports | R, E>(on, ports, open, blocked)
  }
}

export const keepQueue = <E>(on: Implementation, queue: Layer.Layer<Queue, E>): void => {
  if (kept("Queue", on)) Hints.suite(on, queue)
}

/** `next` lets the next call meet this trouble. */
export const keepProvider = <R, E>(
  on: Implementation,
  provider: Layer.Layer<Provider | R, E>,
  next: (trouble: Trouble.Trouble) => Effect.Effect<void, never, R>
): void => {
  if (kept("Provider", on)) Model.suite(on, provider)
  if (kept("Provider in trouble", on)) Trouble.suite(on, provider, next)
}
