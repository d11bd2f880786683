/** `ApiKeys` on a real Postgres, which never sees a secret. */
import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { ApiKeys } from "../../src/services/ApiKeys.ts"
import { workspaceOf } from "../services/records.ts"
import { dump } from "../world.ts"
import { postgres } from "./pgPorts.ts"

layer(postgres)("PgApiKeys", (it) => {
  it.effect("no secret, made or given, is in any table in any spelling of its own", () =>
    Effect.gen(function*() {
      const keys = yield* ApiKeys
      const workspaceId = workspaceOf("dumped")
      yield* keys.makeWorkspace(workspaceId)
      const { key, secret } = yield* keys.make(workspaceId, "label", [])
      const given = Redacted.make("canary-of-the-operator")
      yield* keys.ensure(workspaceId, "bootstrap", given)
      yield* keys.authenticate(Redacted.make("canary-of-a-guess"))
      yield* keys.revoke(workspaceId, key.id)
      const tables = yield* dump
      assert.strictEqual(tables["api_keys"]?.length, 2)
      const everything = JSON.stringify(tables).toLowerCase()
      const made = Redacted.value(secret)
      const canaries = ["canary-of-the-operator", "canary-of-a-guess", made, made.slice(made.indexOf("_") + 1)]
      for (const canary of canaries) {
        const bytes = Buffer.from(canary)
        for (const spelling of [canary, bytes.toString("hex"), bytes.toString("base64")]) {
          assert.notInclude(everything, spelling.toLowerCase())
        }
      }
      const sql = yield* PgClient.PgClient
      const [row] = yield* sql<{ readonly hash: string }>`select secret_hash as hash from api_keys`
      assert.match(row!.hash, /^[0-9a-f]{64}$/)
    }))
})
