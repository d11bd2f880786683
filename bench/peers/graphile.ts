/** graphile-worker with a job that does nothing: per job as it comes, and in batches as its own benchmark runs it. */
import { Effect, type Scope } from "effect"
import { Logger, makeWorkerUtils, run, type RunnerOptions, type WorkerUtils } from "graphile-worker"
import { Bell, sample } from "../bell.ts"
import { callers, crowd } from "../crowd.ts"
import { fresh, look } from "../server.ts"
import { said } from "../service.ts"
import { now, type Trial, untilNone } from "../trial.ts"

const system = "graphile-worker"
const batched = "graphile-worker, batched"
const task = "nothing"
const silent = new Logger(() => () => {})

const perJob = { concurrentJobs: 24, maxPoolSize: 25 }
/** What its own benchmark sets: a local queue, and completions that gather. */
const inBatches = {
  ...perJob,
  localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0
}

const utils = (url: string): Effect.Effect<WorkerUtils, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const made = await makeWorkerUtils({ connectionString: url, maxPoolSize: 25, logger: silent })
      await made.migrate()
      return made
    }),
    (made) => Effect.promise(async () => made.release())
  )

const worker = (
  url: string,
  settings: NonNullable<RunnerOptions["preset"]>["worker"],
  handler: () => void = () => {}
): Effect.Effect<unknown, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() =>
      run({
        noHandleSignals: true,
        logger: silent,
        preset: { worker: { ...settings, connectionString: url } },
        taskList: { [task]: async () => handler() },
        parsedCronItems: []
      })
    ),
    (runner) => Effect.promise(() => runner.stop())
  )

const payload = (n: number) => ({ user: `user-${n % 300}`, content: said(n) })

/** Callers that each add one job. */
export const enqueue = (jobs: number): Trial => ({
  system,
  run: Effect.gen(function*() {
    const { url } = yield* fresh("empty")
    const { addJob } = yield* utils(url)
    return yield* crowd(jobs, (n) => Effect.promise(() => addJob(task, payload(n))))
  })
})

const addInBulk = (added: WorkerUtils, jobs: number) =>
  Effect.promise(async () => {
    for (let from = 0; from < jobs; from += 1_000) {
      await added.addJobs(
        Array.from({ length: Math.min(1_000, jobs - from) }, (_, n) => ({ identifier: task, payload: payload(from + n) }))
      )
    }
  })

/** One caller that adds a thousand jobs in a call. */
export const enqueueInBulk = (jobs: number): Trial => ({
  system: `${system}, 1 caller, 1,000 in a call`,
  run: Effect.gen(function*() {
    const { url } = yield* fresh("empty")
    const added = yield* utils(url)
    const from = now()
    yield* addInBulk(added, jobs)
    return [{ figure: `accepted by ${callers} callers`, unit: "1/s", value: jobs / (now() - from) * 1_000 }]
  })
})

const drainWith = (name: string, jobs: number, settings: Parameters<typeof worker>[1]): Trial => ({
  system: name,
  run: Effect.gen(function*() {
    const database = yield* fresh("empty")
    const sql = yield* look(database)
    yield* addInBulk(yield* utils(database.url), jobs)
    yield* Effect.orDie(sql`vacuum analyze`)
    const from = now()
    yield* worker(database.url, settings)
    yield* untilNone(sql`select 1 from graphile_worker._private_jobs limit 1`)
    return [{ figure: "operations drained", unit: "1/s", value: jobs / (now() - from) * 1_000 }]
  })
})

export const drain = (jobs: number): Trial => drainWith(system, jobs, perJob)
export const drainInBatches = (jobs: number): Trial => drainWith(batched, jobs, inBatches)

const wakeWith = (name: string, count: number, settings: Parameters<typeof worker>[1]): Trial => ({
  system: name,
  run: Effect.gen(function*() {
    const { url } = yield* fresh("empty")
    const { addJob } = yield* utils(url)
    const bell = new Bell()
    yield* worker(url, settings, () => bell.strike())
    return yield* sample(count, bell, (n) => Effect.promise(() => addJob(task, payload(n))))
  })
})

export const wake = (count: number): Trial => wakeWith(system, count, perJob)
export const wakeBatched = (count: number): Trial => wakeWith(batched, count, inBatches)
