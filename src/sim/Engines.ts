/**
 * How runs are chosen: every single fault at every point of a workload, sampled pairs of faults, random worlds, random
 * priorities. Each engine is a list of waves, and a wave depends on nothing but the runs of those before it: the same
 * runs come out, however many threads do them.
 */
import { type Fault, type FaultKind, nameOf, type Occasion } from "./Faults.ts"
import { root } from "./Keyed.ts"
import type { Keep, Run, Spec } from "./Run.ts"
import { type Shape, standard } from "./Shape.ts"

export interface Job {
  readonly spec: Spec
  /** What the next wave wants to see of the run. */
  readonly keep?: Keep
}

export interface Wave {
  /** Made one after another, when they are asked for: there may be no end of them. */
  readonly jobs: Iterable<Job>
  /** What follows from the runs of those jobs that have a `keep`, in the order of the jobs. */
  readonly next?: (kept: ReadonlyArray<Run>) => Wave
}

/** The names by which engines are asked for. */
export const engineNames = ["swarm", "pct", "sweep", "pair"] as const
export type EngineName = (typeof engineNames)[number]

/** What each does, for people. */
export const engineWords: Readonly<Record<EngineName, string>> = {
  swarm: "random worlds: sizes, faults and schedule are drawn from a seed",
  pct: "as swarm, with strict random priorities between processes that change at a few moments",
  sweep: "one run for each single fault at each point of the standard workload; ends by itself",
  pair: "sampled pairs of faults on the standard workload: the second is chosen where the first has led to"
}

/** The runs of an engine. Equal names and bases are equal runs. */
export const engine = (name: EngineName, base: string): Wave => {
  switch (name) {
    case "swarm":
    case "pct":
      return { jobs: seeds(name, base) }
    case "sweep":
      return sweep(base)
    case "pair":
      return pairs(base)
  }
}

/** The jobs of a wave and of all that follow: takes the run of each, and gives the next. */
export function* jobsOf(first: Wave): Generator<Job, void, Run> {
  for (let wave: Wave | undefined = first; wave !== undefined;) {
    const kept: Array<Run> = []
    for (const job of wave.jobs) {
      const run = yield job
      if (job.keep !== undefined) kept.push(run)
    }
    wave = wave.next?.(kept)
  }
}

export const seedOf = (base: string, engine: string, index: number): string => `${base}/${engine}/${index}`

function* seeds(engine: "swarm" | "pct", base: string): Generator<Job> {
  for (let index = 0;; index++) yield { spec: { seed: seedOf(base, engine, index), engine } }
}

/**
 * What a sweep tries at each point that offers it. What the world or a client does of itself is for the swarm, and a
 * deadlock is to programs what a serialization failure is.
 */
export const sweptKinds: ReadonlyArray<FaultKind> = [
  "crash_before",
  "crash_after",
  "pause",
  "terminate",
  "lost_before_send",
  "in_doubt",
  "lost_acknowledgement",
  "late_commit",
  "serialization_failure",
  "delivery_dropped",
  "delivery_duplicated",
  "provider_timeout_after",
  "provider_late",
  "provider_unavailable",
  "provider_refusal",
  "provider_invalid",
  "provider_other_facts",
  "provider_hallucination",
  "index_down",
  "index_lost_reply"
]

const workload: Partial<Shape> = {
  ...standard,
  lanes: 2,
  leaseMs: 5_000,
  budget: 0,
  rates: {}
}

/**
 * Some bugs show only while a lease outlives the model's answer, others only when it does not. Faults may strike for
 * about as long as there is work.
 */
const models = {
  quick: { providerMs: 500, chaosMs: 15_000 },
  slow: { providerMs: 7_500, chaosMs: 25_000 }
} as const

/** The standard workload, twice: with a model that is quick, and with one that is slower than a lease. */
export const workloads = (engine: "sweep" | "pair", base: string): ReadonlyArray<Spec> =>
  Object.entries(models).map(([name, model]) => ({
    seed: `${base}/${engine}/${name}`,
    engine,
    shape: { ...workload, ...model },
    faults: []
  }))

/** Every fault that could strike, in the order of their points. */
export const faultsAt = (
  occasions: ReadonlyArray<Occasion>,
  kinds: ReadonlyArray<FaultKind> = sweptKinds
): ReadonlyArray<Fault> =>
  occasions.flatMap(({ actor, index, kinds: offered, label }) =>
    offered.filter((kind) => kinds.includes(kind)).map((kind) => ({ kind, actor, label, index }))
  )

const keep = { occasions: true } as const

const sweep = (base: string): Wave => ({
  jobs: workloads("sweep", base).map((spec) => ({ spec, keep })),
  next: (clean) => ({
    jobs: clean.flatMap(({ occasions, spec }) =>
      faultsAt(occasions).map((fault) => ({ spec: { ...spec, faults: [fault] } }))
    )
  })
})

/** First faults of one wave, and how many second ones each of them gets. */
const firsts = 32
const seconds = 7

const pairs = (base: string): Wave => ({
  jobs: workloads("pair", base).map((spec) => ({ spec, keep })),
  next: (clean) => firstFaults(base, clean.map(({ occasions, spec }) => ({ spec, faults: faultsAt(occasions) })), 0)
})

interface Workload {
  readonly spec: Spec
  readonly faults: ReadonlyArray<Fault>
}

const firstFaults = (base: string, clean: ReadonlyArray<Workload>, round: number): Wave => {
  const key = root(base).of("pair").of(round)
  const jobs = Array.from({ length: firsts }, (_, index) => {
    const { faults, spec } = clean[index % clean.length]!
    const first = key.of("first").of(index).choose(faults)
    return { spec: { ...spec, faults: first === undefined ? [] : [first] }, keep }
  })
  return { jobs, next: (runs) => secondFaults(base, clean, round, runs) }
}

/** Each after its first, among the points that are there because of it. */
const secondFaults = (
  base: string,
  clean: ReadonlyArray<Workload>,
  round: number,
  runs: ReadonlyArray<Run>
): Wave => {
  const key = root(base).of("pair").of(round).of("second")
  const jobs = runs.flatMap(({ occasions, spec }, place) => {
    const [first] = spec.faults ?? []
    if (first === undefined) return []
    const struck = occasions.findIndex((occasion) => nameOf(occasion) === nameOf(first))
    const order = key.of(place).shuffled(faultsAt(occasions.slice(struck + 1)))
    return order.slice(0, seconds).map((second) => ({ spec: { ...spec, faults: [first, second] } }))
  })
  return { jobs, next: () => firstFaults(base, clean, round + 1) }
}
