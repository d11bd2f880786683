/**
 * The simplest database that production programs run on: tables in memory, one transaction at a time, rolled back by
 * failure and by the death of its owner.
 */
import { Context, Effect, Exit } from "effect"
import type { InferInput } from "../../src/domain/Command.ts"
import { type MemoryRef, type OperationRef, refKey, Timestamp, type WorkspaceId } from "../../src/domain/Ids.ts"
import * as Money from "../../src/domain/Ledger.ts"
import type { Memory } from "../../src/domain/Memory.ts"
import { isTerminal, type Lease, type Operation } from "../../src/domain/Operation.ts"
import type { Plan } from "../../src/domain/Plan.ts"
import { type AccountRow, Ledger } from "../../src/services/Ledger.ts"
import type { MemoryStore, Projection } from "../../src/services/MemoryStore.ts"
import type { KeyRow, OperationStore } from "../../src/services/OperationStore.ts"
import type { Transaction } from "../../src/services/Transaction.ts"
import { type Call, io } from "../../src/sim/Io.ts"
import type { Kernel } from "../../src/sim/Kernel.ts"
import type { Process } from "../../src/sim/Process.ts"

/** Rows are never changed, only replaced: a copy of the maps is a copy of everything. */
const emptyTables = () => ({
  keys: new Map<string, KeyRow>(),
  operations: new Map<string, Operation>(),
  inputs: new Map<string, InferInput>(),
  plans: new Map<string, Plan>(),
  memories: new Map<string, Memory>(),
  projections: new Map<string, Projection>(),
  accounts: new Map<WorkspaceId, AccountRow>(),
  authorizations: new Map<string, Money.Authorization>(),
  counters: new Map<"seq" | "fairClock", number>()
})
export type Tables = ReturnType<typeof emptyTables>

const copyOf = (tables: Tables): Tables =>
  Object.fromEntries(
    Object.entries(tables).map(([name, rows]) => [name, new Map<unknown, unknown>(rows)])
  ) as unknown as Tables

/** Set while a transaction is open. */
const InTransaction = Context.Reference<boolean>("test/InTransaction", { defaultValue: () => false })

/** One writer at a time, for a statement or for a whole transaction. Death rolls back, commit does not. */
export const database = (kernel: Kernel) => {
  const state = { tables: emptyTables(), before: null as Tables | null, owner: null as Process | null }
  const waiting: Array<() => void> = []
  const next = () => {
    state.owner = null
    state.before = null
    waiting.shift()?.()
  }
  const whenFree = (go: () => void) => state.owner === null ? go() : void waiting.push(go)
  const rollBack = () => {
    state.tables = state.before!
    next()
  }
  const latency = <A>({ index, label, process }: Call<A, never>) =>
    kernel.key.at("latency", process.id, label, index).between(1, 5)
  const send = <A>(label: string, arrive: (call: Call<A, never>) => void) => io<A>({ label, latencyMs: 1, arrive })
  const begin = send<void>("begin", (call) =>
    whenFree(() => {
      if (!call.waiting) return next()
      state.owner = call.process
      state.before = copyOf(state.tables)
      call.process.onDeath(() => {
        if (state.owner === call.process) rollBack()
      })
      call.answer(Exit.void, latency(call))
    }))
  const end = (label: string, finish: () => void) =>
    send<void>(label, (call) => {
      if (state.owner === call.process) finish()
      call.answer(Exit.void, latency(call))
    })
  const statement = <A>(label: string, apply: (tables: Tables, now: number) => A): Effect.Effect<A> =>
    Effect.flatMap(InTransaction, (inside) =>
      send<A>(label, (call) => {
        const now = () => Math.floor(kernel.epochMs + kernel.now)
        const run = () => call.answer(Exit.succeed(apply(state.tables, now())), latency(call))
        if (inside) run()
        else whenFree(() => {
          run()
          next()
        })
      }))
  const transaction: Transaction["Service"]["run"] = (effect) =>
    Effect.acquireUseRelease(
      begin,
      () => Effect.provideService(effect, InTransaction, true),
      (_, exit) => Exit.isSuccess(exit) ? end("commit", next) : end("rollback", rollBack)
    )
  return { state, statement, transaction }
}

