/** A planted bug: a patch of the sources that a simulation has to notice, and how hard it may look. */
import { Effect, Result, Schema } from "effect"
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { decodeBody } from "../../domain/Decode.ts"
import { parse } from "../../domain/StrictJson.ts"
import { engineNames } from "../Engines.ts"
import { problemLines } from "../Plan.ts"
import type { Place } from "./Harness.ts"
import { WrongUsage } from "./Output.ts"

/** A text, or its lines. */
const Lines = Schema.Union([Schema.String, Schema.Array(Schema.String)])

export const Mutant = Schema.Struct({
  id: Schema.String.check(Schema.isPattern(/^[a-z0-9][a-z0-9-]{0,79}$/, { message: "must be words joined by dashes" })),
  /** Below the root of the package. */
  file: Schema.String.check(Schema.isPattern(/^(?!.*\.\.)[\w][\w./-]*$/, { message: "must be a path below the root" })),
  /** Is there exactly once. */
  find: Lines,
  replace: Lines,
  /** What is wrong with it, in one sentence. */
  breaks: Schema.String,
  /** Who has to notice. `scenario` and `corpus`: every plan there that names this bug. */
  engine: Schema.Literals([...engineNames, "scenario", "corpus"]),
  /** Within how many runs. */
  budget: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 10_000_000 })),
  /** The run that found it last. It is tried first, and counts as if it had come in its turn. */
  seen: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000_000 }))),
  /** Those that are expected to break; any will do if none is named. */
  invariants: Schema.optionalKey(Schema.Array(Schema.String)),
  /** Invariants that are not looked at. Such a bug has to survive: so these were the ones to notice it. */
  blind: Schema.optionalKey(Schema.Array(Schema.String)),
  /** Why it survives, which is then expected. */
  verdict: Schema.optionalKey(Schema.Struct({
    kind: Schema.Literals(["equivalent", "out of scope", "missing oracle"]),
    why: Schema.String
  }))
})
export type Mutant = typeof Mutant.Type

const decode = decodeBody(Schema.Union([Mutant, Schema.Array(Mutant)]))

/** Every planted bug of the folder, by its id. A file holds one of them, or a list. */
export const readMutants = Effect.fnUntraced(function*({ mutants }: Pick<Place, "mutants">) {
  const files = yield* Effect.tryPromise({
    try: () => readdir(mutants),
    catch: () => new WrongUsage({ message: `there is no folder ${fileURLToPath(mutants)}` })
  })
  const all: Array<Mutant> = []
  for (const file of files.filter((name) => name.endsWith(".json")).toSorted()) {
    const text = yield* Effect.promise(() => readFile(new URL(file, mutants), "utf8"))
    const found = Result.flatMap(parse(text), (json) => Result.mapError(decode(json), ({ errors }) => errors))
    if (Result.isFailure(found)) {
      const problems = problemLines(found.failure).map((problem) => `  ${problem}`)
      return yield* new WrongUsage({ message: [`${file} is no planted bug:`, ...problems].join("\n") })
    }
    all.push(...[found.success].flat() as ReadonlyArray<Mutant>)
  }
  const twice = all.find(({ id }, index) => all.findIndex((other) => other.id === id) !== index)
  return twice === undefined ? all : yield* new WrongUsage({ message: `two planted bugs are called ${twice.id}` })
})

/** Writes down which run found each of these, in their files. */
export const remember = Effect.fnUntraced(function*(
  { mutants }: Pick<Place, "mutants">,
  found: ReadonlyArray<{ readonly id: string; readonly found: boolean; readonly runs: number; readonly engine: string }>
) {
  const seen = new Map(found.flatMap(({ engine, found, id, runs }) =>
    found && engine !== "scenario" && engine !== "corpus" ? [[id, runs - 1] as const] : []))
  yield* Effect.promise(async () => {
    for (const file of (await readdir(mutants)).filter((name) => name.endsWith(".json"))) {
      const url = new URL(file, mutants)
      const entries = JSON.parse(await readFile(url, "utf8")) as Mutant | ReadonlyArray<Mutant>
      const told = (mutant: Mutant): Mutant => seen.has(mutant.id) ? { ...mutant, seen: seen.get(mutant.id)! } : mutant
      const after = Array.isArray(entries) ? (entries as ReadonlyArray<Mutant>).map(told) : told(entries as Mutant)
      await writeFile(url, `${JSON.stringify(after, null, 2)}\n`)
    }
  })
})

/** The source with the bug in it. Null: it is not there to be replaced, or not only once. */
export const patched = (source: string, { find, replace }: Pick<Mutant, "find" | "replace">): string | null => {
  const [wanted, instead] = [[find].flat().join("\n"), [replace].flat().join("\n")]
  const place = source.indexOf(wanted)
  if (wanted === "" || place < 0 || source.includes(wanted, place + 1) || wanted === instead) return null
  return source.slice(0, place) + instead + source.slice(place + wanted.length)
}

/** A copy of the sources with the bug in it, until the scope ends. Null: the patch does not apply. */
export const planted = Effect.fnUntraced(function*({ root, sources }: Pick<Place, "root" | "sources">, mutant: Mutant) {
  const at = fileURLToPath(root)
  const source = yield* Effect.promise(() => readFile(join(at, mutant.file), "utf8").catch(() => ""))
  const changed = patched(source, mutant)
  if (changed === null) return null
  const folder = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "indelible-mutant-"))),
    (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true }))
  )
  yield* Effect.promise(async () => {
    for (const name of sources) await cp(join(at, name), join(folder, name), { recursive: true })
    await symlink(join(at, "node_modules"), join(folder, "node_modules"), "dir")
    await writeFile(join(folder, mutant.file), changed)
  })
  return folder
})
