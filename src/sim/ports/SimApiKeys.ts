/** `ApiKeys` on the simulated database, which never sees a secret. */
import { Context, Effect, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import { digest } from "../../domain/Digest.ts"
import { ApiKeyId, refKey, Timestamp, type WorkspaceId } from "../../domain/Ids.ts"
import { emptyBalances } from "../../domain/Ledger.ts"
import { NotFound } from "../../domain/Refusal.ts"
import { type ApiKey, ApiKeys, KeyScope } from "../../services/ApiKeys.ts"
import * as Batcher from "../../services/Batcher.ts"
import type { Rows } from "../Commit.ts"
import type { SimDatabase } from "../database/SimDatabase.ts"

const hashOf = (secret: Redacted.Redacted): string => digest("indelible/api-key/v1", Redacted.value(secret))
const alphabet = "0123456789abcdefghijklmnopqrstuvwxyz"
const text = (bytes: Uint8Array): string => Array.from(bytes, (byte) => alphabet[byte % 36]).join("")
const shown = ({ secretHash: _, ...key }: Rows["apiKeys"]): ApiKey => key

/** From the randomness of the process that asks. */
const randomBytes = (size: number): Effect.Effect<Uint8Array> =>
  Effect.withFiber((fiber) => Context.getUnsafe(fiber.context, SecureRandom.SecureRandom).randomBytes(size))

export const make = (database: SimDatabase): ApiKeys["Service"] => {
  const { tables } = database
  const { apiKeys, workspaces } = tables
  const bySecret = (hash: string) => database.ask("apiKeys.find", (tx) => tables.apiKeysBySecret.rows(tx, hash)[0] ?? null)

  const existing = (workspaceId: WorkspaceId) =>
    Effect.flatMap(database.ask("apiKeys.workspace", (tx) => workspaces.get(tx, workspaceId)), (row) =>
      row === null ? Effect.fail(new NotFound({ what: "workspace" })) : Effect.void)

  const insert = Effect.fnUntraced(function*(
    workspaceId: WorkspaceId,
    label: string,
    scopes: ReadonlyArray<KeyScope>,
    secret: Redacted.Redacted
  ) {
    yield* existing(workspaceId)
    const id = ApiKeyId.make(text(yield* randomBytes(12)))
    const secretHash = hashOf(secret)
    yield* database.askInTurn("apiKeys.insert", (tx) => {
      const createdAt = Timestamp.make(Math.floor(tx.startedAt))
      const row = { workspaceId, id, label, scopes, createdAt, revokedAt: null, secretHash }
      return apiKeys.insertUnlessTaken(tx, row, tables.apiKeysBySecret.name)
    })
    const key = yield* bySecret(secretHash)
    return key?.workspaceId === workspaceId
      ? shown(key)
      : yield* Effect.die("an API key of one workspace was offered to another")
  })

  const look = database.oncePerProcess(Batcher.makeRoomy<string, ApiKey | null>({
    maxSize: 200,
    loops: 2,
    run: (hashes) =>
      database.ask("apiKeys.look", (tx) =>
        hashes.map((hash) => {
          const [row] = tables.apiKeysBySecret.rows(tx, hash)
          return row === undefined || row.revokedAt !== null ? null : shown(row)
        }))
  }))

  return ApiKeys.of({
    authenticate: (secret) => Effect.flatMap(look, (look) => look(hashOf(secret))),

    makeWorkspace: (workspaceId) =>
      database.askInTurn("apiKeys.makeWorkspace", function*(tx) {
        const made = yield* workspaces.insertUnlessTaken(tx, { id: workspaceId })
        if (made === null) return false
        yield* tables.accounts.insert(tx, { workspaceId, balances: emptyBalances, fairTime: 0 })
        return true
      }),

    make: Effect.fnUntraced(function*(workspaceId, label, scopes) {
      const bytes = yield* randomBytes(32)
      const secret = Redacted.make(`ind_${Buffer.from(bytes).toString("base64url")}`)
      return { key: yield* insert(workspaceId, label, scopes, secret), secret }
    }),

    ensure: (workspaceId, label, secret) => insert(workspaceId, label, KeyScope.literals, secret),

    list: (workspaceId) =>
      Effect.andThen(
        existing(workspaceId),
        database.ask("apiKeys.list", (tx) =>
          tables.apiKeysOf.rows(tx, workspaceId)
            .map(shown)
            .sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1)))
      ),

    revoke: Effect.fnUntraced(function*(workspaceId, id) {
      const key = yield* database.askInTurn("apiKeys.revoke", function*(tx) {
        const slot = apiKeys.slots.get(refKey({ workspaceId, id }))
        if (slot === undefined || slot.seen(tx) === null) return null
        yield* tx.lock(slot)
        const row = slot.seen(tx)!
        const revoked = { ...row, revokedAt: row.revokedAt ?? Timestamp.make(Math.floor(database.now)) }
        apiKeys.set(tx, slot, revoked)
        return shown(revoked)
      })
      return key ?? (yield* new NotFound({ what: "api_key" }))
    })
  })
}
