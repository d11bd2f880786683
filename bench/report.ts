/** What a run found: medians with their ranges, how they stand against the aims, and the machine that they are of. */
import { Effect } from "effect"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { Server } from "./server.ts"
import { now, quantile, type Sample } from "./trial.ts"

export interface Measured {
  readonly bench: string
  readonly figure: string
  readonly system: string
  readonly unit: string
  readonly values: ReadonlyArray<number>
}

/** Puts together the repeats of each number. */
export const collect = (
  samples: ReadonlyArray<Sample & { readonly bench: string; readonly system: string }>
): ReadonlyArray<Measured> => {
  const groups = Map.groupBy(samples, ({ bench, figure, system }) => JSON.stringify([bench, figure, system]))
  return [...groups.values()].map((group) => ({ ...group[0]!, values: group.map(({ value }) => value) }))
}

export const median = (values: ReadonlyArray<number>): number => quantile(values, 0.5)

const number = (value: number): string =>
  value.toLocaleString("en", value >= 100 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 3 })

const range = (values: ReadonlyArray<number>): string =>
  values.length === 1 ? "" : `${number(Math.min(...values))}–${number(Math.max(...values))}`

const rows = (table: ReadonlyArray<ReadonlyArray<string>>): string =>
  [table[0]!, table[0]!.map(() => "---"), ...table.slice(1)].map((row) => `| ${row.join(" | ")} |`).join("\n")

/** A table of the results of one bench, one row to a figure and a system. */
export const table = (measured: ReadonlyArray<Measured>): string => {
  const figures = [...Map.groupBy(measured, ({ figure }) => figure).values()].flat()
  return rows([
    ["figure", "system", "median", "min–max", "unit"],
    ...figures.map(({ figure, system, unit, values }) => [figure, system, number(median(values)), range(values), unit])
  ])
}

/** What was hoped for, and what came of it. A ratio is ours to the better of the others. */
export const aims = (measured: ReadonlyArray<Measured>): string => {
  const of = (figure: string, system: string) => {
    const found = measured.find((one) => one.figure === figure && one.system === system)
    return found === undefined ? undefined : median(found.values)
  }
  const ratio = (ours: number | undefined, theirs: ReadonlyArray<number | undefined>, better: "max" | "min") => {
    const known = theirs.filter((value) => value !== undefined)
    return ours === undefined || known.length < theirs.length ? undefined : ours / Math[better](...known)
  }
  const peers = ["graphile-worker", "pg-boss"]
  const large = [...new Set(measured.filter(({ bench }) => bench === "claims").map(({ system }) => system))]
  const flat = [...new Set(measured.filter(({ bench, figure }) => bench === "claims" && figure.endsWith("p50")).map((one) => one.figure))]
  const lines: ReadonlyArray<readonly [string, number | undefined, string]> = [
    ...measured.filter(({ bench, figure, system }) =>
      system.startsWith("indelible") && (bench === "accept" && figure.startsWith("accepted") || bench === "drain")
    ).map(({ figure, system, values }) =>
      [`${figure}: ${system} to the better peer per job`, ratio(median(values), peers.map((peer) => of(figure, peer)), "max"), "≥ 3"] as const
    ),
    ...["indelible, worker in the process", "indelible, worker in another process"].map((system) =>
      [
        `wake-up, p50: ${system} to the better peer`,
        ratio(of("wake-up, p50", system), ["graphile-worker", "pg-boss, notified"].map((peer) => of("wake-up, p50", peer)), "min"),
        "≤ 1"
      ] as const
    ),
    ...flat.map((figure) =>
      [`${figure}: ${large[1]} to ${large[0]}`, ratio(of(figure, large[1] ?? ""), [of(figure, large[0] ?? "")], "min"), "≤ 1.5"] as const
    )
  ]
  const known = lines.filter(([, value]) => value !== undefined)
  return known.length === 0 ? "" : rows([
    ["ratio of medians", "found", "aim"],
    ...known.map(([what, value, aim]) => [what, number(value!), aim])
  ])
}

/** The machine, and what one durable commit costs on it: a lone row, committed two hundred times. */
export const machine = Effect.gen(function*() {
  const { admin } = yield* Server
  const [server] = yield* admin<{ version: string; fsync: string; buffers: string }>`select
    current_setting('server_version') as version, current_setting('fsync') as fsync,
    current_setting('shared_buffers') as buffers`
  yield* admin`create table if not exists bench_commit (n int)`
  const times: Array<number> = []
  for (let n = 0; n < 200; n++) {
    const from = now()
    yield* admin`insert into bench_commit values (${n})`
    times.push(now() - from)
  }
  yield* admin`drop table bench_commit`
  return {
    cpu: `${Os.cpus().length} × ${Os.cpus()[0]?.model ?? "unknown"}`,
    memoryGb: Math.round(Os.totalmem() / 2 ** 30),
    node: process.version,
    postgres: server?.version ?? "unknown",
    fsync: server?.fsync ?? "unknown",
    sharedBuffers: server?.buffers ?? "unknown",
    commitMsP50: quantile(times, 0.5),
    commitMsP99: quantile(times, 0.99)
  }
}).pipe(Effect.orDie)

type Machine = Effect.Success<typeof machine>

export const describe = (facts: Machine): string =>
  `${facts.cpu}, ${facts.memoryGb} GB; Node ${facts.node}; Postgres ${facts.postgres}, fsync ${facts.fsync}, shared_buffers ` +
  `${facts.sharedBuffers}; a one-row commit takes ${number(facts.commitMsP50)} ms (p99 ${number(facts.commitMsP99)}).`

/** Keeps the numbers of this run as JSON, and returns where. */
export const save = (facts: Machine, scale: object, measured: ReadonlyArray<Measured>): string => {
  const directory = Path.join(import.meta.dirname, "results")
  Fs.mkdirSync(directory, { recursive: true })
  const at = new Date().toISOString()
  const path = Path.join(directory, `${at.replaceAll(/[:.]/g, "-")}.json`)
  Fs.writeFileSync(path, `${JSON.stringify({ at, machine: facts, scale, measured }, null, 2)}\n`)
  return path
}
