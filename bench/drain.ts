/**
 * How many operations a second go from accepted to succeeded: claim, freeze, and one commit of record, history, state,
 * money and redaction for each. Preloaded, and timed from the start of the worker to the last terminal state.
 */
import type { PgClient } from "@effect/sql-pg"
import { Effect, Layer, type Scope } from "effect"
import * as Graphile from "./peers/graphile.ts"
import * as PgBoss from "./peers/pgBoss.ts"
import { ask, child } from "./process.ts"
import { type Database, fresh, look, type Server } from "./server.ts"
import { accept, api, open, ports, worker, workspace } from "./service.ts"
import { type Bench, now, type Trial, untilNone } from "./trial.ts"

/** A database with this much accepted work, by the program that accepts, in `lanes` lanes. */
const preloaded = Effect.fnUntraced(function*(operations: number, lanes: number) {
  const database = yield* fresh("migrated")
  yield* Effect.scoped(Effect.gen(function*() {
    const context = yield* Layer.build(api.pipe(Layer.provideMerge(ports(database.url))))
    yield* Effect.gen(function*() {
      yield* open(workspace)
      yield* Effect.forEach(Array.from({ length: operations }, (_, n) => n), (n) => accept(n, `user-${n % lanes}`), {
        concurrency: 400,
        discard: true
      })
    }).pipe(Effect.provideContext(context))
  }))
  yield* analyze(database)
  return database
})

const analyze = (database: Database) =>
  Effect.scoped(Effect.flatMap(look(database), (sql) => Effect.orDie(sql`vacuum analyze`)))

/** Asks first what costs nothing to ask: each end takes a number for its announcement. */
const left = Effect.fnUntraced(function*(sql: PgClient.PgClient, operations: number) {
  const unannounced = yield* sql`select 1 from outbox_seq_seq where last_value < ${operations}`
  return unannounced.length > 0
    ? unannounced
    : yield* sql`select 1 from operations where state in ('pending', 'running') limit 1`
})

/** A figure counts only if everything that a success must have is there. */
const verify = Effect.fnUntraced(function*(sql: PgClient.PgClient, operations: number) {
  const [row] = yield* Effect.orDie(sql<{ whole: boolean }>`select
      (select count(*) from operations where state = 'succeeded') = ${operations}
      and (select count(*) from memories) = ${operations}
      and (select count(*) from memory_history) = ${operations}
      and (select count(*) from transfers where kind = 'charge') = ${operations}
      and (select count(*) from outbox) = ${operations}
      and not exists (select from operation_inputs) and not exists (select from operation_plans)
      and (select reserved = 0 and consumed = ${operations * 2} from accounts) as whole`)
  if (row?.whole !== true) return yield* Effect.die("the drain left something out")
})

const drained = (operations: number, from: number) => [
  { figure: "operations drained", unit: "1/s", value: operations / (now() - from) * 1_000 }
]

const inProcess = (template: Database, operations: number, lanes: number): Trial => ({
  system: `indelible, ${lanes === operations ? "every operation its own lane" : `${lanes} lanes`}`,
  run: Effect.gen(function*() {
    const database = yield* fresh(template)
    const sql = yield* look(database)
    const context = yield* Layer.build(ports(database.url))
    const from = now()
    const samples = yield* Effect.scoped(Effect.gen(function*() {
      yield* Layer.build(worker())
      yield* untilNone(left(sql, operations))
      return drained(operations, from)
    })).pipe(Effect.provideContext(context))
    yield* verify(sql, operations)
    return samples
  })
})

const inProcesses = (template: Database, operations: number, lanes: number, workers: number): Trial => ({
  system: `indelible, ${lanes} lanes, ${workers} worker processes`,
  run: Effect.gen(function*() {
    const database = yield* fresh(template)
    const sql = yield* look(database)
    const children = yield* Effect.forEach(Array.from({ length: workers }), () =>
      Effect.tap(child("worker.ts", { url: database.url, tell: false }), (one) => ask(one, "ready")))
    const from = now()
    yield* Effect.forEach(children, (one) => ask(one, "working", "work"), { concurrency: "unbounded" })
    yield* untilNone(left(sql, operations))
    const samples = drained(operations, from)
    yield* verify(sql, operations)
    return samples
  })
})

export const bench: Bench = Effect.fnUntraced(function*({ drain, peerBatchedJobs, peerJobs }): Effect.fn.Return<
  ReadonlyArray<Trial>,
  never,
  Server | Scope.Scope
> {
  const lanes = Math.ceil(drain / 10)
  const queued = yield* preloaded(drain, lanes)
  const free = yield* preloaded(drain, drain)
  return [
    inProcess(queued, drain, lanes),
    inProcess(free, drain, drain),
    inProcesses(queued, drain, lanes, 2),
    Graphile.drain(peerJobs),
    PgBoss.drain(peerJobs),
    Graphile.drainInBatches(peerBatchedJobs),
    PgBoss.drainInBatches(peerBatchedJobs)
  ]
})
