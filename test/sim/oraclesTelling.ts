/** What a client would truly be told at a moment of a history made by hand, to be bent where it should be wrong. */
import { OperationId, type MemoryId } from "../../src/domain/Ids.ts"
import type { Balances } from "../../src/domain/Ledger.ts"
import type { Completed, Receipt } from "../../src/services/Commands.ts"
import type { Event } from "../../src/services/Events.ts"
import type { Answer, Question, Refused, Told, Wanted } from "../../src/sim/Told.ts"
import { type History } from "./oraclesHistory.ts"
import { acme, hashOf, operationId } from "./oraclesRows.ts"

/** The command of every operation of these histories is the same. */
const commandHash = (history: History, n: number) => history.operation(n).evidence.commandHash

export const infer = (history: History, n: number): Question => ({
  _tag: "Infer",
  keyHash: hashOf(n),
  commandHash: commandHash(history, n)
})

export const receipt = (history: History, n: number, change: Partial<Receipt> = {}): Answer => {
  const { createdAt, id, state } = history.operation(n)
  return { _tag: "Receipt", receipt: { eventId: id, status: state, replayed: false, createdAt, reserved: 2n, ...change } }
}

const isProjected = (history: History, id: OperationId): boolean =>
  ![...history.tables.projections.values()].some(({ operationId }) => operationId === id)

export const eventOf = (history: History, n: number): Event => {
  const row = history.operation(n)
  const authorizations = [...history.tables.authorizations.values()].filter(({ operationId }) => operationId === row.id)
  const sum = (amount: (row: (typeof authorizations)[number]) => bigint) =>
    authorizations.reduce((sum, row) => sum + amount(row), 0n)
  return {
    ...row,
    type: row.kind,
    status: row.state,
    maxAttempts: 2,
    error: row.failure === null ? null : { class: row.failure, message: "", retryable: true },
    results: row.results.map((result) => ({
      ...result,
      memory: history.tables.memories.get(`${acme}/${result.id}`)?.text ?? null
    })),
    projection: !row.results.some(({ change }) => change !== "none") ? "none" : isProjected(history, row.id) ? "ready" : "pending",
    usage: {
      reserved: sum(({ reserved }) => reserved),
      charged: sum(({ charged }) => charged),
      refunded: sum(({ charged, reserved, state }) => state === "open" ? 0n : reserved - charged)
    },
    acceptReserved: authorizations[0]?.reserved ?? 0n,
    inputRetained: history.tables.inputs.has(`${row.workspaceId}/${row.id}`)
  }
}

export const event = (history: History, n: number, change: Partial<Event> = {}): Answer => ({
  _tag: "Event",
  event: { ...eventOf(history, n), ...change }
})

export const completed = (history: History, n: number, change: Partial<Completed> = {}): Answer => ({
  _tag: "Completed",
  completed: { event: eventOf(history, n), replayed: false, ...change }
})

export const about = (tag: "Cancel" | "Purge" | "Event", n: number): Question => 
  tag === "Event" ? { _tag: tag, operationId: operationId(n), seconds: 0 } : { _tag: tag, operationId: operationId(n) }

export const retry = (n: number): Question => ({
  _tag: "Retry",
  keyHash: null,
  commandHash: hashOf(50),
  operationId: operationId(n)
})

export const change = (tag: "Update" | "Delete", memoryId: MemoryId, expectedVersion: number | null = null): Question => ({
  _tag: tag,
  keyHash: null,
  commandHash: hashOf(51),
  memoryId,
  expectedVersion
})

/** What a list or a search is to show. */
export const wanted = (change: Partial<Wanted> = {}): Wanted => ({ scope: {}, metadata: {}, limit: 10, ...change })

export const memories = (history: History, ...ids: ReadonlyArray<MemoryId>): Answer => ({
  _tag: "Memories",
  memories: ids.map((id) => history.tables.memories.get(`${acme}/${id}`)!)
})

export const balances = (history: History, change: Partial<Balances> = {}): Answer => ({
  _tag: "Balances",
  balances: { ...history.tables.accounts.get(acme)!.balances, ...change }
})

export const refused = (refusal: Refused): Answer => ({ _tag: "Refused", refusal })

/** An operation that nobody has ever made. */
export const nobody = OperationId.make("018f0000-0000-7000-8000-ffffffffffff")

/** Tells a client of now, or of any time since it asked. */
export const tell = (history: History, question: Question, answer: Answer, asked: Partial<Told> = {}): History => {
  const now = history.now
  history.oracles.told({ client: "client-1", workspaceId: acme, askedAt: now, answeredAt: now, question, answer, ...asked })
  return history
}
