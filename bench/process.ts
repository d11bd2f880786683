/** Other processes of a trial, that begin with what they are given and say what they have to say. */
import { Deferred, Effect, type Scope } from "effect"
import { type ChildProcess, fork } from "node:child_process"
import * as Path from "node:path"

export interface Child {
  readonly process: ChildProcess
  readonly exited: Deferred.Deferred<never>
}

/** Starts a file of this directory with `given`, and ends it with the scope. */
export const child = (file: string, given: object): Effect.Effect<Child, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const exited = Deferred.makeUnsafe<never>()
      const process = fork(Path.join(import.meta.dirname, file), [JSON.stringify(given)])
      process.once("exit", (code) => Deferred.doneUnsafe(exited, Effect.die(new Error(`${file} ended with ${code}`))))
      return { process, exited }
    }),
    ({ exited, process }) => Effect.andThen(Effect.sync(() => process.kill("SIGKILL")), Effect.exit(Deferred.await(exited)))
  )

/** Waits for a message with this tag, and returns what it says. Sends `request` first, if there is one. */
export const ask = ({ exited, process }: Child, tag: string, request?: string): Effect.Effect<unknown> =>
  Effect.raceFirst(
    Effect.callback<unknown>((resume) => {
      const listen = (message: { readonly tag: string; readonly value: unknown }) => {
        if (message.tag === tag) resume(Effect.succeed(message.value))
      }
      process.on("message", listen)
      if (request !== undefined) process.send(request)
      return Effect.sync(() => process.off("message", listen))
    }),
    Deferred.await(exited)
  )

/** In a child: what it was given. */
export const given = <A>(): A => JSON.parse(process.argv[2] ?? "{}") as A

/** In a child: says something. */
export const say = (tag: string, value: unknown = null): void => {
  process.send?.({ tag, value })
}
