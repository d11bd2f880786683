/** Settings of which one bounds another: what was set may not contradict itself, and a default gives way to what was set. */
import { Duration } from "effect"
import { defaultSettings } from "../services/Settings.ts"

/** How long the provider is waited for where nobody says so. */
export const openAiTimeoutDefault = Duration.minutes(2)

const { attemptBound, lease, retry } = defaultSettings

/** The defaults of all that is compared, in the unit of their names. */
const defaults = {
  LEASE_SECONDS: Duration.toSeconds(lease),
  OPENAI_TIMEOUT_SECONDS: Duration.toSeconds(openAiTimeoutDefault),
  ATTEMPT_BOUND_SECONDS: Duration.toSeconds(attemptBound),
  BACKOFF_BASE_MS: retry.backoffBaseMs,
  BACKOFF_CAP_MS: retry.backoffCapMs,
  RATE_LIMIT_MAX_AGE_SECONDS: retry.rateLimitMaxAgeMs / 1_000,
  INVALID_OUTPUT_ATTEMPTS: retry.invalidOutputAttempts,
  MAX_ATTEMPTS: retry.maxAttempts
}
type Name = keyof typeof defaults

const names = Object.keys(defaults) as ReadonlyArray<Name>

/** The first is never more than the second. Each is on one side only, so that giving way contradicts nothing else. */
const bounds: ReadonlyArray<readonly [lesser: Name, greater: Name]> = [
  // An attempt whose lease outlives it holds its operation for nobody.
  ["LEASE_SECONDS", "ATTEMPT_BOUND_SECONDS"],
  ["OPENAI_TIMEOUT_SECONDS", "ATTEMPT_BOUND_SECONDS"],
  ["BACKOFF_BASE_MS", "BACKOFF_CAP_MS"],
  ["BACKOFF_BASE_MS", "RATE_LIMIT_MAX_AGE_SECONDS"],
  ["INVALID_OUTPUT_ATTEMPTS", "MAX_ATTEMPTS"]
]

type Given = { readonly [N in Name]?: string }

/** Milliseconds for a length of time, so that any two can be compared. */
const unit = (name: Name): number => name.endsWith("_SECONDS") ? 1_000 : 1

const amount = (name: Name, given: Given): number => Number(given[name] ?? defaults[name]) * unit(name)

/** One sentence for each pair that was set and cannot be meant. */
export const contradictions = (given: Given): ReadonlyArray<string> =>
  bounds.flatMap(([lesser, greater]) =>
    given[lesser] !== undefined && given[greater] !== undefined && amount(lesser, given) > amount(greater, given)
      ? [`${lesser} must not be more than ${greater}`]
      : []
  )

/** The same with each default that what was set leaves no room for moved just as far as it has to. */
export const reconciled = (given: Given): Given => {
  const moved = names.flatMap((name) => {
    if (given[name] !== undefined) return []
    const ceilings = bounds.flatMap(([lesser, greater]) => lesser === name && given[greater] !== undefined ? [greater] : [])
    const floors = bounds.flatMap(([lesser, greater]) => greater === name && given[lesser] !== undefined ? [lesser] : [])
    const least = Math.max(amount(name, given), ...floors.map((floor) => amount(floor, given)))
    const value = Math.min(least, ...ceilings.map((ceiling) => amount(ceiling, given)))
    return [[name, String(Math.ceil(value / unit(name)))]]
  })
  return { ...given, ...Object.fromEntries(moved) }
}

/** Models of known size. Those that can shorten their vectors give that many at most, all others exactly. */
const models: Record<string, { readonly dimension: number; readonly shortens: boolean }> = {
  "text-embedding-3-large": { dimension: 3_072, shortens: true },
  "text-embedding-3-small": { dimension: 1_536, shortens: true },
  "text-embedding-ada-002": { dimension: 1_536, shortens: false },
  "nomic-embed-text": { dimension: 768, shortens: false },
  "all-minilm": { dimension: 384, shortens: false },
  "mxbai-embed-large": { dimension: 1_024, shortens: false }
}

/** The size of the vectors of a model as it is asked for, or what is wrong with that. */
export const embeddingDimension = (
  model: string,
  given: number | null,
  max: number
): { readonly dimension: number } | { readonly wrong: string } => {
  const known = models[model]
  if (given === null) {
    if (known === undefined) return { wrong: "OPENAI_EMBEDDING_DIMENSIONS is needed: the size of this embedding model is not known" }
    return known.dimension <= max
      ? { dimension: known.dimension }
      : { wrong: `OPENAI_EMBEDDING_DIMENSIONS is needed: this embedding model gives more than ${max}` }
  }
  if (known === undefined || given === known.dimension || (known.shortens && given < known.dimension)) return { dimension: given }
  return {
    wrong: known.shortens
      ? `OPENAI_EMBEDDING_DIMENSIONS must not be more than the ${known.dimension} that OPENAI_EMBEDDING_MODEL gives`
      : `OPENAI_EMBEDDING_DIMENSIONS must be the ${known.dimension} that OPENAI_EMBEDDING_MODEL gives, or be left out`
  }
}
