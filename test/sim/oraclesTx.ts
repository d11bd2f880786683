/** One transaction of a history made by hand: what the programs would write, and whatever they never should. */
import { Result } from "effect"
import { handedTag, startTags } from "../../src/domain/Fairness.ts"
import type { FailureClass } from "../../src/domain/Failure.ts"
import { type MemoryId, refKey, Timestamp, WorkspaceId } from "../../src/domain/Ids.ts"
import * as Money from "../../src/domain/Ledger.ts"
import { decide, evolve, type Input, isTerminal, type Operation } from "../../src/domain/Operation.ts"
import { applyPlan, buildPlan, type Fact, type MemoryWrite, nextVersion, planDigest } from "../../src/domain/Plan.ts"
import { laneOf } from "../../src/domain/Scope.ts"
import type { Change, Rows, TableName } from "../../src/sim/Commit.ts"
import * as samples from "../domain/samples.ts"
import { acme, add, hashOf, keyOf, leaseMs, operationId, type Past, settings } from "./oraclesRows.ts"

const price: Money.Price = { policy: "infer-add", stored: 2, noMemory: 2 }

export interface Accepting {
  readonly workspaceId?: WorkspaceId
  readonly user?: string
  readonly reserved?: bigint
}

/** One transaction: it sees what it has written. */
export class Tx {
  readonly history: Past
  private readonly writes = new Map<string, { readonly table: TableName; readonly key: string; after: object | null }>()

  constructor(history: Past) {
    this.history = history
  }

  get<Name extends TableName>(table: Name, key: string): Rows[Name] | undefined {
    const written = this.writes.get(`${table} ${key}`)
    return written === undefined ? this.history.tables[table].get(key) : (written.after ?? undefined) as Rows[Name] | undefined
  }

  put<Name extends TableName>(table: Name, row: Rows[Name]): void {
    const key = keyOf(table, row)
    this.writes.set(`${table} ${key}`, { table, key, after: row })
  }

  drop(table: TableName, key: string): void {
    this.writes.set(`${table} ${key}`, { table, key, after: null })
  }

  /** Changes a row that is there. */
  edit<Name extends TableName>(table: Name, key: string, change: Partial<Rows[Name]>): void {
    this.put(table, { ...this.get(table, key)!, ...change })
  }

  /** Claims an operation whose lease still holds. */
  steal(n: number): void {
    const { attempts, epoch } = this.operation(n)
    this.bend(n, { epoch: epoch + 1, attempts: attempts + 1, leaseOwner: "thief", leaseExpiresAt: Timestamp.make(this.now + leaseMs) })
  }

  /** Gives back what an operation holds, while it goes on. */
  refund(n: number): void {
    this.post(Money.refund(this.get("authorizations", `${refKey(this.history.ref(n))}/1`)!))
  }

  /** Takes credit that no transfer moves. */
  drain(account: "available" | "reserved", amount: bigint): void {
    const { balances } = this.get("accounts", acme)!
    this.edit("accounts", acme, { balances: { ...balances, [account]: balances[account] - amount } })
  }

  /** Uses up all the credit that is left: operation 90 holds it. */
  spend(): void {
    this.accept(90, { user: "spender", reserved: this.get("accounts", acme)!.balances.available })
  }

  /** Puts a second row beside one that has to be alone. */
  again(table: TableName, key: string, change: object = {}): void {
    this.writes.set(`${table} ${key} again`, { table, key: `${key} again`, after: { ...this.get(table, key)!, ...change } })
  }

  /** Takes back whatever this transaction has done to a table. */
  forget(table: TableName): void {
    for (const [name, write] of this.writes) if (write.table === table) this.writes.delete(name)
  }

  changes(): ReadonlyArray<Change> {
    return [...this.writes.values()].flatMap(({ after, key, table }) => {
      const before = this.history.tables[table].get(key) ?? null
      return before === after ? [] : [{ table, key, before, after } as unknown as Change]
    })
  }

  operation(n: number): Operation {
    return this.get("operations", refKey(this.history.ref(n)))!
  }

  /** Changes an operation as nobody should. */
  bend(n: number, change: Partial<Operation>): void {
    this.edit("operations", refKey(this.history.ref(n)), change)
  }

  grant(amount: bigint, workspaceId = acme): void {
    const nobody = { workspaceId, operationId: null, authorizationNo: null }
    this.transfer({ ...nobody, kind: "grant", amount, reference: `grant ${this.history.seq}` })
  }

