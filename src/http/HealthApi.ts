/** The contract of the probes: is this process alive, and may it be sent work. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"

const checks = Schema.Record(Schema.String, Schema.Literals(["ok", "failing"]))

export const Ready = Schema.Struct({ ready: Schema.Literal(true), checks }).annotate({ identifier: "Ready" })
export const NotReady = Schema.Struct({ ready: Schema.Literal(false), checks }).annotate({ identifier: "NotReady" })

const alive = HttpApiEndpoint.get("alive", "/healthz", {
  success: Schema.Struct({ status: Schema.Literal("ok") }).annotate({ identifier: "Alive" })
}).annotateMerge(OpenApi.annotations({ summary: "Liveness", description: "Looks at nothing but the process itself." }))

const ready = HttpApiEndpoint.get("ready", "/readyz", {
  success: [Ready, NotReady.pipe(HttpApiSchema.status(503))]
}).annotateMerge(OpenApi.annotations({
  summary: "Readiness",
  description: "503 while something that requests need is missing, and from the moment shutdown begins. The process goes "
    + "on answering for `SHUTDOWN_GRACE_SECONDS` (2 by default), each answer with `Connection: close`; then it takes no "
    + "more connections, answers what it has begun, and ends."
}))

export class HealthApi extends HttpApiGroup.make("health")
  .add(alive, ready)
  .annotateMerge(OpenApi.annotations({ description: "Probes; no key needed." }))
{}
