/** The simulated database as the database of a world: any process may use its ports, which are made once. */
import { Context, Effect, Layer } from "effect"
import type { OperationRef } from "../domain/Ids.ts"
import type { Commit } from "./Commit.ts"
import type { Database, OpenDatabase } from "./Database.ts"
import { SimDatabase } from "./database/SimDatabase.ts"

export const inMemory: OpenDatabase = (options): Database => {
  const database = new SimDatabase(options)
  const ports = database.ports()
  return {
    committed: database.committed,
    get now() {
      return database.now
    },
    isLocked: (ref: OperationRef) => database.isLocked(ref),
    onCommit: (listener: (commit: Commit) => void) => database.onCommit(listener),
    down: (ms) => database.down(ms),
    ports: (others) => Layer.succeedContext(Context.merge(ports, others)),
    provide: (errand) => Effect.provideContext(errand, ports)
  }
}
