/** The whole HTTP contract: importable by clients, with no server code behind it. */
import { HttpApi, OpenApi } from "effect/http-api"
import { describe } from "./ApiDescription.ts"
import { EventsApi } from "./EventsApi.ts"
import { HealthApi } from "./HealthApi.ts"
import { MemoriesApi } from "./MemoriesApi.ts"
import { UsageApi } from "./UsageApi.ts"

export class Api extends HttpApi.make("indelible")
  .add(MemoriesApi, EventsApi, UsageApi, HealthApi)
  // What was sent is never repeated in a message.
  .annotate(HttpApi.ParseOptions, { onExcessProperty: "error", errors: "all", reportInput: false })
  // Requests carry headers that no contract names, and a newer server may answer with more than an older client knows.
  .annotate(HttpApi.HeadersParseOptions, { reportInput: false })
  .annotate(HttpApi.SuccessParseOptions, { reportInput: false })
  .annotate(HttpApi.ErrorParseOptions, { reportInput: false })
  .annotateMerge(OpenApi.annotations({
    title: "Indelible",
    version: "1",
    description: "Memory writes for AI agents that survive retries. Each refusal is a problem document (RFC 9457) with a "
      + "stable `code`. Beside those that are listed with the routes, any request may meet `not_found` (404: no such path), "
      + "`method_not_allowed` (405: `Allow` names the methods of the path), `invalid_input` (400) when it has a "
      + "body where none is taken (`{}` counts as none), and before it is understood `malformed_http` "
      + "(400), `request_timeout` (408) and `headers_too_large` (431).",
    license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    transform: describe
  }))
{}
