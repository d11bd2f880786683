/** The matrix of contracts that is documented is the one that runs. */
import { assert, describe, it } from "@effect/vitest"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { matrix, type SuiteName } from "./matrix.ts"

const root = Path.join(import.meta.dirname, "../..")
const read = (...path: ReadonlyArray<string>) => Fs.readFileSync(Path.join(root, ...path), "utf8")
const all = (folder: string, ending: string) =>
  Fs.readdirSync(Path.join(root, folder)).filter((name) => name.endsWith(ending)).map((name) => read(folder, name)).join("\n")

const names = Object.keys(matrix) as ReadonlyArray<SuiteName>
const cellsOf = (line: string) => line.split("|").slice(1, -1).map((cell) => cell.trim())
const quoted = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name!)

/** Each contract of the table, with everything that it is said to be kept on. */
const documented = (): Readonly<Record<string, ReadonlyArray<string>>> => {
  const lines = read("docs/contracts.md").split("\n").filter((line) => line.startsWith("|"))
  const [, ...columns] = cellsOf(lines[0]!)
  const rows = lines.slice(2).map(cellsOf)
  return Object.fromEntries(rows.map(([name, ...cells]) => [
    quoted(name!).join(),
    cells.flatMap((cell, place) => cell === "yes" ? quoted(columns[place]!) : quoted(cell))
  ]))
}

/** The function that runs it. */
const keeper = (name: SuiteName): string =>
  name.startsWith("Provider") ? "keepProvider" : name === "Queue" ? "keepQueue" : "keepPorts"

describe("the matrix of contracts", () => {
  it("is in the documents as it is, each cell and no other", () => {
    const sorted = (cells: ReadonlyArray<string>) => cells.toSorted()
    const wanted = Object.fromEntries(names.map((name) => [name, sorted(matrix[name])]))
    const found = Object.fromEntries(Object.entries(documented()).map(([name, cells]) => [name, sorted(cells)]))
    assert.deepStrictEqual(found, wanted)
  })

  it("is run: a test hands every implementation to every contract of its column, by name", () => {
    const tests = all("test/contracts", ".test.ts")
    const suites = all("test/services", "Suite.ts")
    for (const name of names) {
      assert.include(suites, `(\`${name}: \${name}\``)
      for (const on of matrix[name]) assert.include(tests, `\n${keeper(name)}("${on}", `, `${name}: ${on}`)
    }
  })
})
