/** A process with one worker: it connects, says that it is ready, works when it is told to, and tells of each attempt. */
import { Effect, Layer } from "effect"
import { given, say } from "./process.ts"
import { ports, worker } from "./service.ts"
import { now } from "./trial.ts"

const { tell, url } = given<{ readonly url: string; readonly tell: boolean }>()

const onExtract = tell ? () => say("extract", now()) : () => {}

const told = Effect.callback<void>((resume) => {
  process.once("message", () => resume(Effect.void))
})

const program = Effect.gen(function*() {
  const context = yield* Layer.build(ports(url))
  say("ready")
  yield* told
  yield* Layer.build(worker(onExtract)).pipe(Effect.provideContext(context))
  say("working")
  return yield* Effect.never
})

await Effect.runPromise(Effect.scoped(program))
