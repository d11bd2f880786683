/** `Ledger` on Postgres: a transfer row moves the balances by trigger, and the database refuses what would break a rule. */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Schema } from "effect"
import { type OperationRef, WorkspaceId } from "../domain/Ids.ts"
import { Authorization, emptyBalances, type Transfer, TransferRow } from "../domain/Ledger.ts"
import { Ledger } from "../services/Ledger.ts"
import { milliseconds, rowsOf } from "./PgRows.ts"
import { type Columns, refColumns, table } from "./PgTable.ts"
import { outcome } from "./PgTransaction.ts"

const decodeAccounts = rowsOf(Schema.Struct({
  workspaceId: WorkspaceId,
  available: Schema.BigInt,
  reserved: Schema.BigInt,
  consumed: Schema.BigInt,
  issued: Schema.BigInt,
  fairTime: Schema.Finite
}))
const decodeAuthorizations = rowsOf(Authorization)
const decodeTransfers = rowsOf(TransferRow)
const decodeGrants = rowsOf(Schema.Struct({ amount: Schema.BigInt }))

export const layer = Layer.effect(
  Ledger,
  Effect.gen(function*() {
    const sql = yield* PgClient.PgClient
    const account = sql.literal(`workspace_id as "workspaceId", available, reserved, consumed, issued,
      fair_time::float8 as "fairTime"`)
    const authorization = sql.literal(`a.workspace_id as "workspaceId", a.operation_id as "operationId", a.no, a.state,
      a.reserved, a.charged, a.price`)
    const refs = (rows: ReadonlyArray<OperationRef>) => table(sql, rows, refColumns)
    const toAccount = ({ workspaceId, fairTime, ...balances }: ReturnType<typeof decodeAccounts>[number]) => ({
      workspaceId,
      fairTime,
      balances
    })

    return Ledger.of({
      lock: (workspaceIds) =>
        outcome(sql`select ${account} from accounts where workspace_id = any(${[...new Set(workspaceIds)]}::text[])
          order by workspace_id for no key update`).pipe(Effect.map((rows) => decodeAccounts(rows).map(toAccount))),

      setFairTimes: Effect.fnUntraced(function*(rows) {
        if (rows.length === 0) return
        yield* outcome(sql`update accounts a set fair_time = r.fair_time
          from ${table(sql, rows, fairTimeColumns)} where a.workspace_id = r.workspace_id`)
      }),

      openAuthorizations: (rows) =>
        rows.length === 0
          ? Effect.succeed([])
          : outcome(sql`select ${authorization} from authorizations a
            join ${refs(rows)} on a.workspace_id = r.workspace_id and a.operation_id = r.id
            where a.state = 'open' order by a.workspace_id, a.operation_id for no key update of a`).pipe(
            Effect.map(decodeAuthorizations)
          ),

      // In one statement: what an authorization is, and what moves because of it.
      post: (authorizations, transfers) =>
        authorizations.length + transfers.length === 0
          ? Effect.void
          : outcome(sql`with authorized as (
              insert into authorizations as a (workspace_id, operation_id, no, state, reserved, charged, price)
              select * from ${table(sql, authorizations, authorizationColumns)}
              on conflict (workspace_id, operation_id, no) do update set state = excluded.state, charged = excluded.charged
              where a.state = 'open'
            )
            insert into transfers (workspace_id, kind, amount, operation_id, authorization_no, reference)
            select workspace_id, kind, amount, operation_id, authorization_no, reference
            from ${table(sql, transfers, transferColumns)}
            order by n`).pipe(Effect.asVoid),

      authorizations: (rows) =>
        rows.length === 0
          ? Effect.succeed([])
          : outcome(sql`select ${authorization} from authorizations a
            join ${refs(rows)} on a.workspace_id = r.workspace_id and a.operation_id = r.id
            order by a.workspace_id, a.operation_id, a.no`).pipe(Effect.map(decodeAuthorizations)),

      balances: (workspaceId) =>
        outcome(sql`select ${account} from accounts where workspace_id = ${workspaceId}`).pipe(
          Effect.map((rows) => decodeAccounts(rows).map(toAccount)[0]?.balances ?? emptyBalances)
        ),

      transfers: (page) =>
        outcome(sql`select workspace_id as "workspaceId", seq, kind, operation_id as "operationId",
            authorization_no as "authorizationNo", amount, reference,
            ${sql.literal(milliseconds("at"))} as at
          from transfers where workspace_id = ${page.workspaceId}
            and seq < ${page.before ?? 9223372036854775807n}::bigint
          order by seq desc limit ${page.limit}`).pipe(Effect.map(decodeTransfers)),

      grant: (workspaceId, amount, reference) =>
        outcome(sql`insert into transfers (workspace_id, kind, amount, reference)
          values (${workspaceId}, 'grant', ${amount}::bigint, ${reference})
          on conflict (workspace_id, reference) where kind = 'grant' do nothing returning 1`).pipe(
          Effect.map((rows) => rows.length > 0)
        ),

      granted: (workspaceId, reference) =>
        outcome(sql`select amount from transfers
          where workspace_id = ${workspaceId} and reference = ${reference} and kind = 'grant'`).pipe(
          Effect.map((rows) => decodeGrants(rows)[0]?.amount ?? null)
        )
    })
  })
)

const fairTimeColumns: Columns<{ readonly workspaceId: WorkspaceId; readonly fairTime: number }> = {
  workspace_id: ["text", (r) => r.workspaceId],
  fair_time: ["bigint", (r) => r.fairTime]
}

const authorizationColumns: Columns<Authorization> = {
  workspace_id: ["text", (r) => r.workspaceId],
  operation_id: ["uuid", (r) => r.operationId],
  no: ["int", (r) => r.no],
  state: ["text", (r) => r.state],
  reserved: ["bigint", (r) => r.reserved],
  charged: ["bigint", (r) => r.charged],
  price: ["jsonb", (r) => r.price]
}

const transferColumns: Columns<Transfer> = {
  n: ["int", (_, n) => n],
  workspace_id: ["text", (r) => r.workspaceId],
  kind: ["text", (r) => r.kind],
  amount: ["bigint", (r) => r.amount],
  operation_id: ["uuid", (r) => r.operationId],
  authorization_no: ["int", (r) => r.authorizationNo],
  reference: ["text", (r) => r.reference]
}
