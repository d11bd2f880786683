/** A backlog as accepts would have left it, made in bulk: pending operations with their inputs, one head to a lane. */
import { Effect } from "effect"
import { ApiKeys } from "../src/services/ApiKeys.ts"
import type { WorkspaceId } from "../src/domain/Ids.ts"
import { type Database, look } from "./server.ts"
import { said } from "./service.ts"

export interface Backlog {
  readonly workspaceId: WorkspaceId
  readonly operations: number
  readonly lanes: number
}

/** Fills a workspace of a database. The statistics are fresh afterwards, as autovacuum would have left them. */
export const fill = Effect.fnUntraced(function*(database: Database, { lanes, operations, workspaceId }: Backlog) {
  yield* (yield* ApiKeys).makeWorkspace(workspaceId)
  yield* Effect.scoped(Effect.gen(function*() {
    const sql = yield* look(database)
    const hash = "ab".repeat(32)
    const evidence = {
      commandVersion: 1,
      commandHash: hash,
      messages: 1,
      inputBytes: 120,
      model: null,
      planDigest: null,
      offered: 0,
      stored: 0
    }
    const input = {
      messages: [{ role: "user", content: said(0) }],
      metadata: {},
      eventDate: null,
      instructions: null
    }
    yield* sql`insert into operations (workspace_id, id, kind, state, scope, lane, seq, ready, fair_tag, epoch, attempts,
        window_started_at, evidence, created_at)
      select ${workspaceId}, ('019b0000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'memory.infer', 'pending',
        jsonb_build_object('user_id', 'user-' || n % ${lanes}), md5((n % ${lanes})::text), nextval('operation_seq'),
        n < ${lanes}, n, 0, 0, now(), ${sql.json(evidence)}, now()
      from generate_series(0, ${operations} - 1) n`
    yield* sql`insert into operation_inputs (workspace_id, operation_id, input)
      select workspace_id, id, ${sql.json(input)} from operations where workspace_id = ${workspaceId}`
    yield* sql`vacuum analyze operations, operation_inputs`
  }))
}, Effect.orDie)
