/** Errors that are planted in a copy of the model, to see whether a comparison notices each of them and makes it small. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { execFile } from "node:child_process"
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type * as Campaign from "../../differential/campaign.ts"
import { patched } from "../../src/sim/cli/Mutant.ts"
import { PgTest } from "../postgres.ts"

export interface Planted {
  readonly id: string
  /** The steps that are left when it has been made small. Not given: it is enough that it is noticed. */
  readonly steps?: number
  /** Sequences of this seed meet it soon. */
  readonly seed?: string
  readonly file: string
  readonly find: string
  readonly replace: string
}

/** Each is found by sequences of this kind. */
export const suite = (kind: "statements" | "ports", errors: ReadonlyArray<Planted>) =>
  describe(`an error in the model is noticed by sequences of ${kind}:`, () => {
    const root = fileURLToPath(new URL("../../", import.meta.url))

    for (const error of errors) {
      it.effect(error.id, () =>
        Effect.gen(function*() {
          const { url } = yield* PgTest
          const folder = yield* copied(root, error)
          // Enough for all that it tries: Postgres picks whom a circle costs, so how many that takes is not the same each time.
          const tries = error.steps === undefined ? 0 : 150
          const found = yield* differences(folder, [
            "--kind", kind, "--seed", error.seed ?? "planted", "--tries", `${tries}`, "--database-url", Redacted.value(url)
          ])
          assert.strictEqual(found.length, 1)
          if (error.steps !== undefined) assert.isAtMost(found[0]!.difference.sequence.steps.length, error.steps)
        }).pipe(Effect.provide(PgTest.empty)), 300_000)
    }
  })

const copied = (root: string, error: Planted) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const folder = await mkdtemp(join(tmpdir(), "indelible-planted-"))
      for (const name of ["src", "differential", "package.json"]) await cp(join(root, name), join(folder, name), { recursive: true })
      await symlink(join(root, "node_modules"), join(folder, "node_modules"), "dir")
      const source = patched(await readFile(join(folder, error.file), "utf8"), error)
      if (source === null) throw new Error(`${error.file} has changed: "${error.id}" cannot be planted`)
      await writeFile(join(folder, error.file), source)
      return folder
    }),
    (folder) => Effect.promise(() => rm(folder, { recursive: true, force: true }))
  )

/** What the command of a copy finds. It says so by its exit code, too. */
const differences = (folder: string, args: ReadonlyArray<string>) =>
  Effect.callback<Campaign.Outcome["found"]>((resume) => {
    const all = ["differential/main.ts", "--sequences", "3000", "--most", "1", "--lanes", "1", "--json", ...args]
    execFile(process.execPath, all, { cwd: folder, maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      if (error?.code !== 1) return resume(Effect.die(new Error(`exit code ${error?.code ?? 0}: ${stderr}`)))
      resume(Effect.succeed((JSON.parse(stdout) as ReadonlyArray<Campaign.Outcome>).flatMap(({ found }) => found)))
    })
  })
