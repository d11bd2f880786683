/** The service as an operator starts it: a process of its own, over real sockets, that can be stopped and killed. */
import { Deferred, Effect, type Scope } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"

const root = Path.join(import.meta.dirname, "../..")
export const apiKey = "test-key-0123456789abcdef"

export interface Service {
  readonly baseUrl: string
  /** All that it wrote to its two streams so far. */
  readonly output: () => string
  /** SIGKILL, and its end. */
  readonly kill: Effect.Effect<void>
  /** SIGTERM, and its end: the exit code. */
  readonly terminate: Effect.Effect<number | null>
  readonly pid: number
}

interface Started {
  readonly child: ChildProcess
  readonly output: () => string
  readonly exited: Deferred.Deferred<number | null>
}

/** A folder of its own, gone afterwards: a `.env` beside the project is the developer's, and no part of a test. */
export const folder = Effect.acquireRelease(
  Effect.sync(() => {
    const path = Fs.mkdtempSync(Path.join(Os.tmpdir(), "indelible-e2e-"))
    Fs.chmodSync(path, 0o755)
    return path
  }),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

const launch = Effect.fnUntraced(function*(args: ReadonlyArray<string>, env: Record<string, string>, given?: string) {
  const cwd = given ?? (yield* folder)
  return yield* Effect.acquireRelease(
    Effect.sync((): Started => {
      const exited = Deferred.makeUnsafe<number | null>()
      const child = spawn(process.execPath, [Path.join(root, "bin/indelible.mjs"), ...args], {
        env: {
          PATH: process.env["PATH"],
          PORT: "0",
          LOG_FORMAT: "json",
          SHUTDOWN_GRACE_SECONDS: "0",
          INDELIBLE_API_KEY: apiKey,
          ...env
        },
        cwd,
        stdio: ["ignore", "pipe", "pipe"]
      })
      let text = ""
      child.stdout!.on("data", (chunk) => text += chunk)
      child.stderr!.on("data", (chunk) => text += chunk)
      child.once("close", (code) => Deferred.doneUnsafe(exited, Effect.succeed(code)))
      return { child, output: () => text, exited }
    }),
    ({ child, exited }) => Effect.andThen(Effect.sync(() => child.kill("SIGKILL")), Deferred.await(exited))
  )
})

/** Runs to its own end: for what cannot start, and for tools. */
export const run = (
  args: ReadonlyArray<string>,
  env: Record<string, string>,
  cwd?: string
): Effect.Effect<{ readonly code: number | null; readonly output: string }> =>
  Effect.scoped(Effect.gen(function*() {
    const { exited, output } = yield* launch(args, env, cwd)
    const code = yield* Deferred.await(exited)
    return { code, output: output() }
  }))

/** Starts a process of the service, and waits until it says that it serves (or, for a worker, that it works). */
export const start = (
  env: Record<string, string>,
  role: "all" | "api" | "worker" = "all",
  cwd?: string
): Effect.Effect<Service, never, Scope.Scope> =>
  Effect.gen(function*() {
    const { child, exited, output } = yield* launch(["--role", role], env, cwd)
    const said = /"message":"?\[?"?(Serving|Working)/
    const ready = Effect.callback<void>((resume) => {
      const look = () => said.test(output()) && resume(Effect.void)
      child.stdout!.on("data", look)
      look()
    })
    yield* Effect.raceFirst(
      ready,
      Effect.flatMap(Deferred.await(exited), () => Effect.die(new Error(`the service ended: ${output()}`)))
    )
    const signal = (name: NodeJS.Signals) => Effect.andThen(Effect.sync(() => child.kill(name)), Deferred.await(exited))
    return {
      baseUrl: `http://127.0.0.1:${/"address":"http:\/\/127\.0\.0\.1:(\d+)"/.exec(output())?.[1]}`,
      output,
      kill: Effect.asVoid(signal("SIGKILL")),
      terminate: signal("SIGTERM"),
      pid: child.pid!
    }
  })

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: any
}

/** One request, with the bootstrap key. */
export const call = (
  service: { readonly baseUrl: string },
  method: string,
  path: string,
  options: { readonly body?: unknown; readonly key?: string; readonly headers?: Record<string, string> } = {}
): Effect.Effect<Answer> =>
  Effect.promise(async () => {
    const response = await fetch(`${service.baseUrl}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${apiKey}`,
        ...(options.body === undefined ? {} : { "content-type": "application/json" }),
        ...(options.key === undefined ? {} : { "idempotency-key": options.key }),
        ...options.headers
      },
      ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) })
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, body: text === "" ? null : JSON.parse(text) }
  })

/** Waits for the end of an operation over the API. */
export const finished = (service: { readonly baseUrl: string }, eventId: string): Effect.Effect<any> =>
  call(service, "GET", `/v1/events/${eventId}?wait=30`).pipe(
    Effect.map(({ body }) => body),
    Effect.repeat({ until: (event) => event.status === "succeeded" || event.status === "failed" })
  )
