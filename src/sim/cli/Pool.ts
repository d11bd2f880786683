/** The threads that simulate: each does one task at a time, and they share nothing. */
import { Data, Effect, Runtime, type Scope } from "effect"
import { Worker } from "node:worker_threads"
import type { Spec } from "../Run.ts"
import { Pulse } from "./Pulse.ts"
import type { AnswerTo, Task } from "./Task.ts"

/**
 * A thread has ended, which none does by itself, or will never come to the end of a run: a bug of the simulator with its
 * stack, or a program that computes for ever.
 */
export class ThreadLost extends Data.TaggedError("ThreadLost")<{
  readonly message: string
  /** Of which run, as far as anybody knows. */
  readonly spec: Spec | null
  readonly index: number
}> {
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

/** The longest that one run may take. The slowest that have an end take seconds. */
const usualPatienceMs = 120_000

/** Threads that end with the scope, whatever they are doing. */
export const make = Effect.fnUntraced(function*(
  module: URL,
  count: number,
  patienceMs: number = usualPatienceMs
): Effect.fn.Return<Pool, never, Scope.Scope> {
  const numbers = Array.from({ length: count }, (_, number) => number)
  const threads = yield* Effect.forEach(numbers, (number) => start(module, number, patienceMs))
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

const start = (module: URL, number: number, patienceMs: number): Effect.Effect<Thread, never, Scope.Scope> => {
  const pulse = new Pulse()
  const workerData = { module: module.href, memory: pulse.memory }
  return Effect.acquireRelease(
    Effect.sync(() => {
      const worker = new Worker(new URL("thread.ts", import.meta.url), { workerData, execArgv })
      // Without a listener an error of a thread would end the process; whoever waits for an answer hears of it.
      worker.on("error", () => {})
      return worker
    }),
    (worker) => Effect.promise(() => worker.terminate())
  ).pipe(Effect.map((worker): Thread => ({
    number,
    ask: (task) =>
      Effect.raceFirst(ask(worker, task), stuck(pulse, patienceMs)).pipe(
        Effect.mapError((message) => new ThreadLost({ message, ...told(task, pulse) }))
      )
  })))
}

/** Fails once a thread is in the same run when looked at twice: by the clock of the machine, whatever Effect's says. */
const stuck = (pulse: Pulse, patienceMs: number): Effect.Effect<never, string> =>
  Effect.callback((resume) => {
    let before = pulse.beats
    const timer = setInterval(() => {
      const now = pulse.beats
      if (now === before && now % 2 === 1) {
        clearInterval(timer)
        resume(Effect.fail(`a run has not come to its end within ${patienceMs / 1_000} s: something computes for ever`))
      }
      before = now
    }, patienceMs)
    return Effect.sync(() => clearInterval(timer))
  })

/** The run that a thread is in the middle of. */
const told = (task: Task, { index }: Pulse): Pick<ThreadLost, "spec" | "index"> =>
  task._tag === "Runs"
    ? { spec: task.jobs.find((job) => job.index === index)?.spec ?? null, index }
    : { spec: task.spec, index: -1 }

const execArgv = ["--import", new URL("../withoutAsyncHooks.ts", import.meta.url).href]

const ask = <T extends Task>(worker: Worker, task: T): Effect.Effect<AnswerTo<T>, string> =>
  Effect.callback((resume) => {
    const onMessage = (answer: AnswerTo<T>) => done(Effect.succeed(answer))
    const onError = (error: Error) => done(Effect.fail(error.stack ?? error.message))
    const onExit = (code: number) => done(Effect.fail(`a thread has ended with code ${code}`))
    const forget = () => {
      worker.off("message", onMessage).off("error", onError).off("exit", onExit)
    }
    const done = (result: Effect.Effect<AnswerTo<T>, string>) => {
      forget()
      resume(result)
    }
    worker.on("message", onMessage).on("error", onError).on("exit", onExit)
    worker.postMessage(task, [])
    return Effect.sync(forget)
  })
