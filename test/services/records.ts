/** Memories and their changes, as programs make them, for tests that need some. Ids grow with every call, as they do in time. */
import { derivedMemoryId } from "../../src/domain/Digest.ts"
import { OperationId, Timestamp, WorkspaceId } from "../../src/domain/Ids.ts"
import type { Memory } from "../../src/domain/Memory.ts"
import { type MemoryWrite, nextVersion } from "../../src/domain/Plan.ts"

let made = 0

export const operationId = (): OperationId => {
  const prefix = (0x0197_0000_0000 + ++made).toString(16).padStart(12, "0")
  return OperationId.make(`${prefix.slice(0, 8)}-${prefix.slice(8)}-7000-8000-000000000000`)
}

/** A workspace of this test's own. */
export const workspaceOf = (test: string): WorkspaceId => WorkspaceId.make(`${test}-${++made}`)

export const at = (ms: number) => Timestamp.make(1_764_547_200_000 + ms)

/** A first version: Ana's, without metadata, unless said otherwise. */
export const added = (workspaceId: WorkspaceId, text: string, fields: Partial<Memory> = {}): Memory => {
  const operation = operationId()
  return {
    workspaceId,
    id: derivedMemoryId(operation, 0),
    version: 1,
    text,
    scope: { user_id: "ana" },
    metadata: {},
    eventDate: null,
    operationId: operation,
    createdAt: at(0),
    updatedAt: at(0),
    deleted: false,
    ...fields
  }
}

export const add = (memory: Memory): MemoryWrite => ({ change: "add", memory })

export const update = (memory: Memory, text: string): MemoryWrite => ({
  change: "update",
  memory: nextVersion(memory, { text, operationId: operationId(), now: at(1_000) })
})

export const remove = (memory: Memory): MemoryWrite => ({
  change: "delete",
  memory: nextVersion(memory, { text: null, operationId: operationId(), now: at(2_000) })
})
