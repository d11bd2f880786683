/**
 * Hints that work exists. Losing, repeating, delaying or reordering every one of them changes latency, never the
 * outcome: polling and repair find everything that a hint would have announced.
 */
import { Context, type Effect, type Scope } from "effect"
import type { OperationRef } from "../domain/Ids.ts"

export type WakeUp =
  /** Some operation became claimable. */
  | { readonly _tag: "Work" }
  /** Some memory version awaits projection. */
  | { readonly _tag: "Projection" }
  /** These operations changed state: whoever waits for them should look. */
  | { readonly _tag: "Changed"; readonly operations: ReadonlyArray<OperationRef> }

export class Queue extends Context.Service<Queue, {
  /** Sends hints, after the commit that made them true. Never fails and never waits for a delivery. */
  readonly send: (wakeUps: ReadonlyArray<WakeUp>) => Effect.Effect<void>
  /** Subscribes until the scope closes. The inner effect waits for at least one hint and returns all that came since. */
  readonly subscribe: Effect.Effect<Effect.Effect<ReadonlyArray<WakeUp>>, never, Scope.Scope>
}>()("indelible/services/Queue") {}
