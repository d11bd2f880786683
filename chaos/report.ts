/** An outcome in words: what went wrong, what became of what was asked, and whether everything held. */
import { rules } from "./history/check.ts"
import type { Breach } from "./history/told.ts"
import type { Outcome } from "./run.ts"

/** The most findings of one kind that are shown. */
const shown = 60

export const inWords = (outcome: Outcome, again: string): string =>
  [
    section("Faults: planned, and how often they met something", Object.entries(outcome.faults).toSorted().map(
      ([kind, { fired, planned }]) => `${pad(planned)}${pad(fired)}  ${kind}`
    )),
    section("What the model's side did", counted(outcome.provider)),
    section(`What clients were told: ${sum(outcome.told)} answers`, counted(outcome.told)),
    section(`Operations in the end: ${sum(outcome.operations)}`, counted(outcome.operations)),
    section("Errors in the logs that a fault explains", counted(outcome.errors)),
    `Processes were started ${outcome.starts} times, and ${outcome.droppedNotifications} notifications were dropped.`,
    outcome.unrest === "no answer"
      ? "The service gave no answer after everything was healed."
      : outcome.unrest.length > 0
      ? section("Never came to rest", outcome.unrest.map(({ id, projection, state, workspace }) =>
        `${workspace}  ${id}  ${state}, projection ${projection}`))
      : `At rest ${(outcome.restMs / 1_000).toFixed(1)} s after the last fault.`,
    section(`Audit: exit code ${outcome.audit.code}`, outcome.audit.lines),
    section(historyOf(outcome), outcome.breaches.map(inLine)),
    section(journalOf(outcome), outcome.trespasses.map(inLine)),
    section("Processes that misbehaved", outcome.mishaps),
    section("Errors in the logs that no fault explains", outcome.defects),
    section("Texts of clients in logs", outcome.leaks),
    outcome.holds ? "Everything held." : "Something did not hold.",
    `Again: ${again}`
  ].filter((part) => part !== "").join("\n\n")

const sum = (counts: Readonly<Record<string, number>>): number => Object.values(counts).reduce((all, one) => all + one, 0)

const historyOf = ({ breaches, told }: Outcome): string => {
  const held = `History of the clients: what they were told ${sum(told)} times is held against ${rules.length} rules`
  return `${held}: ${breaches.length === 0 ? "no breach." : `${breaches.length} breaches`}`
}

const journalOf = ({ journal: { changes, plans, retries, takeovers }, trespasses }: Outcome): string => {
  const seen = `Journal of the database: ${changes} changes, of them ${plans} plans, ${takeovers} takeovers, ${retries} manual retries`
  return `${seen}: ${trespasses.length === 0 ? "each by who had the right to it." : `${trespasses.length} by who had no right to it`}`
}

const inLine = ({ about, detail, rule, workspace }: Breach): string => `${rule}  ${workspace}  ${about}  ${detail}`

const pad = (count: number): string => String(count).padStart(6)

const counted = (counts: Readonly<Record<string, number>>): ReadonlyArray<string> =>
  Object.entries(counts).toSorted().map(([name, count]) => `${pad(count)}  ${name}`)

/** A title that says all that there is when nothing follows it ends with a full stop. Any other is left out with its lines. */
const section = (title: string, lines: ReadonlyArray<string>): string =>
  lines.length === 0 && !title.endsWith(".")
    ? ""
    : [title, ...lines.slice(0, shown).map((line) => `  ${line}`), ...(lines.length > shown ? ["  …"] : [])].join("\n")
