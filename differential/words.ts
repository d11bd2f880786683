/** A sequence and its difference, for people. */
import type { Difference } from "./compare.ts"
import type { History, Moment } from "./history.ts"
import { inWords } from "./sequence.ts"

export const counterexample = ({ at, model, sequence, server }: Difference): string => {
  const moments = server.moments.slice(0, at).flatMap((moment) => momentLines(moment))
  const apart = at < Math.max(server.moments.length, model.moments.length)
    ? [...side("Postgres", server, at), ...side("the model", model, at)]
    : [`  Postgres ends with  ${server.rows}`, `  the model ends with ${model.rows}`]
  return [`${sequence.name}, ${sequence.connections} connections`, ...moments, "They differ:", ...apart].join("\n")
}

const side = (name: string, { moments }: History, at: number): ReadonlyArray<string> => {
  const moment = moments[at]
  return [`${name}:`, ...(moment === undefined ? ["  has nothing left to do"] : momentLines(moment))]
}

const momentLines = ({ step, told, waits }: Moment): ReadonlyArray<string> => [
  `  ${step.on}: ${inWords(step)}`,
  ...told.map(({ on, what }) => `      ${on} is told ${what}`),
  ...waits.map((wait) => `      ${wait.on} waits for ${wait.for.join(" and ")}`)
]
