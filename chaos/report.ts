/** An outcome in words: what went wrong, what became of what was asked, and whether everything held. */
import type { Outcome } from "./run.ts"

/** The most findings of one kind that are shown. */
const shown = 60

export const inWords = (outcome: Outcome, again: string): string =>
  [
    section("Faults: planned, and how often they met something", Object.entries(outcome.faults).toSorted().map(
      ([kind, { fired, planned }]) => `${pad(planned)}${pad(fired)}  ${kind}`
    )),
    section("What the model's side did", counted(outcome.provider)),
    section("What clients were told", counted(outcome.told)),
    section("Operations in the end", counted(outcome.operations)),
    section("Errors in the logs that a fault explains", counted(outcome.errors)),
    `Processes were started ${outcome.starts} times, and ${outcome.droppedNotifications} notifications were dropped.`,
    outcome.unrest === "no answer"
      ? "The service gave no answer after everything was healed."
      : outcome.unrest.length > 0
      ? section("Never came to rest", outcome.unrest.map(({ id, projection, state, workspace }) =>
        `${workspace}  ${id}  ${state}, projection ${projection}`))
      : `At rest ${(outcome.restMs / 1_000).toFixed(1)} s after the last fault.`,
    section(`Audit: exit code ${outcome.audit.code}`, outcome.audit.lines),
    section(
      "Clients were told what cannot be",
      outcome.breaches.map(({ about, detail, rule, workspace }) => `${rule}  ${workspace}  ${about}  ${detail}`)
    ),
    section(
      "Processes wrote what was not theirs to write",
      outcome.trespasses.map(({ about, detail, rule, workspace }) => `${rule}  ${workspace}  ${about}  ${detail}`)
    ),
    section("Processes that misbehaved", outcome.mishaps),
    section("Errors in the logs that no fault explains", outcome.defects),
    section("Texts of clients in logs", outcome.leaks),
    outcome.holds ? "Everything held." : "Something did not hold.",
    `Again: ${again}`
  ].filter((part) => part !== "").join("\n\n")

const pad = (count: number): string => String(count).padStart(6)

const counted = (counts: Readonly<Record<string, number>>): ReadonlyArray<string> =>
  Object.entries(counts).toSorted().map(([name, count]) => `${pad(count)}  ${name}`)

const section = (title: string, lines: ReadonlyArray<string>): string =>
  lines.length === 0
    ? ""
    : [title, ...lines.slice(0, shown).map((line) => `  ${line}`), ...(lines.length > shown ? ["  …"] : [])].join("\n")
