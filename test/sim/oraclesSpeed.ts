/** Prints what the oracles cost here: `node --import ./src/sim/withoutAsyncHooks.ts test/sim/oraclesSpeed.ts`. */
import type { Commit, Committed, Rows, TableName } from "../../src/sim/Commit.ts"
import { drawn } from "../../src/sim/Faults.ts"
import { root } from "../../src/sim/Keyed.ts"
import { Oracles } from "../../src/sim/oracles/Oracles.ts"
import * as Schedule from "../../src/sim/Schedule.ts"
import { drawShape } from "../../src/sim/Shape.ts"
import { drawSettings, type SimSettings } from "../../src/sim/SimSettings.ts"
import { World } from "../../src/sim/World.ts"
import { tableNames, type Tables } from "./oraclesRows.ts"

interface Recorded {
  readonly settings: SimSettings
  /** What was there before the first commit. */
  readonly begun: Tables
  readonly commits: ReadonlyArray<{ readonly commit: Commit; readonly at: number }>
}

/** All that one world committed, and when. */
const record = (seed: string): Recorded => {
  const key = root(seed)
  const shape = drawShape(key, "swarm")
  const faults = drawn(key.of("faults"), shape.rates)
  const schedule = Schedule.random(key.of("schedule"))
  const world = new World({ seed, shape, schedule, faults, keep: {}, blind: [] })
  const { committed } = world.service.database
  const begun = copyOf(committed)
  const commits: Array<{ readonly commit: Commit; readonly at: number }> = []
  world.service.database.onCommit((commit) => commits.push({ commit, at: world.kernel.now }))
  world.run()
  return { settings: drawSettings(key.of("settings"), shape, { atOnce: false }), begun, commits }
}

const copyOf = (tables: Committed): Tables =>
  Object.fromEntries(tableNames.map((name) => [name, new Map<string, unknown>(tables[name])])) as unknown as Tables

/** Commits them all again, and lets somebody look. */
const replay = ({ begun, commits, settings }: Recorded, look: boolean): number => {
  let now = 0
  const tables = copyOf(begun)
  const oracles = new Oracles({ settings, now: () => now, canaries: ["nowhere to be found"] })
  for (const { at, commit } of commits) {
    now = at
    for (const { after, key, table } of commit.changes) {
      const rows = tables[table] as Map<string, Rows[TableName]>
      if (after === null) rows.delete(key)
      else rows.set(key, after)
    }
    if (look) oracles.commit(commit, tables)
  }
  if (oracles.violations.length > 0) throw new Error(`the replay is not what was recorded: ${oracles.violations[0]!.invariant}`)
  return commits.length
}

const worlds = Array.from({ length: Number(process.argv[2] ?? 60) }, (_, seed) => record(`speed/${seed}`))

const measure = (look: boolean): number => {
  const begun = process.cpuUsage()
  let commits = 0
  for (let round = 0; round < 10; round++) for (const world of worlds) commits += replay(world, look)
  return process.cpuUsage(begun).user / commits
}

const commits = worlds.reduce((sum, world) => sum + world.commits.length, 0)
for (let round = 0; round < 3; round++) {
  const each = measure(true) - measure(false)
  const aRun = (each * commits / worlds.length / 1_000).toFixed(2)
  console.log(`a commit costs ${each.toFixed(1)} microseconds of one core, and the ${Math.round(commits / worlds.length)} of a run ${aRun} ms`)
}
