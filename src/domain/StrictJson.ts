/**
 * Reads JSON that every party reads alike: no duplicate keys, no number or text that is changed on its way through a
 * double, UTF-8 or Postgres. Safe on hostile text, in time and stack linear to its length.
 */
import { Result, type Schema } from "effect"
import { type JSONVisitor, visit } from "jsonc-parser"
import { pointer, type Problem, problemsMax } from "./Problem.ts"

/** How deep arrays and objects may nest. */
export const nestingMax = 32

/** The value of a JSON text, or what is wrong with it: at most `problemsMax` problems. */
export const parse = (text: string): Result.Result<Schema.Json, ReadonlyArray<Problem>> => {
  // First of all, because what follows recurses.
  if (nestsTooDeep(text)) return Result.fail([{ path: "", message: `must not nest deeper than ${nestingMax} levels` }])
  try {
    JSON.parse(text)
  } catch {
    return Result.fail([{ path: "", message: syntaxMessage(text) }])
  }
  const { problems, value } = read(text)
  return problems.length > 0 ? Result.fail(problems) : Result.succeed(value)
}

const quote = 0x22
const backslash = 0x5c

const nestsTooDeep = (text: string): boolean => {
  let depth = 0
  let inString = false
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index)
    if (unit === quote) inString = !inString
    else if (inString && unit === backslash) index++
    else if (inString) continue
    else if (isOpener(unit) && ++depth > nestingMax) return true
    else if (unit === 0x5d || unit === 0x7d) depth--
  }
  return false
}

const isOpener = (unit: number): boolean => unit === 0x5b || unit === 0x7b

/** The visitor forgives and goes on, one stack frame for each opener that it meets: it is shown few. */
const openersMax = 1_000

/** Where the first error is. The engine's own message quotes the text, so it is not used. */
const syntaxMessage = (text: string): string => {
  let openers = 0
  for (let index = 0; index < text.length; index++) if (isOpener(text.charCodeAt(index))) openers++
  let place = ""
  if (openers <= openersMax) {
    visit(text, {
      onError: (_code, _offset, _length, line, character) => {
        if (place === "") place = ` (line ${line + 1}, column ${character + 1})`
      }
    }, strict)
  }
  return `is not valid JSON${place}`
}

const strict = { disallowComments: true, allowTrailingComma: false, allowEmptyContent: false }

/** An array, or an object with the name that its next member has. */
type Container =
  | { readonly array: Array<Schema.Json> }
  | { readonly object: Record<string, Schema.Json>; name: string }

/**
 * The value of a text that is known to be JSON, and everything about it that `JSON.parse` lets pass. It does not make
 * the value, because V8 may take an escaped name for one with a backslash that an earlier text had, whoever sent that:
 * https://github.com/nodejs/node/issues/63785
 */
const read = (text: string): { readonly value: Schema.Json; readonly problems: ReadonlyArray<Problem> } => {
  const problems: Array<Problem> = []
  const open: Array<Container> = []
  let root: Schema.Json = null
  const report = (path: () => ReadonlyArray<PropertyKey>, message: string | undefined) => {
    if (message !== undefined && problems.length < problemsMax) problems.push({ path: pointer(path()), message })
  }
  const put = (value: Schema.Json) => {
    const container = open.at(-1)
    if (container === undefined) root = value
    else if ("array" in container) container.array.push(value)
    else if (container.name !== reservedName) container.object[container.name] = value
  }
  const close = () => {
    const container = open.pop()!
    put("array" in container ? container.array : container.object)
  }
  const visitor: JSONVisitor = {
    onObjectBegin: () => {
      open.push({ object: {}, name: "" })
    },
    onObjectEnd: close,
    onArrayBegin: () => {
      open.push({ array: [] })
    },
    onArrayEnd: close,
    onObjectProperty: (name, _offset, _length, _line, _character, path) => {
      const container = open.at(-1)!
      if ("array" in container) return
      report(() => [...path(), name], Object.hasOwn(container.object, name) ? "is there twice" : nameProblem(name))
      container.name = name
    },
    onLiteralValue: (value, _offset, _length, _line, _character, path) => {
      if (typeof value === "string") report(path, textProblem(value))
      if (typeof value === "number") report(path, numberProblem(value))
      put(Object.is(value, -0) ? 0 : value)
    }
  }
  visit(text, visitor, strict)
  return { value: root, problems }
}

/** Assigned like any other name, it would change what an object is. */
const reservedName = "__proto__"

const nameProblem = (name: string): string | undefined =>
  name === reservedName ? "is a reserved name" : textProblem(name)

const textProblem = (text: string): string | undefined => {
  if (text.includes("\u0000")) return "must not contain NUL"
  return text.isWellFormed() ? undefined : "must not contain a lone surrogate"
}

/** By value, not by spelling: 1e21 is refused as 1000000000000000000000 is. */
const numberProblem = (value: number): string | undefined => {
  if (!Number.isFinite(value)) return "is a number out of range"
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? "is an integer beyond ±9007199254740991" : undefined
}
