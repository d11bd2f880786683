/** Accepts commands, each once per idempotency key: the key, the operation and the money commit together, or nothing does. */
import { Context, Effect, Layer, Result } from "effect"
import { SecureRandom } from "effect/crypto"
import { type AddCommand, type DeleteCommand, type IdempotencyKey, keyHash, type UpdateCommand } from "../domain/Command.ts"
import { OperationId, type WorkspaceId } from "../domain/Ids.ts"
import type { OperationState } from "../domain/Operation.ts"
import {
  ComeBackLater,
  type IdempotencyConflict,
  type InsufficientCredit,
  type NotFound,
  type VersionConflict
} from "../domain/Refusal.ts"
import { acceptBatch, type Accepted, type Candidate } from "./Acceptance.ts"
import { again } from "./Again.ts"
import * as Batcher from "./Batcher.ts"
import { type Event, Events } from "./Events.ts"
import { Ledger } from "./Ledger.ts"
import { Queue } from "./Queue.ts"
import { Settings } from "./Settings.ts"
import { Store } from "./Store.ts"
import * as SyncWrites from "./SyncWrites.ts"
import { Transaction } from "./Transaction.ts"

/** What a caller holds after 202. It is never unknown afterwards. */
export interface Receipt {
  readonly eventId: OperationId
  readonly status: OperationState
  /** True when the key was used before for this very command: nothing new was accepted. */
  readonly replayed: boolean
  /** There when another command had done so already, and there was nothing to do: a retry of what is live. */
  readonly already?: true
  readonly createdAt: number
  readonly reserved: bigint
}

/** The answer to a write that is finished when it is accepted. */
export interface Completed {
  readonly event: Event
  readonly replayed: boolean
  /** There when another command had done so already, whose event this is: the deletion of what is deleted. */
  readonly already?: true
}

export class Commands extends Context.Service<Commands, {
  /** Accepts an inferred add. Concurrent callers share one group commit. */
  readonly infer: (
    workspaceId: WorkspaceId,
    key: IdempotencyKey,
    command: AddCommand
  ) => Effect.Effect<Receipt, IdempotencyConflict | InsufficientCredit | ComeBackLater>
  /** Stores each non-blank message as one memory, verbatim. */
  readonly add: (
    workspaceId: WorkspaceId,
    key: IdempotencyKey | null,
    command: AddCommand
  ) => Effect.Effect<Completed, IdempotencyConflict | InsufficientCredit | ComeBackLater>
  /** Replays are recognised before the version is checked. */
  readonly update: (
    workspaceId: WorkspaceId,
    key: IdempotencyKey | null,
    command: UpdateCommand
  ) => Effect.Effect<Completed, IdempotencyConflict | NotFound | VersionConflict | ComeBackLater>
  readonly delete: (
    workspaceId: WorkspaceId,
    key: IdempotencyKey | null,
    command: DeleteCommand
  ) => Effect.Effect<Completed, IdempotencyConflict | NotFound | VersionConflict | ComeBackLater>
}>()("indelible/services/Commands") {
  static readonly layer = Layer.effect(Commands, Effect.suspend(() => make))
}

const make = Effect.gen(function*() {
  const { memories, operations } = yield* Store
  const ledger = yield* Ledger
  const queue = yield* Queue
  const transaction = yield* Transaction
  const settings = yield* Settings
  const events = yield* Events
  const random = yield* SecureRandom.SecureRandom
  const ports = { memories, operations, ledger, transaction }

  const price = SyncWrites.prices(settings)
  const acceptAll = Effect.fn("Commands.acceptAll")(function*(candidates: ReadonlyArray<Candidate>) {
    const answers = yield* again(acceptBatch(ports, candidates))
    if (answers.some((answer) => Result.isSuccess(answer) && answer.success._tag === "Accepted")) {
      yield* queue.send([{ _tag: "Work" }])
    }
    return answers
  })
  const accepts = yield* Batcher.make({
    maxSize: settings.acceptBatchSize,
    capacity: settings.acceptQueueSize,
    loops: 1,
    run: acceptAll
  })
  const newId = Effect.map(random.uuidV7(), OperationId.make)

  const receipt = Effect.fnUntraced(function*(workspaceId: WorkspaceId, mine: OperationId, accepted: Accepted) {
    if (accepted._tag === "Accepted") {
      const { operation, reserved } = accepted
      return { eventId: operation.id, status: operation.state, replayed: false, createdAt: operation.createdAt, reserved }
    }
    const event = yield* events.get({ workspaceId, id: accepted.operationId }).pipe(Effect.catchTag("NotFound", Effect.die))
    return {
      eventId: event.id,
      status: event.status,
      // Our own first try may have committed without our hearing of it.
      replayed: accepted.operationId !== mine,
      createdAt: event.createdAt,
      reserved: event.acceptReserved
    }
  })

  const infer = Effect.fn("Commands.infer")(
    function*(workspaceId: WorkspaceId, key: IdempotencyKey, command: AddCommand) {
      const operationId = yield* newId
      const candidate: Candidate = {
        workspaceId,
        operationId,
        keyHash: keyHash(key),
        command,
        evidence: SyncWrites.evidenceOf(command),
        price: price["infer-add"]
      }
      // Replays go through the group commit too: one look for all keys of a batch costs less than a look for each.
      const answer = yield* accepts.submit(candidate)
      return yield* receipt(workspaceId, operationId, yield* Effect.fromResult(answer))
    },
    Effect.catchTags({
      Full: () => new ComeBackLater({ reason: "overloaded" }),
      OutcomeUnknown: () => new ComeBackLater({ reason: "outcome_unknown" })
    })
  )

  return Commands.of({ infer, ...SyncWrites.make({ ...ports, queue, events, newId, price: price["verbatim-add"] }) })
})
