/** How many commands a second are accepted from 64 callers: each answer is a key, an operation and money, committed. */
import { Context, Duration, Effect, Layer, Redacted } from "effect"
import { HttpServer } from "effect/http"
import * as NodeServer from "../src/http/NodeServer.ts"
import * as HttpApp from "../src/http/Server.ts"
import { ApiKeys } from "../src/services/ApiKeys.ts"
import { callers, crowd, figures, warmUp } from "./crowd.ts"
import * as Graphile from "./peers/graphile.ts"
import * as PgBoss from "./peers/pgBoss.ts"
import { ask, child } from "./process.ts"
import { fresh } from "./server.ts"
import { accept, api, open, ports, workspace } from "./service.ts"
import type { Bench, Trial } from "./trial.ts"

const users = 300

const program = (accepts: number): Trial => ({
  system: "indelible",
  run: Effect.gen(function*() {
    const { url } = yield* fresh("migrated")
    const context = yield* Layer.build(api.pipe(Layer.provideMerge(ports(url))))
    return yield* Effect.andThen(open(workspace), crowd(accepts, (n) =>
      Effect.provideContext(accept(n, `user-${n % users}`), context))).pipe(Effect.provideContext(context))
  })
})

/** The callers are another process on the same machine: they take their part of its cores. */
const overHttp = (accepts: number): Trial => ({
  system: "indelible over HTTP",
  run: Effect.gen(function*() {
    const { url } = yield* fresh("migrated")
    const context = yield* Layer.build(
      HttpApp.layer({ shutdownGrace: Duration.zero }).pipe(
        Layer.provideMerge(NodeServer.layer({ host: "127.0.0.1", port: 0 })),
        Layer.provide(api),
        Layer.provideMerge(ports(url))
      )
    ).pipe(Effect.orDie)
    yield* open(workspace).pipe(Effect.provideContext(context))
    const { secret } = yield* Context.get(context, ApiKeys).make(workspace, "bench", ["memories:write"]).pipe(Effect.orDie)
    const { address } = Context.get(context, HttpServer.HttpServer)
    if (address._tag === "UnixPathAddress") return yield* Effect.die("no port")
    const others = yield* child("callers.ts", {
      port: address.port,
      secret: Redacted.value(secret),
      callers,
      users,
      warmUp,
      count: accepts
    })
    const { latencies, tookMs } = yield* ask(others, "done") as Effect.Effect<{
      readonly tookMs: number
      readonly latencies: ReadonlyArray<number>
    }>
    return figures(accepts, tookMs, latencies)
  })
})

export const bench: Bench = ({ accepts, peerJobs }) =>
  Effect.succeed([
    program(accepts),
    overHttp(accepts),
    Graphile.enqueue(peerJobs),
    PgBoss.enqueue(peerJobs),
    Graphile.enqueueInBulk(accepts * 4),
    PgBoss.enqueueInBulk(accepts * 4)
  ])
