/** What no wire of the simulator can see, because a module takes it before anything is armed, lint does not let in. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../../", import.meta.url))

/** The rules that this breaks as a file of that folder. */
const broken = (file: string, text: string): ReadonlyArray<string> => {
  const folder = mkdtempSync(join(tmpdir(), "lint-"))
  try {
    copyFileSync(join(root, ".oxlintrc.json"), join(folder, ".oxlintrc.json"))
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), text)
    execFileSync(join(root, "node_modules/.bin/oxlint"), [file, "--format", "json"], { cwd: folder, encoding: "utf8" })
    return []
  } catch (error) {
    const { stdout } = error as { readonly stdout: string }
    const { diagnostics } = JSON.parse(stdout) as { readonly diagnostics: ReadonlyArray<{ readonly code: string }> }
    return diagnostics.map(({ code }) => code)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const refused: Readonly<Record<string, string>> = {
  "randomness of Node": "import { randomUUID } from \"node:crypto\"\nexport const id = randomUUID\n",
  "all of Node's cryptography": "import * as Crypto from \"node:crypto\"\nexport const id = () => Crypto.randomUUID()\n",
  "the machine": "import { hostname } from \"node:os\"\nexport const name = hostname\n",
  "a clock by another name": "export const now = globalThis.Date.now\n",
  "a clock that writes": "export const today = new Intl.DateTimeFormat(\"en\")\n",
  "what is garbage": "export const held = new WeakRef({})\n",
  "randomness that was kept": "export const { random } = Math\n"
}

describe("in the domain and the programs", () => {
  for (const [what, text] of Object.entries(refused)) {
    it(`${what} is refused`, () => {
      for (const file of ["src/domain/X.ts", "src/services/X.ts"]) assert.isNotEmpty(broken(file, text), file)
    })
  }

  it("what is the same everywhere is not", () => {
    const text = "import { createHash } from \"node:crypto\"\nexport const hash = createHash\n"
    assert.deepStrictEqual(broken("src/domain/X.ts", text), [])
  })
})
