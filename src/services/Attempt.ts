/**
 * One attempt: from an input, or a plan that an earlier attempt froze, to a committed end. Holds no connection while
 * the provider thinks, and never asks it again once a plan exists.
 */
import { Context, Effect, Layer, Result } from "effect"
import type { InferInput } from "../domain/Command.ts"
import type { Operation } from "../domain/Operation.ts"
import { buildPlan, type Plan, planMaxSteps, type Related } from "../domain/Plan.ts"
import { scopeKeys } from "../domain/Scope.ts"
import { beginning } from "../domain/Text.ts"
import { untilKnown } from "./Again.ts"
import { type Claimed, leaseOf } from "./Claims.ts"
import { Provider, ProviderFailure } from "./Provider.ts"
import { Settings } from "./Settings.ts"
import { type Ended, type Ending, Settlement } from "./Settlement.ts"
import { Store } from "./Store.ts"
import { VectorIndex } from "./VectorIndex.ts"

export class Attempt extends Context.Service<Attempt, {
  /**
   * Runs until the operation is ended, postponed, or found to be somebody else's. While the database does not answer it
   * goes on asking: whoever holds the lease interrupts it when the lease is gone.
   */
  readonly run: (claimed: Claimed) => Effect.Effect<Ended>
}>()("indelible/services/Attempt") {
  static readonly layer = Layer.effect(Attempt, Effect.suspend(() => make))
}

const make = Effect.gen(function*() {
  const { memories } = yield* Store
  const index = yield* VectorIndex
  const provider = yield* Provider
  const settlement = yield* Settlement
  const end = (ending: Ending) => untilKnown(settlement.end(ending))
  const settings = yield* Settings

  /** The memories nearest to what was said. The model can do without them, so their absence fails nothing. */
  const nearest = Effect.fnUntraced(function*(operation: Operation, input: InferInput) {
    const said = input.messages.filter((message) => message.role === "user").map((message) => message.content).join("\n")
    const [vector] = yield* provider.embed([beginning(said, 2_000)])
    if (vector === undefined) return []
    const { workspaceId, scope } = operation
    const hits = yield* index.search({ workspaceId, scope, vector, limit: settings.relatedLimit })
    const found = yield* untilKnown(memories.get(hits.map(({ id }) => ({ workspaceId, id }))))
    const byId = new Map(found.map((memory) => [memory.id, memory]))
    return hits.flatMap(({ id }) => byId.get(id) ?? [])
  }, Effect.catchTags({
    ProviderFailure: () => Effect.succeed([]),
    VectorIndexFailure: () => Effect.succeed([])
  }))

  /** Nearest first, then newest: the newest may not be in the index yet. Only memories of exactly this scope. */
  const related = Effect.fnUntraced(function*(operation: Operation, input: InferInput) {
    const near = yield* nearest(operation, input)
    const fresh = yield* untilKnown(memories.recent(operation.workspaceId, operation.scope, settings.relatedLimit))
    const seen = new Map<string, Related>()
    for (const memory of [...near, ...fresh]) {
      const sameScope = scopeKeys.every((key) => memory.scope[key] === operation.scope[key])
      if (sameScope && memory.text !== null && !seen.has(memory.id) && seen.size < settings.relatedLimit) {
        seen.set(memory.id, { id: memory.id, version: memory.version, text: memory.text })
      }
    }
    return [...seen.values()]
  })

  const makePlan = Effect.fnUntraced(function*(operation: Operation, input: InferInput) {
    const shown = yield* related(operation, input)
    const facts = yield* provider.extract({
      messages: input.messages,
      related: shown.map(({ text }) => ({ text })),
      instructions: input.instructions,
      eventDate: input.eventDate
    })
    if (facts.length > planMaxSteps) {
      return yield* new ProviderFailure({ failure: "invalid_output", retryAfterMs: null })
    }
    return buildPlan({
      operationId: operation.id,
      facts,
      related: shown,
      scope: operation.scope,
      metadata: input.metadata,
      eventDate: input.eventDate,
      model: provider.model
    })
  })

  /** The plan in force: the frozen one if there is one, else a new one, frozen before anything depends on it. */
  const frozenPlan = Effect.fnUntraced(function*({ operation, work }: Claimed) {
    if (work.plan !== null) return Result.succeed(work.plan) as Result.Result<Plan, "lease_lost">
    const plan = yield* makePlan(operation, work.input!).pipe(
      Effect.timeoutOrElse({
        duration: settings.attemptBound,
        orElse: () => new ProviderFailure({ failure: "provider_timeout", retryAfterMs: null })
      })
    )
    return yield* untilKnown(settlement.freeze(leaseOf(operation), plan))
  })

  const run = Effect.fn("Attempt.run")(function*(claimed: Claimed) {
    const { operation, work } = claimed
    const lease = leaseOf(operation)
    if (work.plan === null && work.input === null) {
      return yield* end({ _tag: "Fail", lease, lane: operation, failure: "input_expired", retryAfterMs: null })
    }
    return yield* frozenPlan(claimed).pipe(
      Effect.flatMap((plan): Effect.Effect<Ended> =>
        Result.isSuccess(plan)
          ? end({ _tag: "Commit", lease, lane: operation, plan: plan.success })
          : Effect.succeed(Result.fail(plan.failure))
      ),
      Effect.tapErrorTag("ProviderFailure", ({ failure }) =>
        failure === "provider_rejected"
          ? Effect.logError("The provider refuses our requests: its configuration needs the operator")
          : Effect.void),
      Effect.catchTag("ProviderFailure", ({ failure, retryAfterMs }) =>
        end({ _tag: "Fail", lease, lane: operation, failure, retryAfterMs })
      )
    )
  })

  return Attempt.of({ run })
})
