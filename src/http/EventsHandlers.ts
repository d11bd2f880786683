/** Serves events: reads the request, asks one service, answers. */
import { Clock, Effect } from "effect"
import { HttpApiBuilder, HttpApiSchema } from "effect/http-api"
import { OperationId } from "../domain/Ids.ts"
import { isTerminal } from "../domain/Operation.ts"
import { pickScope } from "../domain/Scope.ts"
import { type Event, Events } from "../services/Events.ts"
import { Retries } from "../services/Retries.ts"
import { Api } from "./Api.ts"
import { CurrentKey } from "./Authentication.ts"
import { cursors, pageSize } from "./Cursor.ts"
import { eventView } from "./EventView.ts"
import * as Headers from "./Headers.ts"
import { retryAfterMaxSeconds } from "./Limits.ts"
import { accepted } from "./Receipt.ts"
import { refuse } from "./Refuse.ts"
import * as Waiting from "./Waiting.ts"

const pages = cursors("events", OperationId)

/** When looking again makes sense, in whole seconds: not before the next attempt. */
const retryAfter = (event: Event, now: number): { readonly "retry-after"?: string } => {
  if (isTerminal(event.status)) return {}
  const pause = Math.ceil(((event.nextAttemptAt ?? now) - now) / 1_000)
  return { "retry-after": String(Math.min(Math.max(pause, 1), retryAfterMaxSeconds)) }
}

export const layer = HttpApiBuilder.group(
  Api,
  "events",
  Effect.fn(function*(handlers) {
    const events = yield* Events
    const retries = yield* Retries
    const waiting = yield* Waiting.make

    return handlers
      .handle("get", Effect.fnUntraced(function*({ params, query }) {
        const { workspaceId } = yield* CurrentKey
        const event = yield* refuse(waiting.event({ workspaceId, id: params.id }, query.wait ?? 0))
        const headers = retryAfter(event, yield* Clock.currentTimeMillis)
        return HttpApiSchema.withHeaders({ body: eventView(event), headers })
      }))
      .handle("list", Effect.fnUntraced(function*({ query }) {
        const { workspaceId } = yield* CurrentKey
        const limit = pageSize(query.limit)
        const before = yield* pages.after(query.cursor)
        const { status = null, type = null } = query
        const page = { workspaceId, status, type, scope: pickScope(query), before, limit: limit + 1 }
        const rows = yield* refuse(events.list(page))
        return pages.page(rows, limit, { key: (event) => event.id, view: eventView })
      }))
      .handle("retry", Effect.fnUntraced(function*({ headers, params }) {
        const { workspaceId } = yield* CurrentKey
        const key = yield* Headers.idempotencyKey(headers["idempotency-key"])
        return accepted(yield* refuse(retries.retry({ workspaceId, id: params.id }, key)))
      }))
      .handle("cancel", Effect.fnUntraced(function*({ params }) {
        const { workspaceId } = yield* CurrentKey
        return eventView(yield* refuse(retries.cancel({ workspaceId, id: params.id })))
      }))
      .handle("purge", Effect.fnUntraced(function*({ params }) {
        const { workspaceId } = yield* CurrentKey
        return eventView(yield* refuse(retries.purgeInput({ workspaceId, id: params.id })))
      }))
  })
)
