/**
 * The service as it is measured: production's programs, adapters and settings, a provider that answers at once with one
 * fact of what was said, and no vectors. The projector and repair do not run.
 */
import { Effect, Layer, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import * as PgApiKeys from "../src/adapters/PgApiKeys.ts"
import * as PgDatabase from "../src/adapters/PgDatabase.ts"
import * as PgLedger from "../src/adapters/PgLedger.ts"
import * as PgQueue from "../src/adapters/PgQueue.ts"
import * as PgReadiness from "../src/adapters/PgReadiness.ts"
import * as PgStatistics from "../src/adapters/PgStatistics.ts"
import * as PgStore from "../src/adapters/PgStore.ts"
import * as PgTransaction from "../src/adapters/PgTransaction.ts"
import { IdempotencyKey, normaliseAdd } from "../src/domain/Command.ts"
import { WorkspaceId } from "../src/domain/Ids.ts"
import { ApiKeys } from "../src/services/ApiKeys.ts"
import { Attempt } from "../src/services/Attempt.ts"
import { Claims } from "../src/services/Claims.ts"
import { Commands } from "../src/services/Commands.ts"
import { Ledger } from "../src/services/Ledger.ts"
import * as Programs from "../src/services/Programs.ts"
import { Provider } from "../src/services/Provider.ts"
import { Settlement } from "../src/services/Settlement.ts"
import { VectorIndex } from "../src/services/VectorIndex.ts"
import * as Worker from "../src/services/Worker.ts"

/** The ports on their Postgres adapters, with the pools that the service has by default. */
export const ports = (url: string) =>
  Layer.mergeAll(PgStore.layer, PgLedger.layer, PgQueue.layer, PgTransaction.layer, PgApiKeys.layer, PgReadiness.layer).pipe(
    Layer.merge(PgStatistics.layer),
    Layer.provideMerge(PgDatabase.layer({ url: Redacted.make(url) })),
    Layer.provideMerge(SecureRandom.layerWebCrypto),
    Layer.orDie
  )

/** `onExtract` is told of each extraction as it begins: an attempt has started. */
const provider = (onExtract: () => void) =>
  Layer.succeed(Provider, Provider.of({
    model: "no-op",
    embeddingModel: "no-op",
    dimension: 1,
    extract: ({ messages }) =>
      Effect.sync(() => {
        onExtract()
        return [{ change: "add", text: messages[0]!.content, target: null }]
      }),
    embed: () => Effect.succeed([])
  }))

const noVectors = Layer.succeed(VectorIndex, VectorIndex.of({
  put: () => Effect.void,
  remove: () => Effect.void,
  search: () => Effect.succeed([])
}))

/** What callers use. */
export const api = Programs.api.pipe(Layer.provide(noVectors), Layer.provide(provider(() => {})))

/** What works. It lives until its scope closes. */
export const worker = (onExtract: () => void = () => {}) =>
  Worker.layer.pipe(
    Layer.provide(Attempt.layer),
    Layer.provide(Claims.layer),
    Layer.provide(Settlement.layer),
    Layer.provide(noVectors),
    Layer.provide(provider(onExtract))
  )

export const workspace = WorkspaceId.make("bench")

/** A workspace that can afford everything. */
export const open = Effect.fnUntraced(function*(id: WorkspaceId) {
  yield* (yield* ApiKeys).makeWorkspace(id)
  yield* (yield* Ledger).grant(id, 1_000_000_000n, "bench")
}, Effect.orDie)

/** What a caller says, about as long as people do: 120 characters. */
export const said = (n: number): string =>
  `Remember number ${n}: I moved from Berlin to Lisbon last spring, I work as a nurse, and I like my tea without sugar.`

/** Accepts the `n`th command. */
export const accept = Effect.fnUntraced(function*(n: number, user: string, id: WorkspaceId = workspace) {
  const commands = yield* Commands
  return yield* commands.infer(id, IdempotencyKey.make(`key-${n}`), normaliseAdd({ content: said(n), user_id: user }))
}, Effect.orDie)
