/** What a run can be repeated by: the commit it was made on, and a command line. */
import { execFileSync } from "node:child_process"
import type { Spec } from "../Run.ts"
import type { Place } from "./Harness.ts"

/** The commit of the sources, with a mark if they were changed since. Null outside of a repository. */
export const commit = ({ root }: Pick<Place, "root">): string | null => {
  const git = (...args: ReadonlyArray<string>) =>
    execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim()
  try {
    return git("rev-parse", "--short=12", "HEAD") + (git("status", "--porcelain", "--", "src") === "" ? "" : "+changes")
  } catch {
    return null
  }
}

/** What seeds are made of when nobody says: each commit looks elsewhere, and says by itself where it has looked. */
export const baseOf = (commit: string | null): string => commit?.replace("+changes", "") ?? "indelible"

/** The line that repeats what a seed does. Null where the seed does not say everything. */
export const bySeed = ({ command, store }: Pick<Place, "command" | "store">, spec: Spec, verb = "replay"): string | null => {
  const { blind = [], deviations, engine, faults, seed, shape } = spec
  if (faults !== undefined || deviations !== undefined || shape !== undefined || blind.length > 0) return null
  return `${command} ${verb} ${flag("seed", seed)} --engine ${engine}${on(store)}`
}

/** The line that makes this run of an engine again: for those whose runs differ by more than their seed. */
export const byNumber = (
  { command, store }: Pick<Place, "command" | "store">,
  { base, blind = [], engine, index }: {
    readonly base: string
    readonly engine: string
    readonly index: number
    readonly blind?: ReadonlyArray<string> | undefined
  }
): string => {
  const unseen = blind.map((name) => ` ${flag("blind", name)}`).join("")
  return `${command} run --engine ${engine} ${flag("seed-base", base)} --only ${index}${unseen}${on(store)}`
}

/** What to say when a seed was made from another commit than this one, where it may mean another history. */
export const remarkOn = (seed: string, commit: string | null): string | null => {
  const [, made] = /^([0-9a-f]{12})\//.exec(seed) ?? []
  if (made === undefined || made === baseOf(commit)) return null
  return `this seed was made on ${made}, and this is ${commit ?? "unknown"}: it need not be the same history`
}

export const byPlan = ({ command, store }: Pick<Place, "command" | "store">, file: string): string =>
  `${command} replay ${flag("plan", file)}${on(store)}`

const on = (store: string | undefined): string => store === undefined ? "" : ` --store ${store}`

/** What begins with a dash would be taken for another flag. */
const flag = (name: string, value: string): string => `--${name}${value.startsWith("-") ? "=" : " "}${quoted(value)}`

/** As one word of a shell. */
export const quoted = (word: string): string =>
  /^[\w./:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
