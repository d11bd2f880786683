/** The threads that simulate: each does one task at a time, and they share nothing. */
import { Data, Effect, Runtime, type Scope } from "effect"
import { Worker } from "node:worker_threads"
import type { AnswerTo, Task } from "./Task.ts"

/** A thread has ended, which none does by itself: a bug of the simulator, with its stack. */
export class ThreadLost extends Data.TaggedError("ThreadLost")<{ readonly message: string }> {
  override readonly [Runtime.errorExitCode] = 3
  override readonly [Runtime.errorReported] = false
}

export interface Thread {
  readonly number: number
  /** Does one task. A thread is asked again only when it has answered. */
  readonly ask: <T extends Task>(task: T) => Effect.Effect<AnswerTo<T>, ThreadLost>
}

export interface Pool {
  readonly threads: ReadonlyArray<Thread>
  /** Does all of these, each on the next thread that is free. */
  readonly each: <T extends Task>(tasks: ReadonlyArray<T>) => Effect.Effect<ReadonlyArray<AnswerTo<T>>, ThreadLost>
}

/** Threads that end with the scope, whatever they are doing. */
export const make = Effect.fnUntraced(function*(
  module: URL,
  count: number
): Effect.fn.Return<Pool, never, Scope.Scope> {
  const numbers = Array.from({ length: count }, (_, number) => number)
  const threads = yield* Effect.forEach(numbers, (number) => start(module, number))
  const each = <T extends Task>(tasks: ReadonlyArray<T>) => {
    const answers: Array<AnswerTo<T>> = []
    let next = 0
    const drive = Effect.fnUntraced(function*(thread: Thread) {
      while (next < tasks.length) {
        const place = next++
        answers[place] = yield* thread.ask(tasks[place]!)
      }
    })
    return Effect.forEach(threads, drive, { concurrency: "unbounded", discard: true }).pipe(Effect.map(() => answers))
  }
  return { threads, each }
})

const start = (module: URL, number: number): Effect.Effect<Thread, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const worker = new Worker(new URL("thread.ts", import.meta.url), { workerData: module.href, execArgv })
      // Without a listener an error of a thread would end the process; whoever waits for an answer hears of it.
      worker.on("error", () => {})
      return worker
    }),
    (worker) => Effect.promise(() => worker.terminate())
  ).pipe(Effect.map((worker) => ({ number, ask: (task) => ask(worker, task) })))

const execArgv = ["--import", new URL("../withoutAsyncHooks.ts", import.meta.url).href]

const ask = <T extends Task>(worker: Worker, task: T): Effect.Effect<AnswerTo<T>, ThreadLost> =>
  Effect.callback((resume) => {
    const onMessage = (answer: AnswerTo<T>) => done(Effect.succeed(answer))
    const onError = (error: Error) => done(Effect.fail(new ThreadLost({ message: error.stack ?? error.message })))
    const onExit = (code: number) =>
      done(Effect.fail(new ThreadLost({ message: `a thread has ended with code ${code}` })))
    const forget = () => {
      worker.off("message", onMessage).off("error", onError).off("exit", onExit)
    }
    const done = (result: Effect.Effect<AnswerTo<T>, ThreadLost>) => {
      forget()
      resume(result)
    }
    worker.on("message", onMessage).on("error", onError).on("exit", onExit)
    worker.postMessage(task, [])
    return Effect.sync(forget)
  })
