/** What clients can ask for, and the programs that serve it: those that stand behind the handlers of the HTTP API. */
import { Effect } from "effect"
import {
  type AddCommand, commandHash, type DeleteCommand, type IdempotencyKey, keyHash, type UpdateCommand
} from "../domain/Command.ts"
import type { MemoryRef, OperationRef, Sha256Hex, WorkspaceId } from "../domain/Ids.ts"
import type { ComeBackLater } from "../domain/Refusal.ts"
import type { ScopeFilter } from "../domain/Scope.ts"
import type { ApiKeys } from "../services/ApiKeys.ts"
import { Commands } from "../services/Commands.ts"
import { Events } from "../services/Events.ts"
import { Memories } from "../services/Memories.ts"
import { Retries } from "../services/Retries.ts"
import { Usage } from "../services/Usage.ts"
import type { Answer, Question, Refused, Wanted } from "./Told.ts"

/** What an API server serves with. */
export type ApiServices = ApiKeys | Commands | Events | Memories | Retries | Usage

export interface Request {
  readonly workspaceId: WorkspaceId
  readonly question: Question
  readonly program: Effect.Effect<Answer, Refused | ComeBackLater, ApiServices>
}

/** A command with its hash, which the client needs for every repetition, and with its meaning. */
export interface Hashed<Command> {
  readonly command: Command
  readonly hash: Sha256Hex
  readonly meaning: string
}

export const hashed = <Command extends AddCommand | UpdateCommand | DeleteCommand>(command: Command): Hashed<Command> =>
  ({ command, hash: commandHash(command)!, meaning: JSON.stringify(inOrder(command)) })

/** The same value, with the names of every object in order: by itself, because the hash of the domain is under test. */
const inOrder = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(inOrder)
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => a < b ? -1 : 1).map(([name, one]) => [name, inOrder(one)]))
}

const hashOf = (key: IdempotencyKey | null): Sha256Hex | null => key === null ? null : keyHash(key)

const receiptOf = Effect.map((receipt: Extract<Answer, { _tag: "Receipt" }>["receipt"]): Answer => ({ _tag: "Receipt", receipt }))
const completedOf = Effect.map((completed: Extract<Answer, { _tag: "Completed" }>["completed"]): Answer => ({ _tag: "Completed", completed }))
const eventOf = Effect.map((event: Extract<Answer, { _tag: "Event" }>["event"]): Answer => ({ _tag: "Event", event }))
const memoriesOf = Effect.map((memories: Extract<Answer, { _tag: "Memories" }>["memories"]): Answer => ({ _tag: "Memories", memories }))

export const add = (
  workspaceId: WorkspaceId,
  key: IdempotencyKey | null,
  { command, hash, meaning }: Hashed<AddCommand>
): Request => ({
  workspaceId,
  question: { _tag: command.kind === "memory.infer" ? "Infer" : "Add", keyHash: hashOf(key), commandHash: hash, meaning, command },
  program: Effect.flatMap(Commands, (commands) =>
    command.kind === "memory.infer"
      ? receiptOf(commands.infer(workspaceId, key!, command))
      : completedOf(commands.add(workspaceId, key, command)))
})

export const change = (
  workspaceId: WorkspaceId,
  key: IdempotencyKey | null,
  { command, hash, meaning }: Hashed<UpdateCommand | DeleteCommand>
): Request => ({
  workspaceId,
  question: {
    _tag: command.kind === "memory.update" ? "Update" : "Delete",
    keyHash: hashOf(key),
    commandHash: hash,
    meaning,
    command,
    memoryId: command.memoryId,
    expectedVersion: command.expectedVersion
  },
  program: Effect.flatMap(Commands, (commands) =>
    completedOf(command.kind === "memory.update"
      ? commands.update(workspaceId, key, command)
      : commands.delete(workspaceId, key, command)))
})

export const retry = (ref: OperationRef, key: IdempotencyKey | null): Request => ({
  workspaceId: ref.workspaceId,
  question: {
    _tag: "Retry",
    keyHash: hashOf(key),
    commandHash: commandHash({ kind: "operation.retry", operationId: ref.id })!,
    operationId: ref.id
  },
  program: Effect.flatMap(Retries, (retries) => receiptOf(retries.retry(ref, key)))
})

export const cancel = (ref: OperationRef): Request => ({
  workspaceId: ref.workspaceId,
  question: { _tag: "Cancel", operationId: ref.id },
  program: Effect.flatMap(Retries, (retries) => eventOf(retries.cancel(ref)))
})

export const purge = (ref: OperationRef): Request => ({
  workspaceId: ref.workspaceId,
  question: { _tag: "Purge", operationId: ref.id },
  program: Effect.flatMap(Retries, (retries) => eventOf(retries.purgeInput(ref)))
})

/** At once, or when it has ended, or after so many seconds. */
export const event = (ref: OperationRef, seconds: number): Request => ({
  workspaceId: ref.workspaceId,
  question: { _tag: "Event", operationId: ref.id, seconds },
  program: Effect.flatMap(Events, (events) => eventOf(seconds === 0 ? events.get(ref) : events.wait(ref, seconds)))
})

export const memory = (ref: MemoryRef): Request => ({
  workspaceId: ref.workspaceId,
  question: { _tag: "Memory", memoryId: ref.id },
  program: Effect.flatMap(Memories, (memories) => memoriesOf(Effect.map(memories.get(ref), (found) => [found])))
})

export const list = (workspaceId: WorkspaceId, wanted: Wanted): Request => ({
  workspaceId,
  question: { _tag: "List", ...wanted },
  program: Effect.flatMap(Memories, (memories) => memoriesOf(memories.list({ workspaceId, ...wanted, before: null })))
})

/** For this word among others. */
export const search = (workspaceId: WorkspaceId, wanted: Wanted, word: string, others: string): Request => ({
  workspaceId,
  question: { _tag: "Search", word, ...wanted },
  program: Effect.flatMap(Memories, (memories) =>
    memoriesOf(Effect.map(memories.search({ workspaceId, ...wanted, query: `${word} ${others}` }), ({ hits }) =>
      hits.map(({ memory }) => memory))))
})

export const events = (workspaceId: WorkspaceId, scope: ScopeFilter, limit: number): Request => ({
  workspaceId,
  question: { _tag: "Events", scope, limit },
  program: Effect.flatMap(Events, (events) =>
    Effect.map(events.list({ workspaceId, status: null, type: null, scope, before: null, limit }), (found): Answer =>
      ({ _tag: "Events", events: found })))
})

export const balances = (workspaceId: WorkspaceId): Request => ({
  workspaceId,
  question: { _tag: "Usage" },
  program: Effect.flatMap(Usage, (usage) =>
    Effect.map(usage.balances(workspaceId), (balances): Answer => ({ _tag: "Balances", balances })))
})
