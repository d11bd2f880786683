/**
 * Planted bugs against chaos: each is patched into a copy of the sources, and a run of that copy has to end with a
 * difference. What these five break is what the whole service is for.
 */
import { Effect } from "effect"
import { execFile } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { type Mutant, planted, readMutants } from "../src/sim/cli/Mutant.ts"
import type { Outcome } from "./run.ts"

const place = {
  root: new URL("../", import.meta.url),
  mutants: new URL("../test/mutants/", import.meta.url),
  sources: ["src", "chaos", "bin", "test/fakeOpenAi.ts", "package.json"]
}

/** By id, and what a person would call it. */
export const chosen: Readonly<Record<string, string>> = {
  "epoch-not-checked-anywhere": "no fencing",
  "every-authorization-ends-again": "settle twice",
  "redacted-before-the-commit": "redaction before the commit",
  "refunded-when-nobody-answers": "refund on a lost acknowledgement",
  "nobody-takes-over": "expired leases are skipped"
}

export interface Asked {
  readonly seed: string
  readonly forTime: string
  readonly clients: number
}

/** What a run of the copy found, by who found it; nothing when the bug went unnoticed. */
export interface Verdict {
  readonly id: string
  readonly breaks: string
  readonly findings: Readonly<Record<string, ReadonlyArray<string>>>
  /** Why there was no run at all. */
  readonly problem: string | null
}

export const isCaught = ({ findings, problem }: Verdict): boolean => problem === null && Object.keys(findings).length > 0

/** The bugs of these ids, or those that no folder of bugs has. */
export const find = Effect.fnUntraced(function*(ids: ReadonlyArray<string>) {
  const all = new Map((yield* readMutants(place)).map((mutant) => [mutant.id, mutant]))
  return {
    mutants: ids.flatMap((id) => all.get(id) ?? []),
    unknown: ids.filter((id) => !all.has(id))
  }
})

/** Runs chaos on a copy with this bug in it. */
export const judge = Effect.fnUntraced(function*(mutant: Mutant, asked: Asked) {
  const { breaks, id } = mutant
  const folder = yield* planted(place, mutant)
  if (folder === null) return { id, breaks, findings: {}, problem: `it is not exactly once in ${mutant.file}` } satisfies Verdict
  // The user of the database server has to find its way.
  Fs.chmodSync(folder, 0o711)
  const { code, stderr, stdout } = yield* run(folder, asked)
  if (code !== 0 && code !== 1) {
    return { id, breaks, findings: {}, problem: `it could not run: ${stderr.trim().split("\n").slice(-3).join(" ")}` } satisfies Verdict
  }
  return { id, breaks, findings: findingsOf(JSON.parse(stdout) as Outcome), problem: null } satisfies Verdict
}, Effect.scoped)

/** A copy that never comes to rest is not waited for as long as a sound one: the audit counts as stuck what waits for 30 s. */
const rest = "45s"

const run = (folder: string, { clients, forTime, seed }: Asked) =>
  Effect.callback<{ readonly code: number; readonly stdout: string; readonly stderr: string }>((resume) => {
    const main = Path.join(folder, "chaos/main.ts")
    const args = [main, "--seed", seed, "--for", forTime, "--clients", String(clients), "--rest", rest, "--json"]
    // What it would keep goes with the copy.
    const env = { ...process.env, TMPDIR: folder }
    const child = execFile(process.execPath, args, { env, maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) => {
      resume(Effect.succeed({ code: error === null ? 0 : typeof error.code === "number" ? error.code : 3, stdout, stderr }))
    })
    // It ends its own processes: somebody who stops waiting only has to ask.
    return Effect.callback<void>((done) => {
      child.once("exit", () => done(Effect.void))
      child.kill("SIGTERM")
    })
  })

/** Everything that did not hold, by who noticed. */
export const findingsOf = (outcome: Outcome): Verdict["findings"] => {
  const { audit, breaches, defects, leaks, mishaps, trespasses, unrest } = outcome
  const broken = (all: Outcome["breaches"]) => all.map(({ about, detail, rule, workspace }) => `${rule}  ${workspace}  ${about}  ${detail}`)
  const found: Record<string, ReadonlyArray<string>> = {
    audit: audit.code === 0 ? [] : audit.lines,
    "history of the clients": broken(breaches),
    "journal of the database": broken(trespasses),
    "rest": unrest === "no answer" ? [unrest] : unrest.map(({ id, state, workspace }) => `${workspace}  ${id}  is still ${state}`),
    "processes": mishaps,
    "logs": [...defects, ...leaks]
  }
  return Object.fromEntries(Object.entries(found).filter(([, lines]) => lines.length > 0))
}

/** The most findings of one kind that are shown. */
const shown = 6

export const inWords = (verdict: Verdict, again: string): string =>
  [
    `${isCaught(verdict) ? "caught" : verdict.problem === null ? "MISSED" : "BROKEN"}  ${verdict.id}`,
    `  ${verdict.breaks}`,
    ...(verdict.problem === null ? [] : [`  ${verdict.problem}`]),
    ...Object.entries(verdict.findings).flatMap(([who, lines]) => [
      `  by ${who}: ${lines.length}`,
      ...lines.slice(0, shown).map((line) => `    ${line.slice(0, 240)}`),
      ...(lines.length > shown ? ["    …"] : [])
    ]),
    `  Again: ${again}`
  ].join("\n")
