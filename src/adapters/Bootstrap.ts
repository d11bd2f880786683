/** The first start: a workspace, a key that opens it, and credit to spend. Every later start finds them and adds nothing. */
import { Console, Effect, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { WorkspaceId } from "../domain/Ids.ts"
import { type ApiKey, ApiKeys } from "../services/ApiKeys.ts"
import * as Grants from "../services/Grants.ts"
import { Ledger } from "../services/Ledger.ts"
import { type Configuration, ConfigurationError } from "./Configuration.ts"
import { makeDirectory, unusable } from "../directories.ts"

/** The workspace that the bootstrap key opens. */
export const workspaceId = WorkspaceId.make("default")

/** The name of the initial grant: a repeat of it grants nothing. */
const grantReference = "initial"

const label = "bootstrap"

export const run = Effect.fnUntraced(function*(config: Configuration) {
  const keys = yield* ApiKeys
  yield* keys.makeWorkspace(workspaceId)
  yield* grant(config)
  const secret = config.apiKey ?? (yield* keptSecret(config.dataDir))
  const key = yield* keys.ensure(workspaceId, label, secret)
  if (key.revokedAt !== null) {
    yield* Effect.logWarning("The bootstrap API key was revoked and stays so: set another INDELIBLE_API_KEY, or make a key")
  }
  const others = othersThan(key, yield* keys.list(workspaceId))
  if (others !== null) yield* Effect.logWarning(others)
})

/** Whoever changes the amount of a grant that was given is told that this grants nothing. */
const grant = Effect.fnUntraced(function*({ credits, creditsGiven }: Configuration) {
  const before = credits > 0n
    ? yield* Grants.give(workspaceId, credits, grantReference)
    : yield* (yield* Ledger).granted(workspaceId, grantReference)
  if (!creditsGiven || before === null || before === credits) return
  yield* Effect.logWarning(
    `INDELIBLE_CREDITS changes nothing: workspace ${workspaceId} was granted ${before} credits at its first start. ` +
      `More: npm run admin -- credit grant ${workspaceId} CREDITS --reference NAME`
  )
}, Effect.catchTag("IssuedTooMuch", ({ message }) => Effect.logWarning(`INDELIBLE_CREDITS: ${message}`)))

/**
 * One line about the live bootstrap keys beside `key`; null when there is none. A start with another key makes another
 * one, and leaves the earlier ones to whoever knows them.
 */
export const othersThan = (key: ApiKey, keys: ReadonlyArray<ApiKey>): string | null => {
  const others = keys.filter((other) => other.label === label && other.revokedAt === null && other.id !== key.id)
  if (others.length === 0) return null
  const revoke = others.map(({ id }) => `npm run admin -- key revoke ${key.workspaceId} ${id}`)
  return `Bootstrap API keys that open workspace ${key.workspaceId} as well: ${others.length}. ` +
    `If nobody is meant to use them any more: ${revoke.join("; ")}`
}

/** The random key of this data directory: made once, shown once, and kept for its owner only. */
const keptSecret = Effect.fnUntraced(function*(dataDir: string) {
  const file = Path.join(dataDir, "api-key")
  const kept = yield* Effect.try({
    try: () => Fs.existsSync(file) ? Fs.readFileSync(file, "utf8").trim() : null,
    catch: (cause) => new ConfigurationError({ message: unusable(dataDir, `${file} cannot be read`, cause) })
  })
  if (kept !== null && kept !== "") {
    yield* Console.log(`The API key of workspace ${workspaceId} is in ${file}`)
    return Redacted.make(kept)
  }
  const bytes = yield* (yield* SecureRandom.SecureRandom).randomBytes(32)
  const secret = yield* keep(dataDir, file, `ind_${Buffer.from(bytes).toString("base64url")}`)
  yield* Console.log(`API key of workspace ${workspaceId}, shown this once and kept in ${file}: ${secret}`)
  return Redacted.make(secret)
})

const keep = (dataDir: string, file: string, secret: string) =>
  Effect.try({
    try: () => {
      makeDirectory(dataDir)
      Fs.writeFileSync(file, `${secret}\n`, { mode: 0o600 })
      return secret
    },
    catch: (cause) => new ConfigurationError({ message: unusable(dataDir, `${file} cannot be written`, cause) })
  })
