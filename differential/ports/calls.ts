/** Transactions that no program makes: single calls in any order, so that rows are met in every state, and locks in circles. */
import { Effect } from "effect"
import type { OperationRef } from "../../src/domain/Ids.ts"
import * as Money from "../../src/domain/Ledger.ts"
import { type Event, evolve, type Operation } from "../../src/domain/Operation.ts"
import { buildPlan, type MemoryWrite } from "../../src/domain/Plan.ts"
import { defaultSettings } from "../../src/services/Settings.ts"
import { prices } from "../../src/services/SyncWrites.ts"
import type { OutcomeUnknown } from "../../src/services/Transaction.ts"
import type { Hands } from "./hands.ts"
import * as Names from "./names.ts"
import type { Act, Call, Op } from "./sequence.ts"

type Part<Name extends Call["call"]> = Extract<Call, { readonly call: Name }>

const price = prices(defaultSettings)["infer-add"]
/** Longer than any sequence, in milliseconds. */
const long = 3_600_000

/** The end that was chosen for it. */
class Rollback {
  readonly _tag = "Rollback"
}

export const transaction = (hands: Hands, { calls, end }: Extract<Act, { readonly do: "transaction" }>) =>
  hands.transaction.run(Effect.andThen(
    Effect.forEach(calls, (one) => call(hands, one), { discard: true }),
    end === "commit" ? Effect.void : Effect.fail(new Rollback())
  )).pipe(Effect.catchIf((error) => error instanceof Rollback, () => Effect.void))

const refs = (ops: ReadonlyArray<Op>) => ops.map(Names.operationRef)

const call = (hands: Hands, one: Call): Effect.Effect<unknown, OutcomeUnknown> => {
  const { ledger, memories, operations } = hands
  switch (one.call) {
    case "lock":
      return operations.lock(refs(one.ops))
    case "lanes":
      return operations.lockLanes(Names.laneRefs(one.workspace, one.lanes))
    case "accounts":
      return ledger.lock(one.workspaces.map(Names.workspaceId))
    case "memories":
      return memories.lock(one.of.map(Names.memoryRef))
    case "claimable":
      return operations.claimable(one.limit)
    case "expired":
      return operations.expired(one.limit)
    case "insert": {
      const { messages, metadata } = Names.command(one.lane, "p", true)
      return operations.insert([{
        operation: Names.operation(one.op, one.lane, one.ready),
        key: one.key === null ? null : Names.keyRow(one.key, one.op),
        input: { messages, metadata, eventDate: null, instructions: null }
      }])
    }
    case "keys":
      return operations.insertKeys([Names.keyRow(one.key, one.op)])
    case "save":
      return save(hands, one)
    case "redact":
      return operations.redact(refs(one.ops))
    case "plans":
      return operations.freeze(refs(one.ops).map((ref) => ({ ...ref, plan: planOf(hands, ref) })))
    case "ready":
      return operations.readyNext(Names.laneRefs(one.workspace, one.lanes))
    case "clock":
      return operations.advanceFairClock(one.to)
    case "reserve":
    case "settle":
    case "refund":
    case "grant":
      return money(hands, one)
    case "write":
      return writeMemories(hands, one)
    case "projections":
      return memories.claimProjections(one.limit, long)
    case "finish":
      return memories.finishProjections(projections(one.of, one.version))
    case "postpone":
      return memories.postponeProjections(
        projections(one.of, one.version, one.attempts).map((projection) => ({ projection, delayMs: long }))
      )
    case "announce":
      return operations.announce(one.ops.map((op) => Names.operation(op, "k", false)))
    case "prune":
      return operations.pruneAnnouncements(0, one.limit)
    case "read":
      return operations.get(Names.operationRef(one.op))
  }
}

/** What may become of an operation, also where it may not. */
const eventOf = ({ owner }: Hands, as: Part<"save">["as"]): Event => {
  switch (as) {
    case "claimed":
      return { _tag: "Claimed", owner, leaseExpiresAt: Names.past, at: Names.past }
    case "failed":
      return { _tag: "Failed", failure: "cancelled", at: Names.past }
    case "released":
      return { _tag: "Released" }
    case "reopened":
      return { _tag: "Reopened", authorizationNo: 2, seq: 100, ready: false, fairTag: 7, at: Names.past }
  }
}

const save = Effect.fnUntraced(function*(hands: Hands, { as, ops }: Part<"save">) {
  const { operations } = hands
  const found = yield* Effect.forEach(refs(ops), (ref) => operations.get(ref))
  const rows = found.filter((row): row is Operation => row !== null)
  yield* operations.save(rows.map((from) => ({ from, to: evolve(from, eventOf(hands, as)) })))
})

const planOf = ({ owner }: Hands, { id }: OperationRef) =>
  buildPlan({
    operationId: id,
    facts: [{ change: "add", text: `planned by ${owner}`, target: null }],
    related: [],
    scope: Names.scopeOf("k"),
    metadata: {},
    eventDate: null,
    model: "a model"
  })

const authorizationOf = (op: Op, no: number): Money.Authorization => {
  const { id, workspaceId } = Names.operationRef(op)
  return Money.reserve({ workspaceId, operationId: id, no, reserved: 2n, price }).authorization
}

const money = (
  { ledger }: Hands,
  one: Part<"reserve"> | Part<"settle"> | Part<"refund"> | Part<"grant">
): Effect.Effect<unknown, OutcomeUnknown> => {
  switch (one.call) {
    case "grant":
      return ledger.grant(Names.workspaceId(one.workspace), 1n, one.reference)
    case "reserve": {
      const { authorization, transfers } = Money.reserve(authorizationOf(one.op, one.no))
      return ledger.post([authorization], transfers)
    }
    case "refund": {
      const { authorization, transfers } = Money.refund(authorizationOf(one.op, one.no))
      return ledger.post([authorization], transfers)
    }
    case "settle":
      return Effect.flatMap(ledger.openAuthorizations(refs(one.ops)), (open) => {
        const ends = open.map((authorization) => one.as === "charge" ? Money.charge(authorization, 1n) : Money.refund(authorization))
        return ledger.post(ends.map((end) => end.authorization), ends.flatMap((end) => end.transfers))
      })
  }
}

const writeMemories = ({ memories, owner }: Hands, { change, of, version }: Part<"write">) =>
  memories.write(of.map((op): MemoryWrite => ({
    change,
    memory: {
      ...Names.memoryRef(op),
      version: change === "add" ? 1 : version + 1,
      text: change === "delete" ? null : `written by ${owner}`,
      scope: Names.scopeOf("k"),
      metadata: {},
      eventDate: null,
      operationId: Names.operationId(op),
      createdAt: Names.past,
      updatedAt: Names.past,
      deleted: change === "delete"
    }
  })))

const projections = (of: ReadonlyArray<Op>, version: number, attempts = 0) =>
  of.map((op) => ({ ...Names.memoryRef(op), version, operationId: Names.operationId(op), attempts }))
