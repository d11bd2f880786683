/** Waits for a terminal event on behalf of a caller, and stops waiting when the process is about to end. */
import { Effect } from "effect"
import type { OperationRef } from "../domain/Ids.ts"
import { isTerminal, type OperationState } from "../domain/Operation.ts"
import { Events } from "../services/Events.ts"
import { Drain } from "./Drain.ts"

export const make = Effect.gen(function*() {
  const events = yield* Events
  const drain = yield* Drain

  /** The event once it is terminal, or as it is after `seconds`, or when the process drains. */
  const event = (ref: OperationRef, seconds: number) =>
    seconds === 0 || drain.isDraining()
      ? events.get(ref)
      : Effect.raceFirst(events.wait(ref, seconds), Effect.andThen(drain.begun, events.get(ref)))

  /** The status of what was just accepted. A wait that fails tells nothing new: it stays accepted. */
  const status = (ref: OperationRef, known: OperationState, seconds: number): Effect.Effect<OperationState> =>
    isTerminal(known)
      ? Effect.succeed(known)
      : event(ref, seconds).pipe(Effect.map(({ status }) => status), Effect.orElseSucceed(() => known))

  return { event, status }
})
