/**
 * Texts that were planted in inputs, looked for everywhere. They may be where an input still has to be, and in what was
 * remembered of it; anywhere else somebody has kept what nobody should.
 */
import type { Change, Committed, Rows, TableName } from "../Commit.ts"
import type { Named } from "./Oracle.ts"

export const canaryPromise: Named = {
  name: "input-is-nowhere-else",
  promise: "What a caller said is in inputs and plans that are still needed, in memories and their history, and nowhere else."
}

export const madeUpPromise: Named = {
  name: "made-up-is-not-stored",
  promise: "What the model says of a memory that it was never shown is in no plan and no memory."
}

/** Tables that may hold texts. How long an input or a plan may be there, other promises say. */
const mayHold: ReadonlySet<TableName> = new Set(["inputs", "plans", "memories", "history"])

/** What can hold a text in the tables that must not: looked at in every commit. At the end it is all of a row. */
const texts: { readonly [Name in TableName]?: ReadonlyArray<keyof Rows[Name]> } = {
  operations: ["evidence", "results", "failure", "leaseOwner", "scope"],
  keys: ["keyHash", "commandHash"],
  outbox: ["state"],
  transfers: ["reference"],
  apiKeys: ["label"]
}

export class Canary {
  private readonly pattern: RegExp | null
  private readonly shortest: number

  constructor(planted: ReadonlyArray<string>) {
    this.pattern = planted.length === 0 ? null : new RegExp(planted.map(escape).join("|"))
    this.shortest = Math.min(...planted.map(({ length }) => length))
  }

  /** Whether a text holds what was planted. */
  in(text: string): boolean {
    return this.pattern !== null && text.length >= this.shortest && this.pattern.test(text)
  }

  /** Whether a change wrote it where it does not belong. */
  inChange({ after, before, table }: Change): boolean {
    const names = texts[table] as ReadonlyArray<string> | undefined
    if (this.pattern === null || after === null || names === undefined) return false
    for (const name of names) {
      const value = (after as unknown as Record<string, unknown>)[name]
      const same = before !== null && (before as unknown as Record<string, unknown>)[name] === value
      if (!same && this.within(value)) return true
    }
    return false
  }

  /** Whether a change wrote it where texts belong. */
  isKept({ after, table }: Change): boolean {
    return this.pattern !== null && table !== "inputs" && mayHold.has(table) && this.within(after)
  }

  /** The names of the tables that hold it and must not, once each. */
  inTables(committed: Committed): ReadonlyArray<string> {
    const names = Object.keys(committed) as ReadonlyArray<TableName>
    return names.filter((name) => {
      for (const [key, row] of committed[name] as ReadonlyMap<string, Rows[TableName]>) {
        if (this.in(key) || (!mayHold.has(name) && this.within(row))) return true
      }
      return false
    })
  }

  private within(value: unknown): boolean {
    if (typeof value === "string") return this.in(value)
    if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return false
    if (Array.isArray(value)) return value.some((member) => this.within(member))
    for (const [name, member] of Object.entries(value)) if (this.in(name) || this.within(member)) return true
    return false
  }
}

const escape = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")
