/** `--store`: what the database of a world is made of, and so which module its threads load. */
import { Effect } from "effect"
import { Flag } from "effect/cli"
import type { Harness, Place } from "./Harness.ts"
import { WrongUsage } from "./Output.ts"

/** Every store, with what it is. */
export const storeWords = {
  memory: "the simulated database: transactions that are open at the same time, and all that they do to each other",
  pglite: "the adapters of production on a Postgres in each thread, one transaction at a time"
} as const

export type StoreName = keyof typeof storeWords
export const storeNames = Object.keys(storeWords) as ReadonlyArray<StoreName>

export const store = Flag.Literals("store", storeNames).pipe(
  Flag.withDescription(storeNames.map((name) => `${name}: ${storeWords[name]}`).join(". ")),
  Flag.withDefault("memory" as const)
)

/** The same place on this store. The lines that repeat one of its runs say so. */
export const onStore = Effect.fnUntraced(function*(place: Place, name: StoreName): Effect.fn.Return<Place, WrongUsage> {
  if (name === "memory") return place
  const module = place.stores?.[name]
  if (module === undefined) return yield* new WrongUsage({ message: `nothing here runs on ${name}` })
  return { ...place, module, store: name }
})

/** States to reach are about transactions that overlap: where none does, they are counted, and none is due. */
export const quotasOn = (harness: Harness, name: StoreName): Harness =>
  name === "memory" ? harness : { ...harness, quotas: harness.quotas.map((quota) => ({ ...quota, perThousand: 0 })) }
