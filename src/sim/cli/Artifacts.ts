/** The files that a failure leaves behind: its plan, and its timeline as text and as a page. */
import { Effect } from "effect"
import { statSync } from "node:fs"
import { readFile, writeFile } from "node:fs/promises"
import { dirname, join, resolve } from "node:path"
import { codeOf, makeDirectory } from "../../directories.ts"
import { signatureOf } from "../Campaign.ts"
import { root } from "../Keyed.ts"
import * as Plan from "../Plan.ts"
import type { Run } from "../Run.ts"
import type { Shrunk } from "../Shrink.ts"
import * as Timeline from "../Timeline.ts"
import { type Assets, assetNames, page } from "../TimelinePage.ts"
import type { Harness, Place } from "./Harness.ts"
import { byPlan, bySeed, commit } from "./Identity.ts"
import { WrongUsage } from "./Output.ts"
import { plural } from "./Report.ts"

/** Where failures are written unless somebody says otherwise. */
export const defaultFolder = "sim-report"

const asset = (name: string): Promise<string> => readFile(new URL(`../timeline/${name}`, import.meta.url), "utf8")

const assets = async (): Promise<Assets> => ({
  css: await asset(assetNames.css),
  scripts: await Promise.all(assetNames.scripts.map(asset))
})

export const promisesOf = ({ invariants }: Pick<Harness, "invariants">): ReadonlyMap<string, string> =>
  new Map(invariants.map(({ name, promise }) => [name, promise]))

const unwritable = (path: string) => (cause: unknown) =>
  new WrongUsage({ message: `${path} cannot be written (${codeOf(cause) ?? "for no reason that is known"})` })

/** Makes the folder for what somebody asked to have written, before anything long is begun for it. */
export const prepare = (folder: string): Effect.Effect<void, WrongUsage> =>
  folder === "" ? Effect.fail(new WrongUsage({ message: "\"\" is no folder to write to" })) : Effect.try({ try: () => void makeDirectory(resolve(folder)), catch: unwritable(folder) })

/** The same for one file. */
export const prepareFile = (file: string): Effect.Effect<void, WrongUsage> =>
  file === "" || statSync(file, { throwIfNoEntry: false })?.isDirectory() === true
    ? Effect.fail(new WrongUsage({ message: `"${file}" is no file to write to` }))
    : prepare(dirname(file))

const write = (file: string, content: string): Effect.Effect<void, WrongUsage> =>
  Effect.andThen(
    prepare(dirname(file)),
    Effect.tryPromise({ try: () => writeFile(file, content), catch: unwritable(file) })
  )

/** Writes a run that has kept its trace as a page. */
export const writePage = (place: Place, harness: Harness, run: Run, file: string, repeat: string | null) =>
  Effect.gen(function*() {
    const { engine, seed } = run.spec
    const shown = Timeline.timeline(run, { promises: promisesOf(harness) })
    const facts = [
      ["seed", `${seed} (${engine})`],
      ["commit", commit(place) ?? "unknown"],
      ["hash", run.hash],
      ["ended", `after ${(run.virtualMs / 1_000).toFixed(3)} s and ${run.steps} steps`],
      ["world", shapeLine(run)],
      ...(repeat === null ? [] : [["repeat", repeat] as const])
    ] as const
    const title = shown.broken[0]?.invariant ?? "held"
    yield* write(file, page(shown, { title: `${title} · ${seed}`, facts, assets: yield* Effect.promise(assets) }))
  })

const shapeLine = ({ shape }: Run): string => {
  const { apis, budget, leaseMs, operations, providerMs, workers, workspaces } = shape
  const sizes = [
    plural(operations, "operation"), workers === 0 ? "no worker but the API" : plural(workers, "worker"), plural(apis, "API"), plural(workspaces, "workspace")
  ].join(", ")
  return `${sizes}, lease ${leaseMs} ms, model ${providerMs} ms${budget === 0 ? "" : ", fine turns"}`
}

export interface Written {
  readonly plan: string
  readonly text: string
  readonly page: string
}

/** Everything about a failure in its smallest form. `run` is the run of `shrunk.spec`, with its trace. */
export const writeFailure = Effect.fnUntraced(function*(place: Place, harness: Harness, options: {
  readonly invariant: string
  readonly shrunk: Shrunk
  readonly run: Run
  readonly folder: string
  readonly foundBy: string
}) {
  const { folder, foundBy, invariant, run, shrunk } = options
  const name = `${slug(invariant)}-${root(signatureOf(invariant, shrunk)).word().toString(16).padStart(8, "0")}`
  const files = { plan: `${name}.json`, text: `${name}.txt`, page: `${name}.html` }
  const at = (file: string) => join(folder, file)
  const what = run.violations[0]?.detail ?? "Nothing broke"
  const comment = `${what}. Found by ${foundBy} on ${commit(place) ?? "an unknown commit"}.`
  const plan: Plan.Plan = { version: 1, name, comment, breaks: invariant, spec: shrunk.spec }
  const repeat = byPlan(place, at(files.plan))
  yield* write(at(files.plan), Plan.print(plan))
  yield* write(at(files.text), Timeline.text(run, { promises: promisesOf(harness) }))
  yield* writePage(place, harness, run, at(files.page), bySeed(place, shrunk.spec) ?? repeat)
  return { plan: at(files.plan), text: at(files.text), page: at(files.page) } satisfies Written
})

const slug = (words: string): string =>
  words.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-|-$/g, "").slice(0, 60)
