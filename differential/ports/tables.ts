/** The tables that are compared in the end: all of the schema but those that no sequence touches. */
import type { TableName } from "../../src/sim/Commit.ts"

export const tables: ReadonlyArray<TableName> = [
  "accounts", "authorizations", "fairClock", "history", "inputs", "keys", "memories", "operations", "outbox", "plans",
  "projections", "transfers"
]
