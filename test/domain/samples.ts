/** Rows to begin a test from: an operation just accepted, and a memory just added. */
import { Sha256Hex, Lane, MemoryId, OperationId, Timestamp, WorkspaceId } from "../../src/domain/Ids.ts"
import type { Authorization } from "../../src/domain/Ledger.ts"
import type { Memory } from "../../src/domain/Memory.ts"
import type { Operation } from "../../src/domain/Operation.ts"
import type { RetryPolicy } from "../../src/domain/Failure.ts"

export const workspaceId = WorkspaceId.make("acme")
export const lane = Lane.make("0".repeat(32))
export const hash = Sha256Hex.make("a".repeat(64))
export const at = Timestamp.make

export const operationId = (n: number): OperationId => OperationId.make(`018f0000-0000-7000-8000-${hex12(n)}`)
export const memoryId = (n: number): MemoryId => MemoryId.make(`018f0000-0000-8000-9000-${hex12(n)}`)
const hex12 = (n: number) => n.toString(16).padStart(12, "0")

export const policy: RetryPolicy = {
  maxAttempts: 5,
  backoffBaseMs: 1_000,
  backoffCapMs: 60_000,
  invalidOutputAttempts: 2,
  rateLimitMaxAgeMs: 3_600_000
}

export const accepted = (n: number, changes: Partial<Operation> = {}): Operation => ({
  workspaceId,
  id: operationId(n),
  kind: "memory.infer",
  state: "pending",
  scope: { user_id: "ada" },
  lane,
  seq: n,
  ready: true,
  fairTag: n,
  nextAttemptAt: null,
  epoch: 0,
  attempts: 0,
  invalidOutputs: 0,
  windowStartedAt: at(1_000),
  leaseOwner: null,
  leaseExpiresAt: null,
  authorizationNo: 1,
  failure: null,
  outcome: null,
  results: [],
  evidence: {
    commandVersion: 1,
    commandHash: hash,
    messages: 1,
    inputBytes: 10,
    model: null,
    planDigest: null,
    offered: 0,
    stored: 0
  },
  createdAt: at(1_000),
  startedAt: null,
  completedAt: null,
  ...changes
})

export const added = (n: number, changes: Partial<Memory> = {}): Memory => ({
  workspaceId,
  id: memoryId(n),
  version: 1,
  text: `fact ${n}`,
  scope: { user_id: "ada" },
  metadata: { source: "chat" },
  eventDate: "2024-05-01T00:00:00.000Z",
  operationId: operationId(0),
  createdAt: at(1_000),
  updatedAt: at(1_000),
  deleted: false,
  ...changes
})

export const grantOf = (n: number, no: number, reserved: bigint): Omit<Authorization, "state" | "charged"> => ({
  workspaceId,
  operationId: operationId(n),
  no,
  reserved,
  price: { policy: "infer-add", stored: 2, noMemory: 1 }
})
