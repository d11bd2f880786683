/** How long an idle worker takes to start on one command: from just before the call that accepts it to the attempt. */
import { Effect, Layer } from "effect"
import { Bell, sample } from "./bell.ts"
import * as Graphile from "./peers/graphile.ts"
import * as PgBoss from "./peers/pgBoss.ts"
import { ask, child } from "./process.ts"
import { fresh } from "./server.ts"
import { accept, api, open, ports, worker, workspace } from "./service.ts"
import type { Bench, Trial } from "./trial.ts"

const sameProcess = (count: number): Trial => ({
  system: "indelible, worker in the process",
  run: Effect.gen(function*() {
    const { url } = yield* fresh("migrated")
    const bell = new Bell()
    const context = yield* Layer.build(
      Layer.merge(api, worker(() => bell.strike())).pipe(Layer.provideMerge(ports(url)))
    )
    yield* open(workspace).pipe(Effect.provideContext(context))
    return yield* sample(count, bell, (n) => Effect.provideContext(accept(n, `user-${n}`), context))
  })
})

const anotherProcess = (count: number): Trial => ({
  system: "indelible, worker in another process",
  run: Effect.gen(function*() {
    const { url } = yield* fresh("migrated")
    const bell = new Bell()
    const context = yield* Layer.build(api.pipe(Layer.provideMerge(ports(url))))
    yield* open(workspace).pipe(Effect.provideContext(context))
    const one = yield* child("worker.ts", { url, tell: true })
    yield* ask(one, "ready")
    yield* ask(one, "working", "work")
    one.process.on("message", (message: { readonly tag: string; readonly value: number }) => {
      if (message.tag === "extract") bell.strike(message.value)
    })
    return yield* sample(count, bell, (n) => Effect.provideContext(accept(n, `user-${n}`), context))
  })
})

export const bench: Bench = ({ wakes }) =>
  Effect.succeed([
    sameProcess(wakes),
    anotherProcess(wakes),
    Graphile.wake(wakes),
    Graphile.wakeBatched(wakes),
    PgBoss.wake(wakes)
  ])
