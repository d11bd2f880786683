/** Accepts commands, each once per idempotency key: the key, the operation and the money commit together, or nothing does. */
import { Context, type Effect } from "effect"
import type { AddCommand, DeleteCommand, IdempotencyKey, UpdateCommand } from "../domain/Command.ts"
import type { OperationId, WorkspaceId } from "../domain/Ids.ts"
import type { OperationState } from "../domain/Operation.ts"
import type { ComeBackLater, IdempotencyConflict, InsufficientCredit, NotFound, VersionConflict } from "../domain/Refusal.ts"
import type { Event } from "./Events.ts"

/** What a caller holds after 202. It is never unknown afterwards. */
export interface Receipt {
  readonly eventId: OperationId
  readonly status: OperationState
  /** True when the key was used before for this very command: nothing new was accepted. */
  readonly replayed: boolean
  readonly createdAt: number
  readonly reserved: bigint
}

/** The answer to a write that is finished when it is accepted. */
export interface Completed {
  readonly event: Event
  readonly replayed: boolean
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
}>()("indelible/services/Commands") {}
