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

/** Tables that may hold texts, each for its reason; what else a plan or an input may do is said by other promises. */
const mayHold: ReadonlySet<TableName> = new Set(["inputs", "plans", "memories", "history"])

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

  /** Whether a change wrote it where it does not belong. Parts of a row that stay as they were are not read again. */
  inChange({ after, before, key, table }: Change): boolean {
    if (this.pattern === null || after === null) return false
    return this.in(key) || (!mayHold.has(table) && this.somewhere(after, before))
  }

  /** The names of the tables that hold it and must not, once each. */
  inTables(committed: Committed): ReadonlyArray<string> {
    const names = Object.keys(committed) as ReadonlyArray<TableName>
    return names.filter((name) => {
      for (const [key, row] of committed[name] as ReadonlyMap<string, Rows[TableName]>) {
        if (this.in(key) || (!mayHold.has(name) && this.somewhere(row, null))) return true
      }
      return false
    })
  }

  private somewhere(value: unknown, before: unknown): boolean {
    if (typeof value === "string") return value !== before && this.in(value)
    if (typeof value !== "object" || value === null || value === before || ArrayBuffer.isView(value)) return false
    const old = typeof before === "object" && before !== null ? before as Record<string, unknown> : nothing
    for (const name in value) {
      if (this.in(name) || this.somewhere((value as Record<string, unknown>)[name], old[name])) return true
    }
    return false
  }
}

const nothing: Record<string, unknown> = {}

const escape = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")
