/** What became durable in one commit, in a few words for the timeline: names, states and numbers, never a text. */
import type { Change, Commit } from "./Commit.ts"

/** Who did it, and what it says. What only keeps house, such as balances and announcements, is left out. */
export const commitWords = ({ changes }: Commit): string => {
  const words = changes.map(wordsOf).filter((said) => said !== "")
  return words.length === 0 ? "only house-keeping" : words.join("; ")
}

/** Short, and the same wherever it is spoken of: a filter finds all that happened to it. */
export const operationName = (id: string): string => `op-${id.slice(-8)}`

const memoryName = (id: string): string => `memory-${id.slice(-8)}`

const wordsOf = (change: Change): string => {
  const row = change.after ?? change.before
  if (row === null) return ""
  switch (change.table) {
    case "operations":
      return operationWords(change)
    case "plans":
      return change.before === null ? `plan of ${operationName(change.after!.id)} frozen` : ""
    case "inputs":
      return change.after === null ? `input of ${operationName(change.before!.id)} gone` : ""
    case "memories":
      return memoryWords(change)
    case "authorizations": {
      const { charged, no, operationId, reserved, state } = change.after ?? change.before!
      const amount = state === "charged" ? `${charged} of ${reserved}` : String(reserved)
      return `${state} ${amount} for ${operationName(operationId)}${no === 1 ? "" : ` (authorization ${no})`}`
    }
    case "transfers":
      return change.after?.kind === "grant" ? `granted ${change.after.amount} to ${change.after.workspaceId}` : ""
    case "vectors":
      return change.after === null ? "" : `${memoryName(change.after.id)} projected at ${change.after.version}`
    case "apiKeys":
      return change.before === null ? `key of ${change.after!.workspaceId} made` : "key revoked"
    default:
      return ""
  }
}

const operationWords = ({ after, before }: Extract<Change, { readonly table: "operations" }>): string => {
  if (after === null) return `${operationName(before!.id)} gone`
  const name = operationName(after.id)
  if (before === null) return `${name} accepted as ${after.state}`
  if (before.epoch !== after.epoch) return `${name} claimed: epoch ${after.epoch}, attempt ${after.attempts}`
  if (before.state !== after.state) {
    const why = after.failure === null || after.state === "succeeded" ? "" : ` (${after.failure})`
    return `${name} ${before.state} → ${after.state}${why}`
  }
  if (before.leaseExpiresAt !== after.leaseExpiresAt) return `${name} renewed`
  if (!before.ready && after.ready) return `${name} is next of its lane`
  return ""
}

const memoryWords = ({ after, before }: Extract<Change, { readonly table: "memories" }>): string => {
  if (after === null) return `${memoryName(before!.id)} gone`
  const change = before === null ? "added" : after.deleted ? "deleted" : `changed to version ${after.version}`
  return `${memoryName(after.id)} ${change} by ${operationName(after.operationId)}`
}
