/** The audit on a real Postgres: nothing on a healthy database, and each planted difference by its name and id. */
import { PgClient } from "@effect/sql-pg"
import { assert, describe, layer } from "@effect/vitest"
import { Duration, Effect } from "effect"
import * as PgAudit from "../src/adapters/PgAudit.ts"
import * as PgMend from "../src/adapters/PgMend.ts"
import type { WorkspaceId } from "../src/domain/Ids.ts"
import type { Violation } from "../src/domain/Invariant.ts"
import { perLane, perMemory, perOperation, perWorkspace } from "../src/domain/Invariants.ts"
import { overdueLanes, overdueOperations, overdueProjections, overdueWork } from "../src/domain/Overdue.ts"
import { Repair } from "../src/services/Repair.ts"
import { defaultSettings } from "../src/services/Settings.ts"
import { canary, type Plant, prepare, sow } from "./auditPlants.ts"
import * as World from "./world.ts"

const limits = {
  overdueMs: 900_000,
  inputRetentionMs: Duration.toMillis(defaultSettings.failedInputRetention)
}

const lookAt = Effect.fnUntraced(function*(options: { readonly pageSize?: number; readonly workspaceId?: WorkspaceId } = {}) {
  const found: Array<Violation> = []
  const looked = yield* Effect.orDie(PgAudit.look({ ...options, limits, see: (some) => Effect.sync(() => void found.push(...some)) }))
  return { found, looked }
})

const names = (found: ReadonlyArray<Violation>, { id, workspaceId }: Plant) =>
  found.filter((one) => one.id === id && one.workspaceId === workspaceId).map(({ invariant }) => invariant)

const missed = (found: ReadonlyArray<Violation>, plants: ReadonlyArray<Plant>) =>
  plants.filter((plant) => !names(found, plant).includes(plant.invariant)).map(({ invariant }) => invariant)

const mend = (found: ReadonlyArray<Violation>) => PgMend.mend(found.filter(PgMend.isMendable)).pipe(Effect.provide(Repair.layer))

/** All the money there is, row by row. */
const money = Effect.map(World.dump, ({ accounts, authorizations, transfers }) => ({ accounts, authorizations, transfers }))

/** What may not be missing from the plants. */
const every = [
  ...perOperation,
  ...perLane,
  ...perWorkspace,
  ...perMemory,
  ...overdueOperations,
  ...overdueLanes,
  ...overdueWork,
  ...overdueProjections
].map(({ name }) => name)

describe("an audit", () => {
  layer(World.layer(), { excludeTestServices: true })("of a database", (it) => {
    it.effect("finds nothing while it is healthy, each planted difference afterwards, and mends what is safe to mend", () =>
      Effect.gen(function*() {
        const plants = yield* prepare
        const healthy = yield* lookAt()
        assert.deepStrictEqual(healthy.found, [])
        assert.deepStrictEqual(healthy.looked, {
          workspaces: 5,
          operations: yield* World.count("operations"),
          memories: yield* World.count("memories")
        })

        assert.sameMembers([...new Set(plants.map(({ invariant }) => invariant))], [...every, "rows-are-readable"])
        yield* sow(plants)
        const { found } = yield* lookAt()
        assert.deepStrictEqual(missed(found, plants), [])
        assert.notInclude(JSON.stringify(found), canary)

        const inSmallPages = yield* lookAt({ pageSize: 1 })
        // Between two looks the clock goes on.
        const sorted = (some: ReadonlyArray<Violation>) =>
          some.map((one) => JSON.stringify(one).replace(/\d+ s ago/, "a while ago")).toSorted()
        assert.deepStrictEqual(sorted(inSmallPages.found), sorted(found))
        const [elsewhere] = plants.filter(({ workspaceId }) => workspaceId !== World.workspace)
        const one = yield* lookAt({ workspaceId: elsewhere!.workspaceId })
        assert.deepStrictEqual([...new Set(one.found.map(({ workspaceId }) => workspaceId))], [elsewhere!.workspaceId])

        const before = yield* money
        const mended = yield* mend(found)
        const left = (yield* lookAt()).found
        const gone = plants.filter((plant) => !names(left, plant).includes(plant.invariant)).map(({ invariant }) => invariant)
        assert.sameMembers(gone, [
          "deleted-is-forgotten",
          "failed-input-expires",
          "lanes-have-a-head",
          "nothing-without-its-memory",
          "projected-or-waiting",
          "projection-never-ahead",
          "success-is-redacted"
        ])
        for (const plant of plants.filter(({ invariant }) => gone.includes(invariant))) {
          assert.include(mended.map(({ id }) => id), plant.id, plant.invariant)
        }
        assert.deepStrictEqual(yield* money, before)
        const again = yield* mend(found)
        assert.deepStrictEqual([...new Set(again.map(({ did }) => did))], ["told the workers to look"])
      }))

    it.effect("leaves the projector to do the rest", () =>
      Effect.gen(function*() {
        const sql = yield* PgClient.PgClient
        const waiting = sql`select memory_id from projections where next_attempt_at <= now()`
        assert.isNotEmpty(yield* waiting)
        yield* World.startWorker()
        yield* Effect.repeat(sql`select memory_id from projections`, { until: (rows) => rows.length === 0 })
        const { found } = yield* lookAt()
        const projections = ["projected-or-waiting", "projection-never-ahead", "projections-advance"]
        assert.deepStrictEqual(found.filter(({ invariant }) => projections.includes(invariant)), [])
      }))
  })
})
