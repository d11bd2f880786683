/** A plan is made once, before anything depends on it, and what is stored is what it says. */
import canonicalize from "canonicalize"
import type { Invariant } from "../../domain/Invariant.ts"
import type { MemoryId, WorkspaceId } from "../../domain/Ids.ts"
import type { Memory } from "../../domain/Memory.ts"
import { type Plan, planDigest, type ResultRef, type Step } from "../../domain/Plan.ts"
import { scopeKeys } from "../../domain/Scope.ts"
import { alike, differences } from "./AskedOracles.ts"
import type { MemoryTrack } from "./MemoryTrack.ts"
import { fine } from "./Oracle.ts"
import { did, isLive, type OperationTrack } from "./OperationTrack.ts"

type OperationOracle = Invariant<OperationTrack>

/** A memory as it is committed now, and what the commit in hand did to it; null when there is none. */
export type MemoryOf = (workspaceId: WorkspaceId, id: MemoryId) => MemoryTrack | null

const planIsSetOnce: OperationOracle = {
  name: "plan-is-set-once",
  promise: "An operation has one plan in its life: the first that was frozen never changes and is never replaced.",
  check: ({ did: done, plan, written }) => {
    if ((done & did.froze) === 0 || plan === null) return fine
    return [canonicalize(plan) === canonicalize(written) ? "its plan was frozen again" : "it has another plan than before"]
  }
}

const planIsOfItsInput: OperationOracle = {
  name: "plan-is-of-its-input",
  promise: "A plan has the scope of its operation, and the metadata and the date of its input.",
  check: ({ did: done, input, operation, written }) => {
    if ((done & did.froze) === 0 || input === null || operation === null) return fine
    const { eventDate, metadata, scope } = written!
    const problems: Array<string> = []
    if (!alike(scope, operation.scope)) problems.push("it is of another scope")
    if (!alike(metadata, input.metadata)) problems.push("it has other metadata")
    if (eventDate !== input.eventDate) problems.push("it has another date")
    return problems
  }
}

const committedByPlan: OperationOracle = {
  name: "nothing-before-its-plan",
  promise: "An inferred add succeeds with the plan that was frozen in an earlier commit, and says which.",
  check: ({ ended, operation, plan }) => {
    if (!ended || operation!.kind !== "memory.infer" || operation!.state !== "succeeded") return fine
    if (plan === null) return ["it succeeded without a frozen plan"]
    const { model, offered, planDigest: named, stored } = operation!.evidence
    const problems: Array<string> = []
    if (named !== planDigest(plan)) problems.push("its evidence names another plan")
    if (model !== plan.model || offered !== plan.steps.length) problems.push("its evidence counts another plan")
    if (stored !== operation!.results.filter(({ change }) => change !== "none").length) {
      problems.push(`its evidence counts ${stored} stored`)
    }
    return problems
  }
}

const recordsEqualThePlan = (memoryOf: MemoryOf): OperationOracle => ({
  name: "records-equal-the-plan",
  promise: "Each step of the plan became its version, or was skipped for a reason that is true.",
  check: ({ ended, history, operation, plan, ref }) => {
    if (!ended || operation!.state !== "succeeded" || plan === null) return fine
    const { results } = operation!
    if (results.length !== plan.steps.length) return [`${results.length} results of ${plan.steps.length} steps`]
    return plan.steps.flatMap((step, place) => {
      const result = results[place]!
      const kept = step.id === null ? null : memoryOf(ref.workspaceId, step.id)
      const memory = kept?.memory ?? null
      const problem = wrongWith(step, result, memory)
      if (problem !== null) return [`step ${place}, ${step.change}: ${problem}`]
      if (result.change === "none" || !("text" in step) || memory?.deleted === true) return fine
      const made = history.find(({ memoryId }) => memoryId === step.id)
      if (made?.text !== step.text) return [`step ${place}, ${step.change}: it stored another text`]
      const said = memory?.version === result.version ? saidIn(step, plan, kept!.before) : null
      return said === null ? fine : differences(said, memory!).map((one) => `step ${place}, ${step.change}: ${one}`)
    })
  }
})

/** What a memory has to be after this step of this plan: what was said beside it stays as it is. */
const saidIn = (step: Step & { readonly text: string }, plan: Plan, before: Memory | null) => {
  if (step.change === "add") return { ...plan, text: step.text }
  return before === null ? null : { ...before, text: step.text }
}

/** What is wrong with the result of a step, given the memory that it was about. */
const wrongWith = (step: Step, result: ResultRef, memory: Memory | null): string | null => {
  if (result.id !== step.id) return "its result names another memory"
  if (step.change === "none") return result.change === "none" && result.reason === step.reason ? null : "it was carried out"
  if (step.change === "add") return result.change === "add" && result.version === 1 ? null : `it became ${result.change}`
  if (result.change === step.change) return result.version === step.expectedVersion + 1 ? null : `it made version ${result.version}`
  if (result.change !== "none") return `it became ${result.change}`
  if (result.reason === "target_gone") return memory === null || memory.deleted ? null : "its target is there"
  if (result.reason !== "target_changed") return `it was skipped: ${result.reason}`
  return memory !== null && memory.version !== step.expectedVersion ? null : "its target has not moved"
}

const keptWhileNeeded: OperationOracle = {
  name: "kept-while-needed",
  promise: "An input and a plan are removed by success, or after a failure by whoever wants that, and never come back.",
  check: ({ before, did: done, ended, operation }) => {
    const needed = isLive(operation) || (ended && operation!.state === "failed")
    const problems: Array<string> = []
    if (needed && (done & did.tookInput) !== 0) problems.push(`its input was removed while it is ${operation!.state}`)
    if (needed && (done & did.thawed) !== 0) problems.push(`its plan was removed while it is ${operation!.state}`)
    if (before !== null && (done & did.gaveInput) !== 0) problems.push("it was given an input after it was accepted")
    return problems
  }
}

const ownScopeOnly = (memoryOf: MemoryOf): OperationOracle => ({
  name: "own-scope-only",
  promise: "An operation makes versions of memories of exactly its own scope.",
  check: ({ did: done, history, operation, ref }) => {
    if ((done & did.recorded) === 0 || operation === null) return fine
    return history.flatMap(({ memoryId }) => {
      const memory = memoryOf(ref.workspaceId, memoryId)?.memory ?? null
      const own = memory === null || scopeKeys.every((key) => memory.scope[key] === operation.scope[key])
      return own ? fine : [`${memoryId} is of another scope`]
    })
  }
})

export const planOracles = (memoryOf: MemoryOf): ReadonlyArray<OperationOracle> => [
  planIsSetOnce,
  planIsOfItsInput,
  committedByPlan,
  recordsEqualThePlan(memoryOf),
  ownScopeOnly(memoryOf),
  keptWhileNeeded
]
