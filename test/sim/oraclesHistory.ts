/** Histories of commits, made by hand from what the domain says: each can be true, or wrong in one place. */
import { type MemoryId, type OperationRef, refKey, type WorkspaceId } from "../../src/domain/Ids.ts"
import * as Money from "../../src/domain/Ledger.ts"
import type { Operation } from "../../src/domain/Operation.ts"
import { Oracles, type OraclesOptions } from "../../src/sim/oracles/Oracles.ts"
import { acme, operationId, other, type Past, settings, tableNames, type Tables } from "./oraclesRows.ts"
import { Tx } from "./oraclesTx.ts"

export class History implements Past {
  readonly oracles: Oracles
  readonly tables = Object.fromEntries(tableNames.map((name) => [name, new Map()])) as unknown as Tables
  /** Virtual time, in milliseconds. The database clock is a million ahead. */
  now = 1_000
  seq = 0
  /** Operations that are not of the first workspace. */
  readonly elsewhere = new Map<number, WorkspaceId>()

  constructor(options: Partial<OraclesOptions> = {}) {
    this.oracles = new Oracles({ settings, now: () => this.now, wholeEvery: 1, ...options })
    this.run("world", (tx) => {
      tx.put("fairClock", { value: 0 })
      for (const workspaceId of [acme, other]) {
        tx.put("workspaces", { id: workspaceId })
        tx.put("accounts", { workspaceId, balances: Money.emptyBalances, fairTime: 0 })
        tx.grant(100n, workspaceId)
      }
    })
    this.trouble()
  }

  /** Something goes wrong somewhere: for a while nobody can say that nothing was in the way. */
  trouble(): this {
    this.oracles.struck({ kind: "slow_statement", actor: "api-1#1", label: "begin", index: 0 })
    return this
  }

  get at(): number {
    return 1_000_000 + this.now
  }

  /** Ten milliseconds later somebody commits. */
  run(by: string, edit: (tx: Tx) => void, sentAt = this.now): this {
    this.now += 10
    const tx = new Tx(this)
    edit(tx)
    const changes = tx.changes()
    for (const { after, key, table } of changes) {
      const rows = this.tables[table] as Map<string, unknown>
      if (after === null) rows.delete(key)
      else rows.set(key, after)
    }
    this.oracles.commit({ at: this.at, by, sentAt, changes }, this.tables)
    return this
  }

  wait(ms: number): this {
    this.now += ms
    return this
  }

  ref(n: number): OperationRef {
    return { workspaceId: this.elsewhere.get(n) ?? acme, id: operationId(n) }
  }

  operation(n: number): Operation {
    return this.tables.operations.get(refKey(this.ref(n)))!
  }

  /** The memory that an operation added in this place. */
  memoryOf(n: number, place = 0): MemoryId {
    return this.operation(n).results[place]!.id!
  }

  get broken(): ReadonlyArray<string> {
    return [...new Set(this.oracles.violations.map(({ invariant }) => invariant))]
  }
}
