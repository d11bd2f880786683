/**
 * The writes that are finished when they are accepted: verbatim adds, edits and deletions. Each is an operation that
 * is born succeeded, in the one transaction that also claims its key, writes its records and charges.
 */
import { Effect, Result } from "effect"
import {
  type AddCommand,
  type Command,
  commandHash,
  commandVersion,
  type DeleteCommand,
  type IdempotencyKey,
  keyHash,
  type UpdateCommand
} from "../domain/Command.ts"
import { derivedMemoryId } from "../domain/Digest.ts"
import { type MemoryRef, type OperationId, type Sha256Hex, Timestamp, type WorkspaceId } from "../domain/Ids.ts"
import * as Money from "../domain/Ledger.ts"
import type { Memory } from "../domain/Memory.ts"
import type { Evidence, Operation } from "../domain/Operation.ts"
import { type MemoryWrite, nextVersion } from "../domain/Plan.ts"
import { type IdempotencyConflict, InsufficientCredit, NotFound, VersionConflict } from "../domain/Refusal.ts"
import { laneOf, type ScopeFilter } from "../domain/Scope.ts"
import { blankOperation, replay } from "./Acceptance.ts"
import { againOrLater } from "./Again.ts"
import type { Completed } from "./Commands.ts"
import type { Events } from "./Events.ts"
import type { Ledger } from "./Ledger.ts"
import type { MemoryStore } from "./MemoryStore.ts"
import type { KeyRow, OperationStore } from "./OperationStore.ts"
import type { Queue } from "./Queue.ts"
import type { SettingsShape } from "./Settings.ts"
import type { Transaction } from "./Transaction.ts"

export interface Ports {
  readonly operations: OperationStore
  readonly memories: MemoryStore
  readonly ledger: Ledger["Service"]
  readonly transaction: Transaction["Service"]
  readonly queue: Queue["Service"]
  readonly events: Events["Service"]
  readonly newId: Effect.Effect<OperationId>
  readonly price: Money.Price
}

/** The price list in force. Whole credits, small enough to be numbers. */
export const prices = (settings: SettingsShape): Record<Money.Price["policy"], Money.Price> => ({
  "infer-add": { policy: "infer-add", stored: Number(settings.prices.inferAdd), noMemory: Number(settings.prices.noMemory) },
  "verbatim-add": { policy: "verbatim-add", stored: Number(settings.prices.verbatimAdd), noMemory: 0 }
})

const encoder = new TextEncoder()

/** What is kept to explain a command that is about to be accepted. */
export const evidenceOf = (command: Command): Evidence => {
  const texts = "messages" in command
    ? command.messages.map((message) => message.content)
    : "text" in command && command.text !== null
    ? [command.text]
    : []
  return {
    commandVersion,
    commandHash: commandHash(command)!,
    messages: texts.length,
    inputBytes: texts.reduce((sum, text) => sum + encoder.encode(text).length, 0),
    model: null,
    planDigest: null,
    offered: 0,
    stored: 0
  }
}

/** What a write turned out to be: new, or the operation that its key, its first try, or another write had made already. */
type Written = Result.Result<Pick<Completed, "already" | "replayed"> & { readonly id: OperationId }, IdempotencyConflict>

interface Keyed {
  readonly workspaceId: WorkspaceId
  readonly id: OperationId
  readonly keyHash: Sha256Hex | null
  readonly command: Command
  readonly evidence: Evidence
}

