/** A real store and index under ports that do what a test tells them instead, whenever it says so. */
import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Logger } from "effect"
import * as PgStore from "../../src/adapters/PgStore.ts"
import * as PgVectorIndex from "../../src/adapters/PgVectorIndex.ts"
import type { WorkspaceId } from "../../src/domain/Ids.ts"
import type { MemoryStore } from "../../src/services/MemoryStore.ts"
import { Provider, ProviderFailure } from "../../src/services/Provider.ts"
import { Settings, type SettingsShape } from "../../src/services/Settings.ts"
import { Store } from "../../src/services/Store.ts"
import { VectorIndex } from "../../src/services/VectorIndex.ts"
import { PgTest } from "../postgres.ts"
import * as Models from "./models.ts"

const dimension = 32

export class Faulty extends Context.Service<Faulty, {
  embed: Provider["Service"]["embed"]
  index: Partial<VectorIndex["Service"]>
  memories: Partial<MemoryStore>
  /** Every batch of texts that was to be embedded. */
  readonly asked: Array<ReadonlyArray<string>>
}>()("indelible/test/Faulty") {
  static readonly layer = Layer.sync(Faulty, () => ({
    embed: Models.provider("words", dimension).embed,
    index: {},
    memories: {},
    asked: []
  }))
}

export const failing = (failure: ProviderFailure["failure"], retryAfterMs: number | null = null) =>
  Effect.fail(new ProviderFailure({ failure, retryAfterMs }))

/** Members come from `faults` while they are there. */
const over = <A extends object>(real: A, faults: () => Partial<A>): A =>
  new Proxy(real, { get: (target, key) => Reflect.get(faults(), key) ?? Reflect.get(target, key) })

const provider = Layer.effect(
  Provider,
  Effect.map(Faulty, (faulty) =>
    Provider.of({
      ...Models.provider("words", dimension),
      embed: (texts) =>
        Effect.suspend(() => {
          faulty.asked.push(texts)
          return faulty.embed(texts)
        })
    }))
)

const ports = Layer.effectContext(Effect.gen(function*() {
  const faulty = yield* Faulty
  const store = yield* Store
  return Context.make(Store, { ...store, memories: over(store.memories, () => faulty.memories) }).pipe(
    Context.add(VectorIndex, over(yield* VectorIndex, () => faulty.index))
  )
}))

/** A world of its own for each test that builds it. */
export const layer = (settings: SettingsShape) =>
  ports.pipe(
    Layer.provide(PgVectorIndex.layer),
    Layer.provide(PgStore.layer),
    Layer.provideMerge(provider),
    Layer.provideMerge(Faulty.layer),
    Layer.provideMerge(PgTest.layer),
    Layer.provideMerge(Layer.succeed(Settings, settings)),
    Layer.provideMerge(Logger.layer([]))
  )

export const open = (workspaceId: WorkspaceId) =>
  Effect.flatMap(PgClient.PgClient, (sql) => sql`insert into workspaces (workspace_id) values (${workspaceId})`)
