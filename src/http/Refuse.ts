/** Turns what services refuse into what callers see. The only place that knows both. */
import { Effect } from "effect"
import type {
  ComeBackLater,
  IdempotencyConflict,
  InputGone,
  InsufficientCredit,
  NotFound,
  VersionConflict,
  WrongState
} from "../domain/Refusal.ts"
import { CurrentRequest } from "./CurrentRequest.ts"
import * as Problems from "./Problems.ts"
import { credits } from "./Wire.ts"

const absent: Record<NotFound["what"], string> = {
  memory: "There is no such memory in this workspace.",
  event: "There is no such event in this workspace.",
  workspace: "There is no such workspace.",
  api_key: "There is no such API key in this workspace."
}

const unavailable = {
  overloaded: (request_id: string) =>
    new Problems.Overloaded({
      request_id,
      detail: "Too much is waiting already, and nothing was accepted. Repeat the same request a little later."
    }),
  outcome_unknown: (request_id: string) =>
    new Problems.OutcomeUnknownProblem({
      request_id,
      detail: "Storage did not answer, so that the outcome is not known. Repeat the same request, with the same "
        + "Idempotency-Key if it writes: it is never carried out twice."
    }),
  shutting_down: (request_id: string) =>
    new Problems.ShuttingDown({
      request_id,
      detail: "This process is shutting down. Repeat the same request, with the same Idempotency-Key if it writes."
    })
}

const problems = {
  IdempotencyConflict: (refusal: IdempotencyConflict, request_id: string) =>
    new Problems.IdempotencyConflictProblem({
      request_id,
      event_id: refusal.operationId,
      detail: "This Idempotency-Key was used for another command: event_id names it. Find out why the key was used "
        + "again; a new key makes a new write."
    }),
  InsufficientCredit: (refusal: InsufficientCredit, request_id: string) =>
    new Problems.InsufficientCreditProblem({
      request_id,
      required_credits: credits(refusal.required),
      available_credits: credits(refusal.available),
      detail: "The workspace has not enough credit. Nothing was accepted and the key is still free: top up, then "
        + "repeat the same request."
    }),
  NotFound: (refusal: NotFound, request_id: string) =>
    new Problems.NotFoundProblem({ request_id, detail: absent[refusal.what] }),
  VersionConflict: (refusal: VersionConflict, request_id: string) =>
    new Problems.VersionConflictProblem({
      request_id,
      current_version: refusal.current,
      detail: "The memory has changed since the version in If-Match. Read it again and decide again."
    }),
  WrongState: (refusal: WrongState, request_id: string) =>
    new Problems.WrongStateProblem({
      request_id,
      state: refusal.state,
      detail: "The operation is in a state in which this cannot be done: see state, and read the event."
    }),
  InputGone: (_: InputGone, request_id: string) =>
    new Problems.InputGoneProblem({
      request_id,
      detail: "The input of this operation was removed, so that it cannot run again. Send it as a new command with a "
        + "new Idempotency-Key."
    }),
  ComeBackLater: (refusal: ComeBackLater, request_id: string) => unavailable[refusal.reason](request_id)
}

type Refusal = Parameters<(typeof problems)[keyof typeof problems]>[0]

/** The problem that a refusal is answered with. */
export type ProblemOf<E extends Refusal> = E extends { readonly _tag: infer Tag extends keyof typeof problems }
  ? ReturnType<(typeof problems)[Tag]>
  : never

const problemOf = <E extends Refusal>(refusal: E, requestId: string): ProblemOf<E> => {
  // The table has one entry for each tag, which the type of a lookup by a union of tags cannot say.
  const make = problems[refusal._tag] as (refusal: Refusal, requestId: string) => unknown
  return make(refusal, requestId) as ProblemOf<E>
}

/** Answers the refusals of a service with their problems. */
export const refuse = <A, E extends Refusal, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, ProblemOf<E>, R> =>
  Effect.catch(self, (refusal) =>
    Effect.flatMap(CurrentRequest, ({ id }) => Effect.fail(problemOf(refusal, id))))

/** Fails with the problem that `make` builds for the request in hand. */
export const fail = <P>(make: (requestId: string) => P): Effect.Effect<never, P> =>
  Effect.flatMap(CurrentRequest, ({ id }) => Effect.fail(make(id)))