export const make = (ports: Ports) => {
  const { events, ledger, memories, newId, operations, queue, transaction } = ports

  const keyed = (workspaceId: WorkspaceId, key: IdempotencyKey | null, command: Command) =>
    Effect.map(newId, (id): Keyed => ({
      workspaceId,
      id,
      keyHash: key === null ? null : keyHash(key),
      command,
      evidence: evidenceOf(command)
    }))

  const keyRow = (write: Keyed, operationId = write.id): KeyRow | null =>
    write.keyHash === null ? null : {
      workspaceId: write.workspaceId,
      keyHash: write.keyHash,
      commandVersion,
      commandHash: write.evidence.commandHash,
      operationId
    }

  /** With the account locked: the operation that this write is a repeat of, if it is one. */
  const earlier = Effect.fnUntraced(function*(write: Keyed) {
    const mine = yield* operations.get({ workspaceId: write.workspaceId, id: write.id })
    if (mine !== null) return Result.succeed({ id: write.id, replayed: false }) as Written
    if (write.keyHash === null) return null
    const stored = yield* operations.findKeys([{ workspaceId: write.workspaceId, keyHash: write.keyHash }])
    return stored.length === 0
      ? null
      : Result.map(replay(stored[0]!, write.command), (id) => ({ id, replayed: id !== write.id })) as Written
  })

  /** Inserts the operation that is born succeeded, writes its records, and says so. */
  const complete = Effect.fnUntraced(function*(
    write: Keyed,
    scope: ScopeFilter,
    writes: ReadonlyArray<MemoryWrite>,
    authorizationNo: number | null,
    now: number
  ) {
    const operation: Operation = {
      ...blankOperation(now),
      workspaceId: write.workspaceId,
      id: write.id,
      kind: write.command.kind as Operation["kind"],
      state: "succeeded",
      scope,
      lane: laneOf(scope),
      authorizationNo,
      outcome: "stored",
      results: writes.map(({ change, memory }) => ({ id: memory.id, change, version: memory.version })),
      evidence: { ...write.evidence, offered: writes.length, stored: writes.length },
      completedAt: Timestamp.make(now)
    }
    yield* operations.insert([{ operation, key: keyRow(write), input: null }])
    const written = yield* memories.write(writes)
    if (written.length !== writes.length) return yield* Effect.die("a write met a record that its locks did not show")
    yield* operations.announce([operation])
  })

  const answer = Effect.fnUntraced(function*(workspaceId: WorkspaceId, written: Written) {
    const { id, ...how } = yield* Effect.fromResult(written)
    if (!how.replayed && how.already !== true) {
      yield* queue.send([{ _tag: "Projection" }, { _tag: "Changed", operations: [{ workspaceId, id }] }])
    }
    const event = yield* events.get({ workspaceId, id }).pipe(Effect.catchTag("NotFound", Effect.die))
    return { event, ...how } satisfies Completed
  })

  const add = Effect.fn("Commands.add")(
    function*(workspaceId: WorkspaceId, key: IdempotencyKey | null, command: AddCommand) {
      const write = yield* keyed(workspaceId, key, command)
      const written = yield* againOrLater(transaction.run(Effect.gen(function*() {
        const [account] = yield* ledger.lock([workspaceId])
        const repeat = yield* earlier(write)
        if (repeat !== null) return repeat
        const grant = Money.reserve({
          workspaceId,
          operationId: write.id,
          no: 1,
          reserved: BigInt(ports.price.stored),
          price: ports.price
        })
        const { reserved } = grant.authorization
        if (account === undefined || !Money.canReserve(account.balances, reserved)) {
          const available = account?.balances.available ?? 0n
          return yield* new InsufficientCredit({ required: reserved, available })
        }
        const now = yield* operations.now
        yield* complete(write, command.scope, verbatim(workspaceId, write.id, command, now), 1, now)
        const end = Money.charge(grant.authorization, reserved)
        yield* ledger.post([end.authorization], [...grant.transfers, ...end.transfers])
        return Result.succeed({ id: write.id, replayed: false }) as Written
      })))
      return yield* answer(workspaceId, written)
    }
  )

  /** An edit or a deletion: replays first, then the version, then the change. */
  const change = Effect.fnUntraced(function*(
    workspaceId: WorkspaceId,
    key: IdempotencyKey | null,
    command: UpdateCommand | DeleteCommand
  ) {
    const write = yield* keyed(workspaceId, key, command)
    const ref: MemoryRef = { workspaceId, id: command.memoryId }
    const written = yield* againOrLater(transaction.run(Effect.gen(function*() {
      const [memory] = yield* memories.lock([ref])
      yield* ledger.lock([workspaceId])
      const repeat = yield* earlier(write)
      if (repeat !== null) return repeat
      if (memory === undefined) return yield* new NotFound({ what: "memory" })
      if (memory.deleted) {
        if (command.kind === "memory.update") return yield* new NotFound({ what: "memory" })
        // Deleting what is deleted is done already, by the operation that did it.
        const row = keyRow(write, memory.operationId)
        if (row !== null) yield* operations.insertKeys([row])
        return Result.succeed({ id: memory.operationId, replayed: false, already: true }) as Written
      }
      if (command.expectedVersion !== null && command.expectedVersion !== memory.version) {
        return yield* new VersionConflict({ current: memory.version })
      }
      const now = yield* operations.now
      yield* complete(write, memory.scope, [changed(memory, command, write.id, now)], null, now)
      return Result.succeed({ id: write.id, replayed: false }) as Written
    })))
    return yield* answer(workspaceId, written)
  })

  return {
    add,
    update: Effect.fn("Commands.update")(
      (workspaceId: WorkspaceId, key: IdempotencyKey | null, command: UpdateCommand) => change(workspaceId, key, command)
    ),
    delete: Effect.fn("Commands.delete")(
      (workspaceId: WorkspaceId, key: IdempotencyKey | null, command: DeleteCommand) => change(workspaceId, key, command)
    )
  }
}

/** One memory for each message that is not blank, exactly as sent. */
const verbatim = (
  workspaceId: WorkspaceId,
  operationId: OperationId,
  command: AddCommand,
  now: number
): ReadonlyArray<MemoryWrite> =>
  command.messages.filter((message) => message.content.trim() !== "").map((message, index) => ({
    change: "add",
    memory: {
      workspaceId,
      id: derivedMemoryId(operationId, index),
      version: 1,
      text: message.content,
      scope: command.scope,
      metadata: command.metadata,
      eventDate: command.eventDate,
      operationId,
      createdAt: Timestamp.make(now),
      updatedAt: Timestamp.make(now),
      deleted: false
    }
  }))

const changed = (
  memory: Memory,
  command: UpdateCommand | DeleteCommand,
  operationId: OperationId,
  now: number
): MemoryWrite => {
  const at = Timestamp.make(now)
  if (command.kind === "memory.delete") {
    return { change: "delete", memory: nextVersion(memory, { text: null, operationId, now: at }) }
  }
  const next = nextVersion(memory, { text: command.text ?? memory.text, operationId, now: at })
  return { change: "update", memory: command.metadata === null ? next : { ...next, metadata: command.metadata } }
}
