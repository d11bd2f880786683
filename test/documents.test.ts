/** Documents name what there is. */
import { assert, describe, it } from "@effect/vitest"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { kindOf, schedule } from "../chaos/schedule.ts"
import { variables } from "../src/adapters/Configuration.ts"

const root = Path.join(import.meta.dirname, "..")
const read = (...path: ReadonlyArray<string>) => Fs.readFileSync(Path.join(root, ...path), "utf8")

describe("documents", () => {
  it("the README and the example environment name every variable that is read, and no other", () => {
    const readme = read("README.md")
    const named = [...read(".env.example").matchAll(/^#?([A-Z_]+)=/gm)].map(([, name]) => name!)
    assert.deepStrictEqual(named.toSorted(), [...variables].toSorted())
    assert.isEmpty(variables.filter((name) => !readme.includes(`\`${name}\``)))
  })

  it("every row of the crash table names a test, and a scenario, a contract case or a kind of chaos, that exist", () => {
    const text = read("ARCHITECTURE.md")
    const table = text.slice(text.indexOf("| transaction, or gap"))
    const rows = table.slice(0, table.indexOf("\n\n")).split("\n").slice(2)
    assert.isAbove(rows.length, 15)
    for (const row of rows) {
      const [shown, by] = row.split("|").slice(-3, -1).map((cell) => cell.trim())
      const [, file, name] = /^`([a-z/]+)`: (.+)$/.exec(shown!) ?? []
      assert.isString(file, `no test is named in: ${row}`)
      assert.include(read("test", `${file}.test.ts`), name!, row)
      const parts = by!.split(" · ")
      assert.isNotEmpty(parts)
      for (const part of parts) assert.isTrue(exists(part), `there is no ${part}: ${row}`)
    }
  })
})

/** What ten minutes of chaos bring. */
const cast = { apis: ["api-1"], workers: ["worker-1"], leaseMs: 1_000 }
const chaos = new Set(schedule("documents", 600_000, cast).map(({ fault }) => kindOf(fault)))

/** "contract `suite`: the start of a name", or names of a kind in backticks. */
const exists = (part: string): boolean => {
  const [, suite, name] = /^contract `([a-zA-Z]+)`: (.+)$/.exec(part) ?? []
  if (suite !== undefined) return read("test/services", `${suite}Suite.ts`).includes(`"${name}`)
  const [, kind, list] = /^(scenario|corpus|chaos)s? (`[^`]+`(?:, `[^`]+`)*)$/.exec(part) ?? []
  if (kind === undefined) return false
  return list!.split(", ").map((quoted) => quoted.slice(1, -1)).every((name) =>
    kind === "chaos" ? chaos.has(name)
    : Fs.existsSync(Path.join(root, "src/sim", kind === "scenario" ? "scenarios" : "corpus", `${name}.json`)))
}
