/** A service with an embedded database and nothing else, for tests that kill it. Says `ready` and its URL. */
import { NodeRuntime } from "@effect/platform-node"
import { Effect, Redacted } from "effect"
import { make } from "../../src/adapters/EmbeddedPostgres.ts"

const service = Effect.gen(function*() {
  const { url, watch } = yield* make({ dataDir: process.argv[2] ?? "", durable: false })
  yield* Effect.sync(() => process.stdout.write(`ready ${Redacted.value(url)}\n`))
  return yield* watch
})

NodeRuntime.runMain(Effect.scoped(service))
