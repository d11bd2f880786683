/** The database of a world, whatever it is made of: what programs, misfortunes and oracles have of it. */
import type { Context, Effect, Layer } from "effect"
import type { SecureRandom } from "effect/crypto"
import type { OperationRef } from "../domain/Ids.ts"
import type { ApiKeys } from "../services/ApiKeys.ts"
import type { Ledger } from "../services/Ledger.ts"
import type { Provider } from "../services/Provider.ts"
import type { Queue } from "../services/Queue.ts"
import type { Store } from "../services/Store.ts"
import type { Transaction } from "../services/Transaction.ts"
import type { VectorIndex } from "../services/VectorIndex.ts"
import type { Commit, Committed } from "./Commit.ts"
import type { SimDatabaseOptions } from "./database/SimDatabase.ts"

/** The ports that stand on a database, and those that do not. Settings come with these. */
export type DatabasePorts = Transaction | Store | Ledger | ApiKeys | VectorIndex
export type OtherPorts = Queue | Provider

export interface Database {
  /** What is durable and visible, as oracles see it. */
  readonly committed: Committed
  /** Its clock, in milliseconds and parts of them. */
  readonly now: number
  /** Whether a transaction has the row of this operation locked. */
  readonly isLocked: (ref: OperationRef) => boolean
  /** Calls `listener` once for each commit that changes something, when its changes are visible. */
  readonly onCommit: (listener: (commit: Commit) => void) => void
  /** Everybody's connection breaks, every open transaction is undone, and nobody is let in until `ms` are over. */
  readonly down: (ms: number) => void
  /** All ports of a process, for each process anew. */
  readonly ports: (others: Context.Context<OtherPorts>) => Layer.Layer<DatabasePorts | OtherPorts, never, SecureRandom.SecureRandom>
  /** The same for somebody's errand beside the service. */
  readonly provide: <A, E>(errand: Effect.Effect<A, E, ApiKeys | Ledger | Transaction>) => Effect.Effect<A, E, SecureRandom.SecureRandom>
}

export type DatabaseOptions = Pick<SimDatabaseOptions, "kernel" | "strikes"> & Required<Pick<SimDatabaseOptions, "clock" | "dimension">>

/** Opens a fresh one for a run. */
export type OpenDatabase = (options: DatabaseOptions) => Database
