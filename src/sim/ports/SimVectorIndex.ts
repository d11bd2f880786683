/** `VectorIndex` beside the records, as the exact index of Postgres has it. Its writes are no part of their transactions. */
import { Effect } from "effect"
import { inLockOrder, refKey } from "../../domain/Ids.ts"
import { best, dot, unit } from "../../domain/Vector.ts"
import type { OutcomeUnknown } from "../../services/Transaction.ts"
import { VectorIndex, VectorIndexFailure, type VectorRow } from "../../services/VectorIndex.ts"
import type { SimDatabase } from "../database/SimDatabase.ts"
import { removeLocked } from "../database/Deletion.ts"
import { named } from "../database/Table.ts"
import type { Tables } from "../database/Tables.ts"
import type { Steps, Tx } from "../database/Tx.ts"
import { inScope, newestFirst } from "./SimMemoryStore.ts"

/** The most memories of a scope that one search compares, newest first. */
const exactSearchMax = 20_000

/** Of this dimension, or of any if it is null. */
export const make = (database: SimDatabase, dimension: number | null): VectorIndex["Service"] => {
  const { tables } = database
  const checked = (vector: Float32Array) =>
    Effect.fromNullishOr(unit(vector, dimension ?? vector.length)).pipe(
      Effect.mapError(() => new VectorIndexFailure({ reason: "bad_vector" }))
    )

  return VectorIndex.of({
    put: Effect.fnUntraced(function*(rows) {
      if (rows.length === 0) return
      const vectors = yield* Effect.forEach(rows, ({ vector }) => checked(vector))
      const units = rows.map((row, index) => ({ ...row, vector: vectors[index]! }))
      yield* answered(database.askIndex("index.put", (tx) => put(tables, tx, units)))
    }),

    remove: (refs) =>
      refs.length === 0
        ? Effect.void
        : answered(database.askIndex("index.remove", function*(tx) {
          yield* removeLocked(tx, tables.vectors, named(tables.vectors, tx, inLockOrder(refs)))
        })),

    search: Effect.fnUntraced(function*({ limit, scope, vector, workspaceId }) {
      const wanted = yield* checked(vector)
      return yield* answered(database.askIndex("index.search", function*(tx) {
        const hits = best<VectorRow["id"]>(limit)
        for (const { id } of newestFirst(inScope(tables, tx, workspaceId, scope)).slice(0, exactSearchMax)) {
          const row = tables.vectors.get(tx, refKey({ workspaceId, id }))
          if (row !== null) hits.offer(id, dot(row.vector, wanted))
        }
        return hits.kept.map(({ item, score }) => ({ id: item, score }))
      }))
    })
  })
}

const answered = <A>(effect: Effect.Effect<A, OutcomeUnknown>): Effect.Effect<A, VectorIndexFailure> =>
  Effect.mapError(effect, () => new VectorIndexFailure({ reason: "unavailable" }))

/** The memory's row stays locked against its next version and its deletion until the vector is in. */
function* put({ memories, vectors }: Tables, tx: Tx, rows: ReadonlyArray<VectorRow>): Steps<void> {
  const newest = new Map<string, VectorRow>()
  for (const row of rows) {
    const known = newest.get(refKey(row))
    if (known === undefined || known.version < row.version) newest.set(refKey(row), row)
  }
  const isLive = (key: string, tx: Tx) => {
    const memory = memories.get(tx, key)
    return memory !== null && !memory.deleted && memory.version === newest.get(key)!.version
  }
  const slots = named(memories, tx, inLockOrder([...newest.values()])).filter(({ key }) => isLive(key, tx))
  for (const slot of slots) yield* tx.lock(slot, "share")
  for (const { key } of slots) {
    if (!isLive(key, tx)) continue
    const { id, vector, version, workspaceId } = newest.get(key)!
    const row = { workspaceId, id, version, deleted: false, vector }
    while ((yield* vectors.insertUnlessTaken(tx, row)) === null) {
      const slot = vectors.slots.get(key)!
      yield* tx.lock(slot)
      const current = slot.seen(tx)
      if (current === null) continue
      if (version > current.version) vectors.set(tx, slot, row)
      break
    }
  }
}
