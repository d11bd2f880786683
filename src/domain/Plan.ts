/**
 * The frozen list of changes that one operation makes. Built once from what the model said, with record ids derived from
 * (operation, index) and the versions it expects; applied as often as needed, always with the same effect.
 */
import canonicalize from "canonicalize"
import { Schema } from "effect"
import { derivedMemoryId, digest } from "./Digest.ts"
import { MemoryId, type OperationId, type Sha256Hex, Text } from "./Ids.ts"
import { type Memory, memoryMaxLength, Metadata } from "./Memory.ts"
import { ScopeFilter } from "./Scope.ts"

/** The most facts one extraction may offer; more is `invalid_output`. */
export const planMaxSteps = 200

/** Why a fact was not stored. */
export const SkipReason = Schema.Literals([
  "duplicate",
  "target_gone",
  "target_changed",
  "target_unknown",
  "empty",
  "too_long",
  "model_declined"
])
export type SkipReason = typeof SkipReason.Type

/** What the model offered: a position in the list it was shown, never an id. */
export const Fact = Schema.Struct({
  change: Schema.Literals(["add", "update", "delete", "none"]),
  text: Schema.NullOr(Schema.String),
  /** Zero-based position in the list of related memories that the model was shown. */
  target: Schema.NullOr(Schema.Int)
})
export type Fact = typeof Fact.Type

export const Step = Schema.Union([
  Schema.Struct({ change: Schema.Literal("add"), id: MemoryId, text: Text }),
  Schema.Struct({ change: Schema.Literal("update"), id: MemoryId, expectedVersion: Schema.Int, text: Text }),
  Schema.Struct({ change: Schema.Literal("delete"), id: MemoryId, expectedVersion: Schema.Int }),
  Schema.Struct({ change: Schema.Literal("none"), id: Schema.NullOr(MemoryId), reason: SkipReason })
])
export type Step = typeof Step.Type

export const Plan = Schema.Struct({
  version: Schema.Literal(1),
  steps: Schema.Array(Step),
  scope: ScopeFilter,
  metadata: Metadata,
  eventDate: Schema.NullOr(Schema.String),
  /** The model that was asked, by its configured name. */
  model: Schema.String
})
export type Plan = typeof Plan.Type

/** One entry of an event: what became of one fact. Holds a reference, never a text. */
export const ResultRef = Schema.Struct({
  id: Schema.NullOr(MemoryId),
  change: Schema.Literals(["add", "update", "delete", "none"]),
  version: Schema.NullOr(Schema.Int),
  reason: Schema.optionalKey(SkipReason)
})
export type ResultRef = typeof ResultRef.Type

/** A memory as the model saw it. */
export interface Related {
  readonly id: MemoryId
  readonly version: number
  readonly text: string
}

export interface PlanInput {
  readonly operationId: OperationId
  readonly facts: ReadonlyArray<Fact>
  /** In the order in which the model was shown them. */
  readonly related: ReadonlyArray<Related>
  readonly scope: ScopeFilter
  readonly metadata: Metadata
  readonly eventDate: string | null
  readonly model: string
}

/** Turns facts into steps: positions into ids with expected versions, repeats and unusable facts into reasons. */
export const buildPlan = (input: PlanInput): Plan => {
  const known = new Map(input.related.map((memory) => [memory.text, memory.id]))
  const changed = new Set<MemoryId>()
  // What a target said is free again once it says something else: a later fact may say it anew.
  const change = (target: Related) => {
    changed.add(target.id)
    if (known.get(target.text) === target.id) known.delete(target.text)
  }
  const stepFor = (fact: Fact, index: number): Step => {
    const target = fact.target === null ? undefined : input.related[fact.target]
    if (fact.change === "none") return { change: "none", id: target?.id ?? null, reason: "model_declined" }
    if (fact.change !== "add") {
      if (target === undefined) return { change: "none", id: null, reason: "target_unknown" }
      if (changed.has(target.id)) return { change: "none", id: target.id, reason: "duplicate" }
    }
    if (fact.change === "delete") {
      change(target!)
      return { change: "delete", id: target!.id, expectedVersion: target!.version }
    }
    const text = (fact.text ?? "").trim()
    if (text === "" || text.includes("\u0000") || !text.isWellFormed()) {
      return { change: "none", id: null, reason: "empty" }
    }
    if (text.length > memoryMaxLength) return { change: "none", id: null, reason: "too_long" }
    const twin = known.get(text)
    if (twin !== undefined) return { change: "none", id: twin, reason: "duplicate" }
    if (fact.change === "update") {
      change(target!)
      known.set(text, target!.id)
      return { change: "update", id: target!.id, expectedVersion: target!.version, text }
    }
    const id = derivedMemoryId(input.operationId, index)
    known.set(text, id)
    return { change: "add", id, text }
  }
  return {
    version: 1,
    steps: input.facts.map(stepFor),
    scope: input.scope,
    metadata: input.metadata,
    eventDate: input.eventDate,
    model: input.model
  }
}

