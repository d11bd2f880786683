/** `ApiKeys` on Postgres. A secret has 256 random bits, so that its plain SHA-256 is safe to keep and quick to look up. */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Redacted, Schema } from "effect"
import { SecureRandom } from "effect/crypto"
import { digest } from "../domain/Digest.ts"
import { ApiKeyId, type WorkspaceId } from "../domain/Ids.ts"
import { NotFound } from "../domain/Refusal.ts"
import { ApiKey, ApiKeys, KeyScope } from "../services/ApiKeys.ts"
import * as Batcher from "../services/Batcher.ts"
import { milliseconds, rowsOf } from "./PgRows.ts"
import { outcome } from "./PgTransaction.ts"

const decodeKeys = rowsOf(ApiKey)
const decodeHashedKeys = rowsOf(Schema.Struct({ ...ApiKey.fields, secretHash: Schema.String }))
const hashOf = (secret: Redacted.Redacted): string => digest("indelible/api-key/v1", Redacted.value(secret))
const alphabet = "0123456789abcdefghijklmnopqrstuvwxyz"
const text = (bytes: Uint8Array): string => Array.from(bytes, (byte) => alphabet[byte % 36]).join("")

export const layer = Layer.effect(
  ApiKeys,
  Effect.gen(function*() {
    const sql = yield* PgClient.PgClient
    const random = yield* SecureRandom.SecureRandom
    const columns = sql.literal(`k.workspace_id as "workspaceId", k.id, k.label, k.scopes,
      ${milliseconds("k.created_at")} as "createdAt",
      ${milliseconds("k.revoked_at")} as "revokedAt"`)

    const existing = Effect.fnUntraced(function*(workspaceId: WorkspaceId) {
      const rows = yield* outcome(sql`select 1 from workspaces where workspace_id = ${workspaceId}`)
      if (rows.length === 0) return yield* new NotFound({ what: "workspace" })
    })

    const insert = Effect.fnUntraced(function*(
      workspaceId: WorkspaceId,
      label: string,
      scopes: ReadonlyArray<KeyScope>,
      secret: Redacted.Redacted
    ) {
      yield* existing(workspaceId)
      const id = ApiKeyId.make(text(yield* random.randomBytes(12)))
      yield* outcome(sql`insert into api_keys (workspace_id, id, secret_hash, label, scopes)
        values (${workspaceId}, ${id}, ${hashOf(secret)}, ${label}, ${[...scopes]}::text[])
        on conflict (secret_hash) do nothing`)
      // A key that was revoked stays revoked, whoever offers it again.
      const [key] = decodeKeys(
        yield* outcome(sql`select ${columns} from api_keys k
          where k.workspace_id = ${workspaceId} and k.secret_hash = ${hashOf(secret)}`)
      )
      return key ?? (yield* Effect.die("an API key of one workspace was offered to another"))
    })

    // Callers that come at the same time are let in by one look, which is not remembered: a revoked key opens nothing.
    const look = yield* Batcher.makeRoomy({
      maxSize: 200,
      loops: 2,
      run: Effect.fnUntraced(function*(hashes: ReadonlyArray<string>) {
        const live = decodeHashedKeys(
          yield* outcome(sql`select ${columns}, k.secret_hash as "secretHash" from api_keys k
            where k.secret_hash = any(${[...new Set(hashes)]}::text[]) and k.revoked_at is null`)
        )
        const byHash = new Map(live.map(({ secretHash, ...key }) => [secretHash, key]))
        return hashes.map((hash): ApiKey | null => byHash.get(hash) ?? null)
      })
    })

    return ApiKeys.of({
      authenticate: Effect.fn("ApiKeys.authenticate")((secret) => look(hashOf(secret))),
      makeWorkspace: Effect.fn("ApiKeys.makeWorkspace")((workspaceId) =>
        outcome(sql`with made as (
            insert into workspaces (workspace_id) values (${workspaceId}) on conflict do nothing returning workspace_id
          ) insert into accounts (workspace_id) select workspace_id from made returning 1`).pipe(
          Effect.map((rows) => rows.length > 0)
        )
      ),
      make: Effect.fn("ApiKeys.make")(function*(workspaceId, label, scopes) {
        const bytes = yield* random.randomBytes(32)
        const secret = Redacted.make(`ind_${Buffer.from(bytes).toString("base64url")}`)
        return { key: yield* insert(workspaceId, label, scopes, secret), secret }
      }),
      ensure: Effect.fn("ApiKeys.ensure")((workspaceId, label, secret) =>
        insert(workspaceId, label, KeyScope.literals, secret)
      ),
      list: Effect.fn("ApiKeys.list")(function*(workspaceId) {
        yield* existing(workspaceId)
        return decodeKeys(yield* outcome(sql`select ${columns} from api_keys k where k.workspace_id = ${workspaceId}
          order by k.created_at, k.id`))
      }),
      revoke: Effect.fn("ApiKeys.revoke")(function*(workspaceId, id) {
        const rows = yield* outcome(sql`update api_keys k set revoked_at = coalesce(k.revoked_at, clock_timestamp())
          where k.workspace_id = ${workspaceId} and k.id = ${id} returning ${columns}`)
        return decodeKeys(rows)[0] ?? (yield* new NotFound({ what: "api_key" }))
      })
    })
  })
)
