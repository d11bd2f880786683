/** A short run of `npm run chaos` from its start to its end, and that nothing stays behind however it ends. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFile, fork } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { alive } from "../../src/adapters/PostgresCluster.ts"

const main = Path.join(import.meta.dirname, "../../chaos/main.ts")

const folder = Effect.acquireRelease(
  Effect.sync(() => {
    const path = Fs.mkdtempSync(Path.join(Os.tmpdir(), "indelible-chaos-test-"))
    Fs.chmodSync(path, 0o711)
    return path
  }),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

/** Its standard output, its exit code, and all that it wrote when that is not 0. */
const chaos = (args: ReadonlyArray<string>, temporary: string) =>
  Effect.callback<{ readonly code: number; readonly stdout: string; readonly all: string }>((resume) => {
    const child = execFile(
      process.execPath,
      [main, ...args],
      { env: { PATH: process.env["PATH"], TMPDIR: temporary }, maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : Number(error.code)
        resume(Effect.succeed({ code, stdout, all: `${stdout}${stderr}` }))
      }
    )
    return Effect.sync(() => child.kill("SIGTERM"))
  })

describe("npm run chaos", () => {
  it.live("everything holds, there was something to hold against, and no process or file is left", () =>
    Effect.gen(function*() {
      const temporary = yield* folder
      const { all, code, stdout } = yield* chaos(["--seed", "short", "--for", "8s", "--clients", "4", "--json"], temporary)
      assert.strictEqual(code, 0, all)
      const outcome = JSON.parse(stdout)
      assert.isTrue(outcome.holds)
      assert.deepInclude(outcome, { unrest: [], breaches: [], trespasses: [], mishaps: [], leaks: [], defects: [] })
      assert.strictEqual(outcome.audit.code, 0)
      assert.strictEqual(outcome.again, "npm run chaos -- --seed short --for 8s --clients 4")
      const fired = Object.values<{ fired: number }>(outcome.faults).filter(({ fired }) => fired > 0)
      assert.isNotEmpty(fired)
      assert.isNotEmpty(Object.keys(outcome.operations))
      assert.isAtLeast(outcome.pids.length, 5)
      assert.deepStrictEqual(outcome.pids.filter(alive), [])
      assert.deepStrictEqual(Fs.readdirSync(temporary), [])
    }).pipe(Effect.scoped), 300_000)

  it.live("asked wrongly, it says so and starts nothing", () =>
    Effect.gen(function*() {
      const temporary = yield* folder
      for (const args of [["--for", "soon"], ["--for", "3601s"], ["--seed", "Not A Seed"], ["--clients", "0"], ["--sede", "1"]]) {
        assert.strictEqual((yield* chaos(args, temporary)).code, 2, args.join(" "))
      }
      assert.strictEqual((yield* chaos(["--help"], temporary)).code, 0)
      assert.deepStrictEqual(Fs.readdirSync(temporary), [])
    }).pipe(Effect.scoped))

  it.live("killed, it leaves neither processes nor files", () =>
    Effect.gen(function*() {
      const temporary = yield* folder
      const { path, pid } = yield* Effect.callback<{ readonly path: string; readonly pid: number }>((resume) => {
        const child = fork(Path.join(import.meta.dirname, "leftOver.ts"), {
          env: { PATH: process.env["PATH"], TMPDIR: temporary }
        })
        child.once("message", (place: { path: string; pid: number }) => {
          child.once("exit", () => resume(Effect.succeed(place)))
          child.kill("SIGKILL")
        })
      })
      yield* Effect.sync(() => alive(pid) || Fs.existsSync(path)).pipe(
        Effect.delay("20 millis"),
        Effect.repeat({ while: (there) => there })
      )
    }).pipe(Effect.scoped))
})
