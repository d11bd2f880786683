/** Turns what a caller sent into a value, or into everything that is wrong with it. Unknown fields are refused. */
import { Result, type Schema, SchemaIssue, SchemaParser } from "effect"
import { pointer, type Problem, problemsMax } from "./Problem.ts"
import { InvalidInput } from "./Refusal.ts"

// Reported input would find its way into messages, and from there into logs.
const options = { errors: "all", onExcessProperty: "error", reportInput: false } as const

/** A decoder of parsed bodies. At most `problemsMax` problems are reported, none of which repeats a value. */
export const decodeBody = <S extends Schema.ConstraintDecoder<unknown>>(schema: S) => {
  const decode = SchemaParser.decodeUnknownResult(schema, options)
  return (body: unknown): Result.Result<S["Type"], InvalidInput> =>
    Result.mapError(decode(body), (issue) => new InvalidInput({ errors: problemsOf(issue) }))
}

const format = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) => {
    if (issue._tag === "UnexpectedKey") return "is not a known field"
    if (issue._tag === "MissingKey") return "is required"
    return SchemaIssue.defaultLeafHook(issue)
  }
})

/** The problems behind an issue, in the voice of our own checks: "must be string", not "Expected string". */
const problemsOf = (issue: SchemaIssue.Issue): ReadonlyArray<Problem> =>
  format(issue).issues.slice(0, problemsMax).map(({ message, path }) => ({
    path: pointer((path ?? []).map((segment) => typeof segment === "object" ? segment.key : segment)),
    message: message.replace(/^Expected /, "must be ")
  }))
