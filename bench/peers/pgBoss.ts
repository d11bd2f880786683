/** pg-boss with a job that does nothing: fetched and completed one by one, and in batches as its guide says for speed. */
import { Effect, type Scope } from "effect"
import { type ConstructorOptions, PgBoss } from "pg-boss"
import { Bell, sample } from "../bell.ts"
import { callers, crowd } from "../crowd.ts"
import { fresh, look } from "../server.ts"
import { said } from "../service.ts"
import { now, type Trial, untilNone } from "../trial.ts"

const system = "pg-boss"
const batched = "pg-boss, batched"
const queue = "nothing"
const concurrency = 24

const start = (url: string, options: ConstructorOptions = {}): Effect.Effect<PgBoss, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const boss = new PgBoss({ connectionString: url, max: 25, supervise: false, schedule: false, ...options })
      boss.on("error", () => {})
      await boss.start()
      await boss.createQueue(queue, { notify: options.useListenNotify === true })
      return boss
    }),
    (boss) => Effect.promise(() => boss.stop({ graceful: false }))
  )

const payload = (n: number) => ({ user: `user-${n % 300}`, content: said(n) })

/** Callers that each send one job. */
export const enqueue = (jobs: number): Trial => ({
  system,
  run: Effect.gen(function*() {
    const { url } = yield* fresh("empty")
    const boss = yield* start(url)
    return yield* crowd(jobs, (n) => Effect.promise(() => boss.send(queue, payload(n))))
  })
})

const insertInBulk = (boss: PgBoss, jobs: number) =>
  Effect.promise(async () => {
    for (let from = 0; from < jobs; from += 1_000) {
      await boss.insert(queue, Array.from({ length: Math.min(1_000, jobs - from) }, (_, n) => ({ data: payload(from + n) })))
    }
  })

/** One caller that inserts a thousand jobs in a call. */
export const enqueueInBulk = (jobs: number): Trial => ({
  system: `${system}, 1 caller, 1,000 in a call`,
  run: Effect.gen(function*() {
    const { url } = yield* fresh("empty")
    const boss = yield* start(url)
    const from = now()
    yield* insertInBulk(boss, jobs)
    return [{ figure: `accepted by ${callers} callers`, unit: "1/s", value: jobs / (now() - from) * 1_000 }]
  })
})

const drainWith = (name: string, jobs: number, work: (boss: PgBoss) => Promise<unknown>): Trial => ({
  system: name,
  run: Effect.gen(function*() {
    const database = yield* fresh("empty")
    const sql = yield* look(database)
    const boss = yield* start(database.url)
    yield* insertInBulk(boss, jobs)
    yield* Effect.orDie(sql`vacuum analyze`)
    const from = now()
    yield* Effect.promise(() => work(boss))
    yield* untilNone(sql`select 1 from pgboss.job where name = ${queue} and state <> 'completed' limit 1`)
    return [{ figure: "operations drained", unit: "1/s", value: jobs / (now() - from) * 1_000 }]
  })
})

/** Takes one, completes it, takes the next, until there is none. */
const oneByOne = async (boss: PgBoss): Promise<void> => {
  for (let [job] = await boss.fetch(queue); job !== undefined; [job] = await boss.fetch(queue)) {
    await boss.complete(queue, job)
  }
}

export const drain = (jobs: number): Trial =>
  drainWith(system, jobs, (boss) => Promise.all(Array.from({ length: concurrency }, () => oneByOne(boss))))

export const drainInBatches = (jobs: number): Trial =>
  drainWith(batched, jobs, (boss) =>
    boss.work(
      queue,
      { batchSize: 500, localConcurrency: 2, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 },
      async () => {}
    ))

export const wake = (count: number): Trial => ({
  system: `${system}, notified`,
  run: Effect.gen(function*() {
    const { url } = yield* fresh("empty")
    const boss = yield* start(url, { useListenNotify: true })
    const bell = new Bell()
    yield* Effect.promise(() =>
      boss.work(queue, { batchSize: 1, pollingIntervalSeconds: 0.5 }, async () => bell.strike()))
    return yield* sample(count, bell, (n) => Effect.promise(() => boss.send(queue, payload(n))))
  })
})
