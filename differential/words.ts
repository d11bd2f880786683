/** A sequence and its difference, for people. */
import type { Difference } from "./compare.ts"
import type { History, Moment } from "./history.ts"
import type { AnyStep } from "./kind.ts"

export const counterexample = ({ at, model, sequence, server }: Difference): string => {
  const moments = server.moments.slice(0, at).flatMap((moment) => momentLines(moment))
  const apart = at < Math.max(server.moments.length, model.moments.length)
    ? [...side("Postgres", server, at), ...side("the model", model, at)]
    : ends(server.rows.split("\n"), model.rows.split("\n"))
  return [`${sequence.name}, ${sequence.connections} connections`, ...moments, "They differ:", ...apart].map(short).join("\n")
}

/** Of the tables in the end, those that are not the same. */
const ends = (server: ReadonlyArray<string>, model: ReadonlyArray<string>): ReadonlyArray<string> =>
  server.flatMap((line, place) =>
    line === model[place] ? [] : [`  Postgres ends with  ${line}`, `  the model ends with ${model[place]}`])

/** Digests are as good with six digits, and of the ids that sequences use only the last one is not the same. */
const short = (line: string): string =>
  line.replaceAll(/\b([0-9a-f]{6})[0-9a-f]{26}(?:[0-9a-f]{32})?\b/g, "$1…").replaceAll("01970000-0000-7000-8000-0000000000", "…")

const side = (name: string, { moments }: History, at: number): ReadonlyArray<string> => {
  const moment = moments[at]
  return [`${name}:`, ...(moment === undefined ? ["  has nothing left to do"] : momentLines(moment))]
}

const momentLines = ({ step, told, waits }: Moment): ReadonlyArray<string> => [
  `  ${step.on}: ${inWords(step)}`,
  ...told.map(({ on, what }) => `      ${on} is told ${what}`),
  ...waits.map((wait) => `      ${wait.on} waits for ${wait.for.join(" and ")}`)
]

/** A step in words. */
const inWords = ({ act, hurried }: AnyStep): string => {
  const { do: verb, ...rest } = act
  const details = Object.entries(rest).map(([name, value]) => `${name} ${valueInWords(value)}`)
  return [verb, ...details, ...(hurried === true ? ["in a hurry"] : [])].join(" ")
}

const valueInWords = (value: unknown): string => {
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.map(valueInWords).join(", ")
  if (typeof value !== "object" || value === null) return value === null ? "none" : String(value)
  return `(${Object.entries(value).map(([name, value]) => `${name} ${valueInWords(value)}`).join(" ")})`
}
