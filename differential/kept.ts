/** Sequences that once differed, or that show what has to be compared: they are compared on every run. */
import { Effect, Schema } from "effect"
import { readdir, readFile } from "node:fs/promises"
import * as Path from "node:path"
import { fileURLToPath } from "node:url"
import { WrongUsage } from "../src/sim/cli/Output.ts"
import { Sequence as Ports } from "./ports/sequence.ts"
import { Sequence as Statements } from "./statements/sequence.ts"

const folder = fileURLToPath(new URL("kept/", import.meta.url))

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Union([Statements, Ports])))

export const read = (path: string) =>
  Effect.tryPromise({
    try: () => readFile(path, "utf8"),
    catch: () => new WrongUsage({ message: `${path} cannot be read` })
  }).pipe(
    Effect.flatMap(decode),
    Effect.catchTag("SchemaError", () => Effect.fail(new WrongUsage({ message: `${path} holds no sequence` })))
  )

/** All of the folder, by name. */
export const readKept = Effect.gen(function*() {
  const files = yield* Effect.promise(() => readdir(folder))
  return yield* Effect.forEach(files.filter((name) => name.endsWith(".json")).toSorted(), (name) => read(Path.join(folder, name)))
})

export type Sequence = Ports | Statements
