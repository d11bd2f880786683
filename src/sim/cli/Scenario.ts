/** `scenario` and `corpus`: runs that are known by name, each a plan with a story. */
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { readdir } from "node:fs/promises"
import { judge, type Plan } from "../Plan.ts"
import type { Run } from "../Run.ts"
import { type Harness, load, type Place } from "./Harness.ts"
import { commit, quoted } from "./Identity.ts"
import { finish, json, paint, withProgress, WrongUsage } from "./Output.ts"
import * as Pool from "./Pool.ts"
import { exitCodes, partingOf, partingWords, readPlan, repeated } from "./Repeat.ts"

/** The folders of plans: what has to hold by name, and the bugs that were found. */
export const shelves = ["scenarios", "corpus"] as const
export type Shelf = (typeof shelves)[number]

const one: Readonly<Record<Shelf, string>> = { scenarios: "scenario", corpus: "plan in the corpus" }

export const scenarioCommand = (place: Place) =>
  Command.make("scenario", {
    names: Argument.String("name").pipe(Argument.withDescription("Names of scenarios, or all"), Argument.atLeast(1)),
    json
  }, (options) => replayed(place, "scenarios", options).pipe(Effect.scoped)).pipe(
    Command.withDescription("Run scenarios: each has to hold, and to pass through what it is about")
  )

export const corpusCommand = (place: Place) =>
  Command.make("corpus", {
    names: Argument.String("name").pipe(Argument.withDescription("Names of plans; all, unless given"), Argument.atLeast(0)),
    json
  }, ({ json, names }) => replayed(place, "corpus", { json, names: names.length === 0 ? ["all"] : names }).pipe(Effect.scoped)).pipe(
    Command.withDescription("Run the plans of all bugs that were found: each has to hold, and to come to where it broke")
  )

/** Every plan of a folder, by its name. A file is named as the plan in it. */
export const readPlans = Effect.fnUntraced(function*(place: Pick<Place, Shelf>, shelf: Shelf, harness: Harness) {
  const folder = place[shelf]
  const files = yield* Effect.promise(() => readdir(folder).catch((): Array<string> => []))
  const plans: Array<Plan> = []
  for (const file of files.filter((name) => name.endsWith(".json")).toSorted()) {
    const plan = yield* readPlan(new URL(file, folder), harness)
    if (`${plan.name}.json` !== file) return yield* new WrongUsage({ message: `${file} holds the plan ${plan.name}` })
    plans.push(plan)
  }
  return plans
})

/** What became of one plan. */
export interface PlanReport {
  readonly name: string
  readonly comment: string
  readonly holds: ReadonlyArray<string>
  readonly bug: string | null
  readonly verdict: ReturnType<typeof judge>["verdict"] | "two histories"
  readonly findings: ReadonlyArray<string>
  readonly seed: string
  readonly traceHash: string
  readonly fired: Run["fired"]
  readonly violations: Run["violations"]
  readonly repeat: string
}

const replayed = Effect.fnUntraced(function*(place: Place, shelf: Shelf, { json, names }: {
  readonly names: ReadonlyArray<string>
  readonly json: boolean
}) {
  const harness = yield* Effect.promise(() => load(place.module))
  const all = yield* readPlans(place, shelf, harness)
  if (all.length === 0) return yield* new WrongUsage({ message: `there is no ${one[shelf]}` })
  const unknown = names.filter((name) => name !== "all" && !all.some((plan) => plan.name === name))
  if (unknown.length > 0) {
    const known = all.map(({ name }) => name).join(", ")
    return yield* new WrongUsage({ message: `there is no ${one[shelf]} ${unknown.join(", ")}; there are: ${known}` })
  }
  const chosen = names.includes("all") ? all : all.filter(({ name }) => names.includes(name))
  const pool = yield* Pool.make(place.module, 2, place.patienceMs)
  const reports: Array<PlanReport> = []
  const conclude = Effect.suspend(() => {
    const unseen = chosen.map(({ name }) => name).filter((name) => !reports.some((report) => report.name === name))
    const data = { commit: commit(place), [shelf]: reports, unseen }
    const left = unseen.length === 0 ? [] : [paint.red(`not looked at: ${unseen.join(", ")}`)]
    return finish(json, data, [...reports.flatMap(planLines), ...left, paint.dim(`commit ${data.commit ?? "unknown"}`)], codeOf(reports))
  })
  yield* Effect.forEach(chosen, Effect.fnUntraced(function*(plan) {
    const { isOne, run } = yield* repeated(pool, plan.spec)
    const { findings, verdict } = judge(plan, run)
    const isTwo = !isOne && verdict !== "broke"
    reports.push({
      name: plan.name,
      comment: plan.comment,
      holds: plan.holds ?? [],
      bug: plan.bug ?? null,
      verdict: isTwo ? "two histories" : verdict,
      findings: isTwo ? partingWords(yield* partingOf(pool, plan.spec)) : findings,
      seed: run.spec.seed,
      traceHash: run.hash,
      fired: run.fired,
      violations: run.violations,
      repeat: `${place.command} replay --plan ${quoted(fileOf(place, shelf, plan.name))}`
    })
  }), { discard: true }).pipe(withProgress(() => `${chosen.length} plans`), Effect.onInterrupt(() => conclude))
  yield* conclude
})

const fileOf = (place: Place, shelf: Shelf, name: string): string =>
  decodeURIComponent(new URL(`${name}.json`, place[shelf]).pathname).replace(decodeURIComponent(place.root.pathname), "")

const codeOf = (reports: ReadonlyArray<PlanReport>): number => {
  const codes = reports.map(({ verdict }) => verdict === "two histories" ? 3 : exitCodes[verdict])
  return codes.includes(1) ? 1 : codes.includes(3) ? 3 : 0
}

const planLines = ({ comment, findings, fired, name, repeat, verdict }: PlanReport): ReadonlyArray<string> => {
  const state = verdict === "held" ? paint.green("held") : paint.red(verdict)
  return [
    `${state}  ${paint.bold(name)}  ${fired.map(({ kind }) => kind).join(", ")}`,
    `      ${paint.dim(comment)}`,
    ...findings.map((finding) => `      ${paint.red(finding)}`),
    ...(verdict === "held" ? [] : [`      repeat: ${repeat}`])
  ]
}
