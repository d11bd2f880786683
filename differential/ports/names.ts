/** What the short names of a sequence stand for. */
import { type AddCommand, commandHash, commandVersion, IdempotencyKey, keyHash, normaliseAdd } from "../../src/domain/Command.ts"
import { derivedMemoryId } from "../../src/domain/Digest.ts"
import { type LaneRef, type MemoryRef, OperationId, type OperationRef, Timestamp, WorkspaceId } from "../../src/domain/Ids.ts"
import type { Operation } from "../../src/domain/Operation.ts"
import { laneOf } from "../../src/domain/Scope.ts"
import { blankOperation } from "../../src/services/Acceptance.ts"
import type { KeyRow } from "../../src/services/OperationStore.ts"
import { evidenceOf } from "../../src/services/SyncWrites.ts"
import type { Lane, Op, Workspace } from "./sequence.ts"

export const workspaceId = (name: Workspace): WorkspaceId => WorkspaceId.make(name)

const ids = { a: "0a", b: "0b", c: "0c", z: "0d" } as const

export const operationId = (name: Op): OperationId => OperationId.make(`01970000-0000-7000-8000-0000000000${ids[name]}`)

export const workspaceOf = (name: Op): WorkspaceId => workspaceId(name === "z" ? "v" : "w")

export const operationRef = (name: Op): OperationRef => ({ workspaceId: workspaceOf(name), id: operationId(name) })

/** The first memory that this operation makes. */
export const memoryRef = (name: Op): MemoryRef =>
  ({ workspaceId: workspaceOf(name), id: derivedMemoryId(operationId(name), 0) })

export const scopeOf = (lane: Lane) => ({ user_id: lane })

export const laneRefs = (workspace: Workspace, lanes: ReadonlyArray<Lane>): ReadonlyArray<LaneRef> =>
  lanes.map((lane) => ({ workspaceId: workspaceId(workspace), lane: laneOf(scopeOf(lane)) }))

export const key = (name: string): IdempotencyKey => IdempotencyKey.make(`key-${name}`)

export const command = (lane: Lane, text: string, infer: boolean): AddCommand =>
  normaliseAdd({ ...scopeOf(lane), content: text, infer })

/** A time in the past, for rows that no program made. */
export const past = Timestamp.make(1_750_000_000_000)

/** Pending, as it is accepted, but for its place. */
export const operation = (name: Op, lane: Lane, ready: boolean): Operation => ({
  ...blankOperation(past),
  ...operationRef(name),
  kind: "memory.infer",
  scope: scopeOf(lane),
  lane: laneOf(scopeOf(lane)),
  ready,
  authorizationNo: 1,
  evidence: evidenceOf(command(lane, "p", true))
})

export const keyRow = (name: string, op: Op): KeyRow => ({
  workspaceId: workspaceOf(op),
  keyHash: keyHash(key(name)),
  commandVersion,
  commandHash: commandHash(command("k", "p", true))!,
  operationId: operationId(op)
})
