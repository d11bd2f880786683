/** What is wrong with the parameters of a request, by name and never by value. */
import { SchemaIssue } from "effect"
import { problemsMax } from "../domain/Problem.ts"
import type { Fault } from "./Problems.ts"

const headerNames = new Map([
  ["idempotency-key", "Idempotency-Key"],
  ["if-match", "If-Match"],
  ["prefer", "Prefer"]
])

const nameMaxLength = 64

const unknown = "is not a known parameter"

const shorten = (name: string): string => name.slice(0, nameMaxLength).toWellFormed()

/** One entry for each of these parameters, of which the same is wrong. */
export const parametersAt = (names: ReadonlyArray<string>, message: string): ReadonlyArray<Fault> =>
  names.slice(0, problemsMax).map((name) => ({ path: shorten(name), message }))

/** One entry for each parameter of an endpoint that takes none. */
export const unknownParameters = (names: ReadonlyArray<string>): ReadonlyArray<Fault> => parametersAt(names, unknown)

const format = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) => {
    if (issue._tag === "UnexpectedKey") return unknown
    if (issue._tag === "MissingKey") return "is required"
    return SchemaIssue.defaultLeafHook(issue)
  }
})

/** The parameters that a URL has more than once. */
export const repeatedIn = (url: string): ReadonlySet<string> => {
  const names = [...new URLSearchParams(url.split("?").slice(1).join("?")).keys()]
  return new Set(names.filter((name, index) => names.indexOf(name) !== index))
}

/** One entry for each parameter that is wrong; of one that is `repeated` that is what is wrong with it. */
export const faultsOf = (issue: SchemaIssue.Issue, repeated: ReadonlySet<string>): ReadonlyArray<Fault> =>
  format(issue).issues.slice(0, problemsMax).map(({ message, path = [] }) => {
    const first = path[0]
    const name = shorten(String(typeof first === "object" ? first.key : first ?? ""))
    const said = repeated.has(name) && message !== unknown ? "must be given once" : message.replace(/^Expected /, "must be ")
    return { path: headerNames.get(name) ?? name, message: said }
  })