/** The memories that applying a plan reads and may change: locked before it is applied. */
export const planTargets = (plan: Plan): ReadonlyArray<MemoryId> =>
  plan.steps.flatMap((step) => step.change === "update" || step.change === "delete" ? [step.id] : [])

/** A version to be written: the memory as it is after the change. */
export interface MemoryWrite {
  readonly change: "add" | "update" | "delete"
  readonly memory: Memory
}

export interface Applied {
  readonly writes: ReadonlyArray<MemoryWrite>
  readonly results: ReadonlyArray<ResultRef>
}

/** Where a plan is applied: the operation that owns it, the time, and the live memories that it targets, locked. */
export interface ApplyContext {
  readonly operation: { readonly workspaceId: Memory["workspaceId"]; readonly id: OperationId }
  readonly now: Memory["createdAt"]
  readonly current: ReadonlyMap<MemoryId, Memory>
}

/** Applies a plan by version: a target that moved or vanished is skipped with a reason, and the rest applies. */
export const applyPlan = (plan: Plan, { operation, now, current }: ApplyContext): Applied => {
  const live = new Map(current)
  const writes: Array<MemoryWrite> = []
  const results: Array<ResultRef> = []
  for (const step of plan.steps) {
    if (step.change === "none") {
      results.push({ id: step.id, change: "none", version: null, reason: step.reason })
      continue
    }
    if (step.change === "add") {
      writes.push({
        change: "add",
        memory: {
          workspaceId: operation.workspaceId,
          id: step.id,
          version: 1,
          text: step.text,
          scope: plan.scope,
          metadata: plan.metadata,
          eventDate: plan.eventDate,
          operationId: operation.id,
          createdAt: now,
          updatedAt: now,
          deleted: false
        }
      })
      results.push({ id: step.id, change: "add", version: 1 })
      continue
    }
    const memory = live.get(step.id)
    if (memory === undefined || memory.deleted) {
      results.push({ id: step.id, change: "none", version: null, reason: "target_gone" })
    } else if (memory.version !== step.expectedVersion) {
      results.push({ id: step.id, change: "none", version: null, reason: "target_changed" })
    } else {
      const text = step.change === "update" ? step.text : null
      const next = nextVersion(memory, { text, operationId: operation.id, now })
      live.set(step.id, next)
      writes.push({ change: step.change, memory: next })
      results.push({ id: step.id, change: step.change, version: next.version })
    }
  }
  return { writes, results }
}

/** The memory one version on. A null text deletes it, and with it everything that the caller said of it. */
export const nextVersion = (
  memory: Memory,
  change: { readonly text: string | null; readonly operationId: OperationId; readonly now: Memory["updatedAt"] }
): Memory => ({
  ...memory,
  version: memory.version + 1,
  text: change.text,
  metadata: change.text === null ? {} : memory.metadata,
  eventDate: change.text === null ? null : memory.eventDate,
  operationId: change.operationId,
  updatedAt: change.now,
  deleted: change.text === null
})

/** Names a plan without keeping it: the digest that evidence holds after the plan is gone, however it was stored. */
export const planDigest = (plan: Plan): Sha256Hex => digest("indelible/plan/v1", canonicalize(plan) ?? "")
