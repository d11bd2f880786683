/** `explain` and `self-test`: what the simulator knows, and whether it may be believed. */
import { Effect } from "effect"
import { Command } from "effect/cli"
import { engineNames, engineWords } from "../Engines.ts"
import { faultKinds } from "../Faults.ts"
import type { Plan } from "../Plan.ts"
import { checks } from "../selfTest.ts"
import { load, type Place } from "./Harness.ts"
import { finish, json, paint, withProgress } from "./Output.ts"
import { table } from "./Report.ts"
import { readPlans } from "./Scenario.ts"
import { storeNames, storeWords } from "./Store.ts"

export const explainCommand = (place: Place) =>
  Command.make("explain", { json }, ({ json }) => explain(place, json)).pipe(
    Command.withDescription("List faults, invariants, states to reach, engines and scenarios, and what exit codes mean")
  )

/** What the process leaves with. */
const exitCodes = {
  0: "everything held",
  1: "an invariant failed, or a planted bug was not found",
  2: "wrong usage, or a file that cannot be used",
  3: "the harness cannot be trusted: two histories of one seed, a state not reached, a plan gone stale, a run not made or without end",
  130: "interrupted"
} as const

const explain = Effect.fnUntraced(function*(place: Place, asJson: boolean) {
  const { invariants, quotas, ...harness } = yield* Effect.promise(() => load(place.module))
  const told = (plans: ReadonlyArray<Plan>) => plans.map(({ bug, comment, name }) => ({ name, comment, bug: bug ?? null }))
  const scenarios = told(yield* readPlans(place, "scenarios", { ...harness, invariants, quotas }))
  const corpus = told(yield* readPlans(place, "corpus", { ...harness, invariants, quotas }))
  yield* finish(asJson, { faults: faultKinds, invariants, quotas, engines: engineWords, stores: storeWords, scenarios, corpus, exitCodes }, [
    ...table("engines", engineNames.map((name) => [name, engineWords[name]])),
    "",
    ...table("stores", storeNames.map((name) => [name, storeWords[name]])),
    "",
    ...table("faults", Object.entries(faultKinds)),
    "",
    ...table("invariants", invariants.map(({ name, promise }) => [name, promise])),
    "",
    ...table("states to reach", quotas.map(({ meaning, perThousand, state }) =>
      [state, `${meaning} (${perThousand} of 1,000 runs)`])),
    "",
    ...table("scenarios", scenarios.map(({ comment, name }) => [name, comment])),
    "",
    ...table("bugs that were found", corpus.map(({ comment, name }) => [name, comment])),
    "",
    ...table("exit codes", Object.entries(exitCodes))
  ], 0)
})

export const selfTestCommand = Command.make("self-test", { json }, ({ json }) =>
  Effect.gen(function*() {
    const results: Array<{ readonly promise: string; readonly finding: string | null }> = []
    const conclude = Effect.suspend(() => {
      const lines = results.map(({ finding, promise }) =>
        finding === null ? `${paint.green("holds")}  ${promise}` : `${paint.red("fails")}  ${promise}: ${finding}`)
      return finish(json, { checks: results }, lines, results.some(({ finding }) => finding !== null) ? 3 : 0)
    })
    yield* Effect.forEach(checks, ({ promise, run }) =>
      // Checks take long: whoever wants to stop gets a turn between them.
      Effect.as(Effect.sleep(0), results.push({ promise, finding: run() })), { discard: true }).pipe(
        withProgress(() => "trying the kernel on this Effect"),
        Effect.onInterrupt(() => conclude)
      )
    yield* conclude
  })).pipe(Command.withDescription("Try what the simulator stands on, on the Effect that is installed"))
