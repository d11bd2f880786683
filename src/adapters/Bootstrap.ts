/** The first start: a workspace, a key that opens it, and credit to spend. Every later start finds them and adds nothing. */
import { Console, Effect, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { WorkspaceId } from "../domain/Ids.ts"
import { ApiKeys } from "../services/ApiKeys.ts"
import { Ledger } from "../services/Ledger.ts"
import { type Configuration, ConfigurationError } from "./Configuration.ts"

/** The workspace that the bootstrap key opens. */
export const workspaceId = WorkspaceId.make("default")

/** The name of the initial grant: a repeat of it grants nothing. */
const grantReference = "initial"

export const run = Effect.fnUntraced(function*(config: Configuration) {
  const keys = yield* ApiKeys
  const ledger = yield* Ledger
  yield* keys.makeWorkspace(workspaceId)
  if (config.credits > 0n) yield* ledger.grant(workspaceId, config.credits, grantReference)
  const secret = config.apiKey ?? (yield* keptSecret(config.dataDir))
  const key = yield* keys.ensure(workspaceId, "bootstrap", secret)
  if (key.revokedAt !== null) {
    yield* Effect.logWarning("The bootstrap API key was revoked and stays so: set another INDELIBLE_API_KEY, or make a key")
  }
})

/** The random key of this data directory: made once, shown once, and kept for its owner only. */
const keptSecret = Effect.fnUntraced(function*(dataDir: string) {
  const file = Path.join(dataDir, "api-key")
  const kept = yield* Effect.try({
    try: () => Fs.existsSync(file) ? Fs.readFileSync(file, "utf8").trim() : null,
    catch: () => new ConfigurationError({ message: `DATA_DIR is not usable: ${file} cannot be read` })
  })
  if (kept !== null && kept !== "") {
    yield* Console.log(`The API key of workspace ${workspaceId} is in ${file}`)
    return Redacted.make(kept)
  }
  const bytes = yield* (yield* SecureRandom.SecureRandom).randomBytes(32)
  const secret = yield* keep(file, `ind_${Buffer.from(bytes).toString("base64url")}`)
  yield* Console.log(`API key of workspace ${workspaceId}, shown this once and kept in ${file}: ${secret}`)
  return Redacted.make(secret)
})

const keep = (file: string, secret: string) =>
  Effect.try({
    try: () => {
      Fs.mkdirSync(Path.dirname(file), { recursive: true })
      Fs.writeFileSync(file, `${secret}\n`, { mode: 0o600 })
      return secret
    },
    catch: () => new ConfigurationError({ message: `DATA_DIR is not usable: ${file} cannot be written` })
  })