type Statement = ReturnType<typeof database>["statement"]

const unused = () => Effect.die("not a part of this world")
const pick = <A>(rows: ReadonlyMap<string, A>, refs: ReadonlyArray<OperationRef | MemoryRef>): ReadonlyArray<A> =>
  refs.flatMap((ref) => rows.get(refKey(ref)) ?? [])

export const operationStore = (statement: Statement): OperationStore => {
  const save = (tables: Tables, rows: ReadonlyArray<Operation>) => {
    for (const row of rows) tables.operations.set(refKey(row), row)
  }
  const nextSeq = ({ counters }: Tables) => {
    const seq = (counters.get("seq") ?? 0) + 1
    counters.set("seq", seq)
    return seq
  }
  const open = (tables: Tables) => [...tables.operations.values()].filter(({ state }) => !isTerminal(state))
  const work = ({ inputs, plans }: Tables, refs: ReadonlyArray<OperationRef>) =>
    refs.map((ref) => ({ ...ref, input: inputs.get(refKey(ref)) ?? null, plan: plans.get(refKey(ref)) ?? null }))
  return {
    now: statement("now", (_, now) => now),
    lockLanes: () => Effect.void,
    occupiedLanes: (lanes) =>
      statement("occupiedLanes", (tables) =>
        lanes.filter(({ lane }) => open(tables).some((row) => row.lane === lane))),
    findKeys: (keys) =>
      statement("findKeys", (tables) => keys.flatMap(({ keyHash }) => tables.keys.get(keyHash) ?? [])),
    insertKeys: unused,
    insert: (rows) =>
      statement("insert", (tables) => {
        for (const { input, key, operation } of rows) {
          tables.operations.set(refKey(operation), { ...operation, seq: nextSeq(tables) })
          if (key !== null) tables.keys.set(key.keyHash, key)
          if (input !== null) tables.inputs.set(refKey(operation), input)
        }
      }),
    fairClock: statement("fairClock", ({ counters }, now) => ({ clock: counters.get("fairClock") ?? 0, now })),
    advanceFairClock: (to) => statement("advanceFairClock", ({ counters }) => void counters.set("fairClock", to)),
    claimable: (limit) =>
      statement("claimable", (tables, now) => {
        const due = (row: Operation) => row.state === "pending" && row.ready && (row.nextAttemptAt ?? 0) <= now
        const inOrder = open(tables).filter(due).toSorted((a, b) => a.fairTag - b.fairTag || a.seq - b.seq)
        return { now, operations: inOrder.slice(0, limit) }
      }),
    expired: (limit) =>
      statement("expired", (tables, now) => {
        const expired = (row: Operation) => row.leaseExpiresAt !== null && row.leaseExpiresAt <= now
        return { now, operations: open(tables).filter(expired).slice(0, limit) }
      }),
    lock: (refs) => statement("lock", (tables, now) => ({ now, operations: pick(tables.operations, refs) })),
    save: (rows) =>
      statement("save", (tables) => {
        save(tables, rows.map(({ to }) => to))
        return rows.map(({ to }) => to)
      }),
    renew: (leases, leaseMs) =>
      statement("renew", (tables, now) => {
        const held = ({ epoch, ...ref }: Lease) =>
          pick(tables.operations, [ref]).some((row) => row.state === "running" && row.epoch === epoch)
        const kept = leases.filter(held)
        const leaseExpiresAt = Timestamp.make(now + leaseMs)
        save(tables, pick(tables.operations, kept).map((row) => ({ ...row, leaseExpiresAt })))
        return kept
      }),
    work: (refs) => statement("work", (tables) => work(tables, refs)),
    freeze: (rows) =>
      statement("freeze", (tables) => {
        for (const row of rows) if (!tables.plans.has(refKey(row))) tables.plans.set(refKey(row), row.plan)
        return work(tables, rows).flatMap(({ plan, ...ref }) => plan === null ? [] : [{ ...ref, plan }])
      }),
    redact: (refs) =>
      statement("redact", (tables) => {
        for (const ref of refs) [tables.inputs, tables.plans].forEach((rows) => rows.delete(refKey(ref)))
      }),
    announce: () => Effect.void,
    readyNext: (lanes) =>
      statement("readyNext", (tables) => {
        const heads = lanes.flatMap(({ lane }) =>
          open(tables).filter((row) => row.lane === lane).toSorted((a, b) => a.seq - b.seq).slice(0, 1)
        )
        save(tables, heads.map((head) => ({ ...head, ready: true })))
        return heads.length
      }),
    nextSeq: statement("nextSeq", nextSeq),
    get: (ref) => statement("get", (tables) => pick(tables.operations, [ref])[0] ?? null),
    list: unused,
    withInput: (refs) => statement("withInput", (tables) => refs.filter((ref) => tables.inputs.has(refKey(ref)))),
    stalledLanes: () => statement("stalledLanes", () => ({ stalled: [], next: null })),
    expiredInputs: () => statement("expiredInputs", () => []),
    pruneAnnouncements: () => statement("pruneAnnouncements", () => 0)
  }
}

