/** What a caller may do to an operation that exists: try it again with a new authorization, cancel it, purge its input. */
import { Context, type Effect } from "effect"
import type { IdempotencyKey } from "../domain/Command.ts"
import type { OperationRef } from "../domain/Ids.ts"
import type { ComeBackLater, IdempotencyConflict, InputGone, InsufficientCredit, NotFound, WrongState } from "../domain/Refusal.ts"
import type { Receipt } from "./Commands.ts"
import type { Event } from "./Events.ts"

export class Retries extends Context.Service<Retries, {
  /** Reserves anew and lets a failed operation run again, behind what is in its lane. A live operation is left alone. */
  readonly retry: (
    ref: OperationRef,
    key: IdempotencyKey | null
  ) => Effect.Effect<Receipt, NotFound | WrongState | InputGone | InsufficientCredit | IdempotencyConflict | ComeBackLater>
  /** Ends a live operation with a refund. Cancelling a cancelled operation changes nothing. */
  readonly cancel: (ref: OperationRef) => Effect.Effect<Event, NotFound | WrongState | ComeBackLater>
  /** Removes the input of a failed operation for good. A live one has to be cancelled first. */
  readonly purgeInput: (ref: OperationRef) => Effect.Effect<Event, NotFound | WrongState | ComeBackLater>
}>()("indelible/services/Retries") {}
