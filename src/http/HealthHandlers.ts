/** Answers the probes. */
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Readiness } from "../services/Readiness.ts"
import { Api } from "./Api.ts"
import { Drain } from "./Drain.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "health",
  Effect.fn(function*(handlers) {
    const readiness = yield* Readiness
    const drain = yield* Drain

    return handlers
      .handle("alive", () => Effect.succeed({ status: "ok" as const }))
      .handle("ready", () =>
        Effect.map(readiness.check, ({ checks, ready }) =>
          drain.isDraining()
            ? { ready: false as const, checks: { ...checks, accepting: "failing" as const } }
            : { ready, checks: { ...checks, accepting: "ok" as const } }))
  })
)