  transfer(transfer: Money.Transfer): void {
    const { balances } = this.get("accounts", transfer.workspaceId)!
    this.edit("accounts", transfer.workspaceId, { balances: Money.post(balances, transfer) })
    this.put("transfers", { ...transfer, seq: BigInt(++this.history.seq), at: this.now })
  }

  get now(): Timestamp {
    return Timestamp.make(this.history.at)
  }

  private post(end: { readonly authorization: Money.Authorization; readonly transfers: ReadonlyArray<Money.Transfer> }): void {
    this.put("authorizations", end.authorization)
    for (const transfer of end.transfers) this.transfer(transfer)
  }

  private step(n: number, input: Input): Operation {
    const before = this.operation(n)
    const after = evolve(before, Result.getOrThrow(decide(before, input)))
    this.put("operations", after)
    return after
  }

  private live(operation: Operation): ReadonlyArray<Operation> {
    const written = [...this.writes.values()].flatMap(({ after, table }) => table === "operations" ? [after as Operation] : [])
    const rows = new Map([...this.history.tables.operations.values(), ...written].map((row) => [refKey(row), row]))
    return [...rows.values()].filter(({ lane, state }) => lane === operation.lane && !isTerminal(state))
      .toSorted((a, b) => a.seq - b.seq)
  }

  private tag(workspaceId: WorkspaceId): number {
    const { fairTime } = this.get("accounts", workspaceId)!
    const { tags, workspaceTime } = startTags(this.get("fairClock", "singleton")!.value, fairTime, 1)
    this.edit("accounts", workspaceId, { fairTime: workspaceTime })
    return tags[0]!
  }

  accept(n: number, { reserved = 2n, user = "ada", workspaceId = acme }: Accepting = {}): void {
    if (workspaceId !== acme) this.history.elsewhere.set(n, workspaceId)
    const ref = this.history.ref(n)
    const scope = { user_id: user }
    const born = samples.accepted(n, {
      workspaceId,
      scope,
      lane: laneOf({ ...scope, app_id: workspaceId }),
      seq: ++this.history.seq,
      fairTag: this.tag(workspaceId),
      createdAt: this.now,
      windowStartedAt: this.now
    })
    const operation = { ...born, ready: this.live(born).length === 0 }
    const { commandHash, commandVersion } = operation.evidence
    this.put("operations", operation)
    this.put("keys", { workspaceId, keyHash: hashOf(n), commandVersion, commandHash, operationId: operation.id })
    this.put("inputs", {
      ...ref,
      input: { messages: [{ role: "user", content: `canary ${n}` }], metadata: {}, eventDate: null, instructions: null }
    })
    this.post(Money.reserve({ workspaceId, operationId: operation.id, no: 1, reserved, price }))
  }

  claim(n: number, owner = "owner"): void {
    const { fairTag } = this.step(n, { _tag: "Claim", owner, leaseMs, maxAttempts: 2, now: this.now })
    const { value } = this.get("fairClock", "singleton")!
    if (fairTag > value) this.put("fairClock", { value: fairTag })
  }

  renew(n: number): void {
    this.bend(n, { leaseExpiresAt: Timestamp.make(this.now + leaseMs) })
  }

  /** A plan of these facts, about the memories that the operation is shown. */
  freeze(n: number, facts: ReadonlyArray<Fact> = [add(`fact ${n}`)], shown: ReadonlyArray<MemoryId> = []): void {
    const { id, scope, workspaceId } = this.operation(n)
    const related = shown.map((id) => this.get("memories", refKey({ workspaceId, id }))!)
      .map(({ id, text, version }) => ({ id, version, text: text! }))
    const about = { scope, metadata: {}, eventDate: null, model: "model" }
    this.put("plans", { workspaceId, id, plan: buildPlan({ operationId: id, facts, related, ...about }) })
  }

  write({ change, memory }: MemoryWrite): void {
    const { id, operationId, text, updatedAt: at, version, workspaceId } = memory
    this.put("memories", memory)
    this.put("projections", { workspaceId, id, version, operationId, attempts: 0, dueAt: at })
    this.put("history", { workspaceId, memoryId: id, version, change, text, operationId, at })
    if (change !== "delete") return
    for (let old = 1; old < version; old++) this.edit("history", `${workspaceId}/${id}/${old}`, { text: null })
  }

