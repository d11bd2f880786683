/** What a connection does when it is asked for something: a program of the service, or a transaction of single calls. */
import { Effect, Result } from "effect"
import { keyHash } from "../../src/domain/Command.ts"
import { refKey } from "../../src/domain/Ids.ts"
import type { Lease } from "../../src/domain/Operation.ts"
import { buildPlan, type Plan } from "../../src/domain/Plan.ts"
import { acceptBatch } from "../../src/services/Acceptance.ts"
import { defaultSettings } from "../../src/services/Settings.ts"
import type { Ending } from "../../src/services/Settlement.ts"
import { evidenceOf, prices } from "../../src/services/SyncWrites.ts"
import { transaction } from "./calls.ts"
import type { Hands } from "./hands.ts"
import * as Names from "./names.ts"
import type { Act, Change, Op, Program } from "./sequence.ts"

type Part<Do extends Act["do"]> = Extract<Act, { readonly do: Do }>

const price = prices(defaultSettings)["infer-add"]
/** Longer than any sequence, in milliseconds. */
const long = 3_600_000

export const script = (hands: Hands, act: Program): Effect.Effect<unknown, unknown> => {
  const { claims, events, ledger, owner, repair, retries } = hands
  switch (act.do) {
    case "accept":
      return accept(hands, act)
    case "claim":
      return Effect.map(claims[act.lease].claim(owner, act.limit), (claimed) => claimed.map(({ operation }) => operation))
    case "take over":
      return Effect.map(claims.long.takeOver(owner, act.limit), (claimed) => claimed.map(({ operation }) => operation))
    case "renew":
      return Effect.flatMap(leases(hands, act.ops, act.stale), claims.long.renew)
    case "freeze":
      return freeze(hands, act)
    case "commit":
      return commit(hands, act)
    case "end":
      return end(hands, act)
    case "retry":
      return retries.retry(Names.operationRef(act.op), act.key === null ? null : Names.key(act.key))
    case "purge":
      return retries.purgeInput(Names.operationRef(act.op))
    case "sweep":
      return repair.sweep
    case "grant":
      return ledger.grant(Names.workspaceId(act.workspace), BigInt(act.amount), act.reference)
    case "add":
    case "edit":
    case "remove":
      return write(hands, act)
    case "project":
      return project(hands, act)
    case "look":
      return Effect.all([
        events.get(Names.operationRef(act.op)),
        ledger.balances(Names.workspaceOf(act.op)),
        ledger.transfers({ workspaceId: Names.workspaceOf(act.op), before: null, limit: 20 })
      ])
    case "transaction":
      return transaction(hands, act)
  }
}

const accept = (ports: Hands, { all }: Part<"accept">) =>
  acceptBatch(ports, all.map(({ key, lane, op, text }) => {
    const command = Names.command(lane, text, true)
    return {
      workspaceId: Names.workspaceOf(op),
      operationId: Names.operationId(op),
      // Everybody has one key that is his own.
      keyHash: keyHash(Names.key(key === "u" ? `of-${op}` : key)),
      command,
      evidence: evidenceOf(command),
      price
    }
  }))

/** The leases under which these operations run now, or ran before. */
const leases = ({ operations }: Hands, ops: ReadonlyArray<Op>, stale: boolean) =>
  Effect.forEach(ops, (op) =>
    Effect.map(operations.get(Names.operationRef(op)), (row): Lease => ({
      ...Names.operationRef(op),
      epoch: (row?.epoch ?? 1) - (stale ? 1 : 0)
    })))

/** A plan with one fact, about the newest memory if it is about any. */
const planOf = Effect.fnUntraced(function*({ memories }: Hands, { id, workspaceId }: Lease, change: Change) {
  const scope = Names.scopeOf("k")
  const related = yield* memories.list({ workspaceId, scope: {}, metadata: {}, before: null, limit: 1 })
  return buildPlan({
    operationId: id,
    facts: [{ change, text: `${change} of ${id}`, target: change === "add" ? null : 0 }],
    related: related.map(({ id, text, version }) => ({ id, version, text: text! })),
    scope,
    metadata: {},
    eventDate: null,
    model: "a model"
  })
})

