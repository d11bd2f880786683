/** Answers and rows as both databases can have them: times as past or later, and no order where none is promised. */
import { Cause, Exit, Predicate } from "effect"

/** No other number is as large. */
const firstTime = 1_000_000_000_000
/** Nothing that has been lasts longer, and nothing that is to come is nearer. */
const aMinute = 60_000

/** JSON of a value. `now` is the clock of its world in milliseconds. */
export const plain = (value: unknown, now: number, ordered: boolean): string => JSON.stringify(simple(value, now, ordered))

const simple = (value: unknown, now: number, ordered: boolean): unknown => {
  if (typeof value === "bigint") return `${value}n`
  if (typeof value === "number") return value < firstTime ? value : value > now + aMinute ? "later" : "past"
  if (Array.isArray(value)) {
    const items = value.map((item) => simple(item, now, ordered))
    return ordered ? items : items.toSorted((a, b) => JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)
  }
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value).filter(([, item]) => item !== undefined).toSorted(([a], [b]) => a < b ? -1 : 1)
      .map(([name, item]) => [name, simple(item, now, ordered)])
  )
}

/** What somebody was told: a value, a refusal, or what was in the way, by its SQLSTATE and constraint. */
export const told = (exit: Exit.Exit<unknown, unknown>, now: number, ordered: boolean): string =>
  Exit.match(exit, {
    onSuccess: (value) => value === undefined ? "done" : plain(value, now, ordered),
    onFailure: (cause) => cause.reasons.map((reason) => reasonIn(reason, now)).join(", ")
  })

const reasonIn = (reason: Cause.Reason<unknown>, now: number): string => {
  if (Cause.isFailReason(reason)) return refusal(reason.error, now)
  if (Cause.isInterruptReason(reason)) return "interrupted"
  const { defect } = reason
  if (Predicate.isTagged(defect, "DatabaseDefect") && Predicate.hasProperty(defect, "sqlState")) {
    return `${String(defect.sqlState)} ${Predicate.hasProperty(defect, "constraint") ? String(defect.constraint) : ""}`.trim()
  }
  return `a defect: ${defect instanceof Error ? defect.message : String(defect)}`
}

/** By its tag, and what it says. */
const refusal = (error: unknown, now: number): string => {
  if (!(error instanceof Error) || !Predicate.hasProperty(error, "_tag")) return `refused: ${plain(error, now, true)}`
  const { _tag, ...fields } = error as Error & { readonly _tag: unknown }
  return `refused: ${String(_tag)} ${plain(fields, now, true)}`
}
