/** Describes a defect for the log without any text that a caller may have sent: class names and places in the code. */
import type { Cause } from "effect"

const framesMax = 12
const causesMax = 3
const frame = /((?:node:|src\/|node_modules\/)[\w./@+-]+:\d+):\d+\)?$/
const name = /^[A-Za-z_$][\w$./-]{0,63}$/

/** One entry for each reason: what kind of error it was, and where it came from. */
export const describe = (cause: Cause.Cause<unknown>): ReadonlyArray<string> =>
  cause.reasons.map((reason) => {
    if (reason._tag === "Interrupt") return "Interrupt"
    return `${reason._tag} ${describeError(reason._tag === "Die" ? reason.defect : reason.error)}`
  })

const describeError = (error: unknown, depth = 1): string => {
  if (typeof error !== "object" || error === null) return typeof error
  const origin = "cause" in error && error.cause !== undefined && depth < causesMax
    ? ` caused by ${describeError(error.cause, depth + 1)}`
    : ""
  return [classOf(error), ...placesOf(error)].join(" ") + origin
}

const classOf = (error: object): string => {
  const names = [
    "_tag" in error ? error._tag : undefined,
    "name" in error ? error.name : undefined,
    error.constructor?.name
  ]
  return names.find((given): given is string => typeof given === "string" && name.test(given)) ?? "Object"
}

/** The frames of the stack. What stands before them is the message, which is left out even if it looks like frames. */
const placesOf = (error: object): ReadonlyArray<string> => {
  if (!(error instanceof Error) || typeof error.stack !== "string") return []
  const at = error.message === "" ? -1 : error.stack.lastIndexOf(error.message)
  const frames = at === -1 ? error.stack : error.stack.slice(at + error.message.length)
  return frames.split("\n").flatMap((line) => {
    const place = /^\s+at /.test(line) ? frame.exec(line)?.[1] : undefined
    return place === undefined ? [] : [place]
  }).slice(0, framesMax)
}
