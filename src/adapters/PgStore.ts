/** `Store` on Postgres. */
import { Effect, Layer } from "effect"
import { Store } from "../services/Store.ts"
import * as PgMemoryStore from "./PgMemoryStore.ts"
import * as PgOperationStore from "./PgOperationStore.ts"

export const layer = Layer.effect(
  Store,
  Effect.gen(function*() {
    return Store.of({ operations: yield* PgOperationStore.make, memories: yield* PgMemoryStore.make })
  })
)
