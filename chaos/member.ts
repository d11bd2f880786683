/** One process of the service under a supervisor: whenever it ends, however it ends, it is started again. */
import { Effect, type Scope } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import * as Fs from "node:fs"
import * as Path from "node:path"
import type { Place } from "./place.ts"

const root = Path.join(import.meta.dirname, "..")

export interface Member {
  readonly name: string
  readonly role: "api" | "worker"
  /** Of an API: where it serves, after every start the same. */
  readonly baseUrl: string
  readonly log: string
  /** Sends a signal. False when no process is there. */
  readonly signal: (signal: NodeJS.Signals) => boolean
  /** Ends it by a signal, and keeps it down for a while after its end. False when no process was there. */
  readonly down: (signal: "SIGKILL" | "SIGTERM", ms: number) => boolean
  /** How often it was started. */
  readonly starts: () => number
  /** Ends that nobody asked for, of a process that had begun to serve or to work. */
  readonly mishaps: ReadonlyArray<string>
  /** Whether it serves or works, and was not told to end. */
  readonly isUp: () => boolean
}

interface State {
  child: ChildProcess | null
  starts: number
  /** How long the next start waits: a while after an end that was asked for, a moment after any other. */
  asked: { readonly downMs: number } | null
  mishaps: Array<string>
  /** Bytes in the log when the present process began. */
  since: number
  /** Whether the present process was seen to serve or to work. */
  up: boolean
}

/** A process that cannot start, because its database is down, tries again after this long. */
const restartMs = 300

const began = /"message":"?\[?"?(Serving|Working)/

const textFrom = (file: string, bytes: number): string => Fs.readFileSync(file).subarray(bytes).toString("utf8")

/** Starts it, and keeps it started until the scope closes; then it is gone. */
export const make = Effect.fnUntraced(function*(
  place: Place,
  options: { readonly name: string; readonly role: "api" | "worker"; readonly port: number; readonly env: Record<string, string> }
): Effect.fn.Return<Member, never, Scope.Scope> {
  const { env, name, port, role } = options
  const log = Path.join(place.path, `${name}.log`)
  const state: State = { child: null, starts: 0, asked: null, mishaps: [], since: 0, up: false }
  Fs.writeFileSync(log, "")
  const isUp = () => state.child !== null && state.asked === null && (state.up ||= began.test(textFrom(log, state.since)))

  /** One life, from its start to its end. */
  const live = Effect.callback<void>((resume) => {
    const file = Fs.openSync(log, "a")
    state.since = Fs.statSync(log).size
    state.up = false
    const child = spawn(process.execPath, [Path.join(root, "bin/indelible.mjs"), "--role", role], {
      env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: Path.join(place.path, "compiled"), PORT: String(port), ...env },
      cwd: place.path,
      stdio: ["ignore", file, file]
    })
    Fs.closeSync(file)
    state.child = child
    state.starts++
    if (child.pid !== undefined) place.note(child.pid)
    child.once("exit", (code, signal) => {
      if (isUp()) state.mishaps.push(`${name} ended by itself with ${signal ?? code}`)
      state.child = null
      resume(Effect.void)
    })
    return Effect.callback<void>((done) => {
      child.once("exit", () => done(Effect.void))
      child.kill("SIGKILL")
    })
  })

  yield* live.pipe(
    Effect.andThen(Effect.suspend(() => Effect.sleep(state.asked?.downMs ?? restartMs))),
    Effect.andThen(Effect.sync(() => {
      state.asked = null
    })),
    Effect.forever,
    Effect.forkScoped
  )
  return {
    name,
    role,
    baseUrl: `http://127.0.0.1:${port}`,
    log,
    signal: (signal) => state.child?.kill(signal) ?? false,
    down: (signal, ms) => {
      if (state.child === null) return false
      state.asked = { downMs: ms }
      return state.child.kill(signal)
    },
    starts: () => state.starts,
    mishaps: state.mishaps,
    isUp
  }
})
