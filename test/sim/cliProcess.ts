/** Commands of the simulator as processes of their own, on the toy unless told otherwise. */
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { type Plan, print } from "../../src/sim/Plan.ts"
import type { Bug } from "./toy.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))

interface Said {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** Runs a command to its end, or presses Ctrl-C after so many runs. */
export const sim = (
  args: ReadonlyArray<string>,
  bugs: ReadonlyArray<Bug> = [],
  { env: more = {}, interrupt = 0, main = "test/sim/toyMain.ts", read = true }: Readonly<{
    env?: Record<string, string>
    interrupt?: number
    main?: string
    /** Whether anybody reads what it says. */
    read?: boolean
  }> = {}
) =>
  new Promise<Said>((resolve) => {
    const cache = { NODE_COMPILE_CACHE: join(folder, "cache") }
    const env = { ...process.env, ...cache, TOY_BUGS: bugs.join(","), ...(interrupt > 0 ? { TOY_LOUD: "1" } : {}), ...more }
    const child = spawn(process.execPath, [main, ...args], { cwd: root, env })
    let [out, err] = ["", ""]
    if (!read) child.stdout.destroy()
    child.stdout.on("data", (chunk) => out += String(chunk))
    child.stderr.on("data", (chunk) => err += String(chunk))
    child.on("close", (code) => resolve({ code, out, err }))
    const runs = () => err.split("a run\n").length - 1
    if (interrupt > 0) child.stderr.on("data", () => runs() >= interrupt && child.kill("SIGINT"))
  })

export const data = async (args: ReadonlyArray<string>, bugs: ReadonlyArray<Bug> = []) => {
  const { code, out } = await sim([...args, "--json"], bugs)
  return { code, ...JSON.parse(out) }
}

export const folder = mkdtempSync(join(tmpdir(), "sim-cli-"))
process.on("exit", () => rmSync(folder, { recursive: true, force: true }))

export const fileOf = (name: string, plan: Plan): string => {
  const file = join(folder, name)
  writeFileSync(file, print(plan))
  return file
}

export const plan: Plan = {
  version: 1,
  name: "a-plan",
  comment: "",
  spec: {
    seed: "s",
    engine: "plan",
    shape: { workers: 1, operations: 2 },
    faults: [{ kind: "crash_after", actor: "worker-1#1", label: "charge", index: 0 }],
    deviations: []
  }
}
