/** `npm run audit`: what it prints, what it never prints, and its exit codes. */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as Os from "node:os"
import * as Path from "node:path"
import { WorkspaceId } from "../src/domain/Ids.ts"
import { canary, prepare, sow } from "./auditPlants.ts"
import { run } from "./e2e/process.ts"
import { PgTest } from "./postgres.ts"
import * as World from "./world.ts"

/** A workspace that nothing was planted in. */
const other = WorkspaceId.make("others")

const audit = (...args: ReadonlyArray<string>) =>
  Effect.flatMap(PgTest, ({ url }) => run(["audit", "--database-url", Redacted.value(url), ...args], {}))

describe("npm run audit", () => {
  layer(World.layer(), { excludeTestServices: true })("on a database", (it) => {
    it.effect("says that nothing is wrong, then names what is, repairs what is safe, and never shows a text", () =>
      Effect.gen(function*() {
        const plants = yield* prepare
        const healthy = yield* audit()
        assert.match(healthy.output, /^5 workspaces, \d+ operations, \d+ memories: no difference\.\n$/)
        assert.strictEqual(healthy.code, 0)

        yield* sow(plants)
        const before = yield* World.dump
        const found = yield* audit()
        assert.strictEqual(found.code, 1)
        for (const { id, invariant, workspaceId } of plants) assert.include(found.output, `${invariant}  ${workspaceId}  ${id}`)
        assert.deepStrictEqual(yield* World.dump, before)

        const json = yield* audit("--json")
        const lines = json.output.trim().split("\n").map((text) => JSON.parse(text))
        assert.strictEqual(json.code, 1)
        assert.deepStrictEqual(lines.filter((line) => "difference" in line).length, lines.at(-1).summary.differences)
        const one = yield* audit("--workspace", "workspace-0")
        assert.match(one.output, /1 workspaces, 0 operations, 0 memories: \d differences \(never-overdrawn 1/)

        const repaired = yield* audit("--repair")
        assert.strictEqual(repaired.code, 1)
        assert.match(repaired.output, /^mended {2}tests {2}\S+ {2}queued version 1 for projection$/m)
        assert.match(repaired.output, /^Mended \d+\. Looking again\.$/m)
        const { accounts, authorizations, transfers } = before
        assert.deepInclude(yield* World.dump, { accounts, authorizations, transfers })
        for (const { output } of [found, json, one, repaired]) assert.notInclude(output, canary)
      }))

    it.effect("a workspace that does not exist is no healthy one", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* audit("--workspace", "otehrs"), {
          code: 2,
          output: "indelible audit: there is no such workspace\n"
        })
      }))

    it.effect("a repair that leaves nothing behind is a success", () =>
      Effect.gen(function*() {
        const sql = yield* PgClient.PgClient
        yield* World.open(10n, other)
        yield* World.startWorker()
        const { eventId } = yield* World.accept("indexed", World.body("I like tea"), other)
        yield* World.finished(eventId, other)
        yield* Effect.repeat(sql`select from projections where workspace_id = 'others'`, { until: (rows) => rows.length === 0 })
        yield* sql`delete from memory_vectors where workspace_id = 'others'`
        const look = ["--workspace", "others"]
        assert.strictEqual((yield* audit(...look)).code, 1)
        const repaired = yield* audit("--repair", ...look)
        assert.include(repaired.output, "queued version 1 for projection")
        assert.include(repaired.output, "1 workspaces, 1 operations, 1 memories: no difference.")
        assert.strictEqual(repaired.code, 0)
      }))
  })

  layer(PgTest.empty)("where it cannot look", (it) => {
    it.effect("it says why in one line, and does not call that healthy", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* audit(), {
          code: 3,
          output: "indelible audit: this database is not at the schema of this release: " +
            "start the service on it first, or use its own release\n"
        })
        assert.strictEqual((yield* run(["audit", "--database-url", "postgres://u:secret@127.0.0.1:9/d"], {})).code, 3)
        const nowhere = yield* run(["audit"], { DATA_DIR: Path.join(Os.tmpdir(), "indelible-nothing-here") })
        assert.include(nowhere.output, "there is no database in DATA_DIR")
        assert.strictEqual(nowhere.code, 3)
      }))

    it.effect("a question that is asked wrongly has a code of its own", () =>
      Effect.gen(function*() {
        assert.strictEqual((yield* audit("--repare")).code, 2)
        assert.strictEqual((yield* audit("--workspace", "Not A Name")).code, 2)
        assert.strictEqual((yield* audit("--overdue", "0")).code, 2)
        const own = yield* run(["audit", "--database-url", ""], { DATA_DIR: Path.join(Os.tmpdir(), "indelible-nothing-here") })
        assert.include(own.output, "flag --database-url: \"<redacted>\". Expected: a URL, or no such flag")
        assert.strictEqual(own.code, 2)
        const wrong = yield* run(["audit", "--database-url", "mysql://u:secret@h/d"], {})
        assert.include(wrong.output, "DATABASE_URL must be a URL")
        assert.notInclude(wrong.output, "secret")
        assert.strictEqual(wrong.code, 2)
        assert.strictEqual((yield* run(["audit", "--help"], {})).code, 0)
      }))
  })
})
