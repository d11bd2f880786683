/** What histories made by hand are made of: names, settings, tables, and what a transaction sees of the past. */
import { Duration } from "effect"
import { type OperationId, type OperationRef, Sha256Hex, WorkspaceId } from "../../src/domain/Ids.ts"
import type { Fact } from "../../src/domain/Plan.ts"
import { defaultSettings } from "../../src/services/Settings.ts"
import type { Rows, TableName } from "../../src/sim/Commit.ts"
import * as samples from "../domain/samples.ts"

export const operationId: (n: number) => OperationId = samples.operationId
export const acme = WorkspaceId.make("acme")
export const other = WorkspaceId.make("other")
export const leaseMs = 2_000
export const settings = {
  ...defaultSettings,
  lease: Duration.millis(leaseMs),
  fenceMargin: Duration.millis(200),
  retry: { ...defaultSettings.retry, maxAttempts: 2 }
}

export type Tables = { readonly [Name in TableName]: Map<string, Rows[Name]> }

/** Whatever names its row in one word. */
export const keyOf = (name: TableName, row: object): string => {
  const { authorizationNo, id, keyHash, memoryId, no, operationId, seq, version, workspaceId } = row as Record<string, unknown>
  switch (name) {
    case "fairClock":
      return "singleton"
    case "workspaces":
      return String(id)
    case "accounts":
      return String(workspaceId)
    case "keys":
      return `${workspaceId}/${keyHash}`
    case "authorizations":
      return `${workspaceId}/${operationId}/${no}`
    case "history":
      return `${workspaceId}/${memoryId}/${version}`
    case "projections":
      return `${workspaceId}/${id}/${version}`
    case "transfers":
    case "outbox":
      return `${workspaceId}/${seq ?? authorizationNo}`
    default:
      return `${workspaceId}/${id}`
  }
}

export const tableNames: ReadonlyArray<TableName> = [
  "workspaces", "operations", "keys", "inputs", "plans", "outbox", "memories", "history", "projections", "accounts",
  "authorizations", "transfers", "fairClock", "apiKeys", "vectors"
]

export const hashOf = (n: number): Sha256Hex => Sha256Hex.make(n.toString(16).padStart(64, "0"))
export const add = (text: string): Fact => ({ change: "add", text, target: null })

/** What a transaction sees of the history that it is a part of. */
export interface Past {
  readonly tables: Tables
  /** The database clock. */
  readonly at: number
  /** Of everything that is numbered. */
  seq: number
  /** Operations that are not of the first workspace. */
  readonly elsewhere: Map<number, WorkspaceId>
  readonly ref: (n: number) => OperationRef
}