const freeze = Effect.fnUntraced(function*(hands: Hands, { change, op, stale }: Part<"freeze">) {
  const [lease] = yield* leases(hands, [op], stale)
  return yield* hands.settlement.freeze(lease!, yield* planOf(hands, lease!, change))
})

/** With the plan that is in force, if there is one. */
const commit = Effect.fnUntraced(function*(hands: Hands, { change, ops, stale }: Part<"commit">) {
  const { operations, settlement } = hands
  const held = yield* leases(hands, ops, stale)
  const work = new Map((yield* operations.work(held)).map((row) => [refKey(row), row.plan]))
  const plans = yield* Effect.forEach(held, (lease): Effect.Effect<Plan, unknown> => {
    const frozen = work.get(refKey(lease)) ?? null
    return frozen === null ? planOf(hands, lease, change) : Effect.succeed(frozen)
  })
  return yield* settlement.endAll(
    yield* Effect.forEach(held, (lease, index) =>
      Effect.map(laneOf(hands, lease), (lane): Ending => ({ _tag: "Commit", lease, lane, plan: plans[index]! })))
  )
})

const end = Effect.fnUntraced(function*(hands: Hands, { how, ops, stale }: Part<"end">) {
  const held = yield* leases(hands, ops, stale)
  const endings = yield* Effect.forEach(held, (lease) => Effect.map(laneOf(hands, lease), (lane): Ending => {
    switch (how) {
      case "fail":
        return { _tag: "Fail", lease, lane, failure: "provider_timeout", retryAfterMs: null }
      case "fail later":
        return { _tag: "Fail", lease, lane, failure: "provider_unavailable", retryAfterMs: long }
      case "fail for good":
        return { _tag: "Fail", lease, lane, failure: "provider_rejected", retryAfterMs: null }
      case "release":
        return { _tag: "Release", lease, lane }
      case "exhaust":
        return { _tag: "Exhaust", lease, lane }
      case "cancel":
        return { _tag: "Cancel", ref: lease, lane }
    }
  }))
  return yield* hands.settlement.endAll(endings)
})

/** The lane of an operation, and some lane if there is no such operation. */
const laneOf = ({ operations }: Hands, lease: Lease) =>
  Effect.map(operations.get(lease), (row) =>
    row === null ? Names.laneRefs(lease.workspaceId === "w" ? "w" : "v", ["k"])[0]! : { workspaceId: row.workspaceId, lane: row.lane })

const write = ({ writes }: Hands, act: Part<"add"> | Part<"edit"> | Part<"remove">) => {
  const workspaceId = Names.workspaceOf(act.op)
  const key = act.key === null ? null : Names.key(act.key)
  const mine = writes(Names.operationId(act.op))
  if (act.do === "add") return mine.add(workspaceId, key, Names.command(act.lane, act.text, false))
  const { id: memoryId } = Names.memoryRef(act.of)
  return act.do === "edit"
    ? mine.update(workspaceId, key, { kind: "memory.update", memoryId, text: `edited ${act.text}`, metadata: null, expectedVersion: act.version })
    : mine.delete(workspaceId, key, { kind: "memory.delete", memoryId, expectedVersion: act.version })
}

const project = Effect.fnUntraced(function*({ memories }: Hands, { how, limit }: Part<"project">) {
  const claimed = (yield* memories.claimProjections(limit, how === "nothing" ? 0 : long)).map(({ projection }) => projection)
  if (how === "finish") yield* memories.finishProjections(claimed)
  if (how === "postpone") yield* memories.postponeProjections(claimed.map((projection) => ({ projection, delayMs: 0 })))
  return claimed
})

/** What a program came to, without what only wraps it. */
export const outcomeOf = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(outcomeOf)
  if (Result.isResult(value)) return Result.isSuccess(value) ? { is: outcomeOf(value.success) } : { not: value.failure }
  return value
}
