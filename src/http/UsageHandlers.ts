/** Serves balances and the ledger. */
import { Effect, Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Usage } from "../services/Usage.ts"
import { Api } from "./Api.ts"
import { CurrentKey } from "./Authentication.ts"
import { cursors, pageSize } from "./Cursor.ts"
import { refuse } from "./Refuse.ts"
import { balancesView, transferView } from "./UsageApi.ts"

const Seq = Schema.String.check(Schema.isPattern(/^[0-9]{1,18}$/, { message: "must be at most 18 digits" })).pipe(
  Schema.decodeTo(Schema.BigIntFromString)
)

const pages = cursors("transfers", Seq)

export const layer = HttpApiBuilder.group(
  Api,
  "usage",
  Effect.fn(function*(handlers) {
    const usage = yield* Usage

    return handlers
      .handle("balances", Effect.fnUntraced(function*() {
        const { workspaceId } = yield* CurrentKey
        return balancesView(yield* refuse(usage.balances(workspaceId)))
      }))
      .handle("transfers", Effect.fnUntraced(function*({ query }) {
        const { workspaceId } = yield* CurrentKey
        const limit = pageSize(query.limit)
        const before = yield* pages.after(query.cursor)
        const rows = yield* refuse(usage.transfers({ workspaceId, before, limit: limit + 1 }))
        return pages.page(rows, limit, { key: (row) => row.seq, view: transferView })
      }))
  })
)