  private end(operation: Operation, succeeded: boolean): void {
    const { id, state, workspaceId } = operation
    this.put("outbox", { workspaceId, id, state, seq: ++this.history.seq, at: this.now })
    const next = this.live(operation)[0]
    if (next !== undefined && !next.ready) {
      const fairTag = handedTag(this.get("fairClock", "singleton")!.value, 1, next.fairTag)
      this.put("operations", { ...next, ready: true, fairTag })
    }
    const held = this.get("authorizations", `${workspaceId}/${id}/${operation.authorizationNo}`)!
    this.post(succeeded ? Money.charge(held, 2n) : Money.refund(held))
  }

  settle(n: number): void {
    const operation = this.operation(n)
    const { epoch, workspaceId } = operation
    const { plan } = this.get("plans", refKey(operation))!
    const current = new Map(plan.steps.flatMap(({ id }) => {
      const memory = id === null ? undefined : this.get("memories", refKey({ workspaceId, id }))
      return memory === undefined ? [] : [[memory.id, memory] as const]
    }))
    const { results, writes } = applyPlan(plan, { operation, now: this.now, current })
    for (const write of writes) this.write(write)
    const counts = { offered: plan.steps.length, stored: writes.length }
    const evidence = { ...operation.evidence, model: plan.model, planDigest: planDigest(plan), ...counts }
    const after = this.step(n, { _tag: "Commit", epoch, results, evidence, now: this.now })
    this.drop("inputs", refKey(operation))
    this.drop("plans", refKey(operation))
    this.end(after, true)
  }

  fail(n: number, failure: FailureClass, retryAfterMs: number | null = null): void {
    const { epoch } = this.operation(n)
    const policy = settings.retry
    const after = this.step(n, { _tag: "Fail", epoch, failure, retryAfterMs, jitter: 0.5, policy, now: this.now })
    if (after.state === "failed") this.end(after, false)
  }

  exhaust(n: number): void {
    const { epoch } = this.operation(n)
    this.end(this.step(n, { _tag: "Exhaust", epoch, maxAttempts: 2, now: this.now }), false)
  }

  release(n: number): void {
    this.step(n, { _tag: "Release", epoch: this.operation(n).epoch })
  }

  cancel(n: number): void {
    this.end(this.step(n, { _tag: "Cancel", now: this.now }), false)
  }

  retry(n: number): void {
    const operation = this.operation(n)
    const { authorizationNo, id, workspaceId } = operation
    const no = (authorizationNo ?? 0) + 1
    const ready = this.live(operation).length === 0
    const place = { authorizationNo: no, seq: ++this.history.seq, ready, fairTag: this.tag(workspaceId) }
    this.step(n, { _tag: "Retry", now: this.now, ...place })
    this.post(Money.reserve({ workspaceId, operationId: id, no, reserved: 2n, price }))
  }

  purge(n: number): void {
    this.drop("inputs", refKey(this.history.ref(n)))
    this.drop("plans", refKey(this.history.ref(n)))
  }

  /** An edit, or with null a deletion, that is finished when it is accepted. */
  change(n: number, id: MemoryId, text: string | null): void {
    const memory = this.get("memories", refKey({ workspaceId: acme, id }))!
    const next = nextVersion(memory, { text, operationId: operationId(n), now: this.now })
    const change = text === null ? "delete" : "update"
    this.put("operations", {
      ...samples.accepted(n, { scope: memory.scope, seq: ++this.history.seq, fairTag: 0, ready: false, createdAt: this.now }),
      kind: `memory.${change}`,
      state: "succeeded",
      authorizationNo: null,
      outcome: "stored",
      results: [{ id, change, version: next.version }],
      completedAt: this.now
    })
    this.put("outbox", { ...this.history.ref(n), state: "succeeded", seq: ++this.history.seq, at: this.now })
    this.write({ change, memory: next })
  }

  /** A version in the index, or for a deleted memory its tombstone. */
  index(id: MemoryId): void {
    const { deleted, version } = this.get("memories", refKey({ workspaceId: acme, id }))!
    this.put("vectors", { workspaceId: acme, id, version, deleted, vector: Float32Array.of(1, 0) })
  }

  finish(id: MemoryId, version: number): void {
    this.drop("projections", `${acme}/${id}/${version}`)
  }
}