export const memoryStore = (statement: Statement): MemoryStore => ({
  lock: (refs) => statement("lock memories", ({ memories }) => pick(memories, refs)),
  write: (writes) =>
    statement("write", ({ memories, projections }) => {
      for (const { memory } of writes) {
        memories.set(refKey(memory), memory)
        projections.set(refKey(memory), { ...memory, attempts: 0 })
      }
      return writes.map(({ memory }) => memory)
    }),
  get: (refs) => statement("get memories", ({ memories }) => pick(memories, refs)),
  list: unused,
  history: unused,
  lexical: unused,
  recent: (workspaceId, scope, limit) =>
    statement("recent", ({ memories }) => {
      const mine = (row: Memory) => row.workspaceId === workspaceId && row.scope.user_id === scope.user_id
      return [...memories.values()].filter(mine).slice(0, limit)
    }),
  claimProjections: (limit) =>
    statement("claimProjections", ({ memories, projections }) =>
      [...projections.values()].slice(0, limit).map((projection) => ({
        projection,
        memory: memories.get(refKey(projection)) ?? null
      }))),
  finishProjections: (done) =>
    statement("finishProjections", ({ projections }) => {
      for (const row of done) projections.delete(refKey(row))
    }),
  postponeProjections: () => statement("postponeProjections", () => {}),
  projectionAttempts: () => statement("projectionAttempts", () => [])
})

export const ledger = (statement: Statement): Ledger["Service"] =>
  Ledger.of({
    lock: (ids) =>
      statement("lock accounts", ({ accounts }) => [...new Set(ids)].flatMap((id) => accounts.get(id) ?? [])),
    setFairTimes: (rows) =>
      statement("setFairTimes", ({ accounts }) => {
        for (const { fairTime, workspaceId } of rows) {
          accounts.set(workspaceId, { ...accounts.get(workspaceId)!, fairTime })
        }
      }),
    openAuthorizations: (refs) =>
      statement("openAuthorizations", ({ authorizations }) =>
        pick(authorizations, refs).filter(({ state }) => state === "open")),
    post: (ends, transfers) =>
      statement("post", ({ accounts, authorizations }) => {
        for (const row of ends) authorizations.set(refKey({ workspaceId: row.workspaceId, id: row.operationId }), row)
        for (const transfer of transfers) {
          const account = accounts.get(transfer.workspaceId)!
          accounts.set(transfer.workspaceId, { ...account, balances: Money.post(account.balances, transfer) })
        }
      }),
    authorizations: (refs) => statement("authorizations", ({ authorizations }) => pick(authorizations, refs)),
    balances: unused,
    transfers: unused,
    granted: unused,
    grant: (workspaceId, amount) =>
      statement("grant", ({ accounts }) => {
        const balances = { ...Money.emptyBalances, available: amount, issued: amount }
        accounts.set(workspaceId, { workspaceId, fairTime: 0, balances })
        return true
      })
  })
