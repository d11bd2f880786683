/** SHA-256, domain separated: the same bytes under two purposes never share a digest. */
import { createHash } from "node:crypto"
import { MemoryId, type OperationId, Sha256Hex } from "./Ids.ts"

/** Hex SHA-256 of `purpose`, a zero byte, and `text` as UTF-8. */
export const digest = (purpose: string, text: string): Sha256Hex =>
  Sha256Hex.make(createHash("sha256").update(`${purpose}\u0000${text}`, "utf8").digest("hex"))

/**
 * The id of the memory that an operation's plan adds at `index`: a UUIDv8 that keeps the operation's time prefix, so
 * that new rows stay close in the index, and hashes the rest.
 */
export const derivedMemoryId = (operationId: OperationId, index: number): MemoryId => {
  const hex = digest("indelible/memory-id/v1", `${operationId}/${index}`)
  const variant = ((parseInt(hex[15]!, 16) & 0x3) | 0x8).toString(16)
  return MemoryId.make(
    `${operationId.slice(0, 13)}-8${hex.slice(12, 15)}-${variant}${hex.slice(16, 19)}-${hex.slice(19, 31)}`
  )
}
