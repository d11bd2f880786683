/** From a spec to its run: deterministic, synchronous, and alone in its thread. */
import type { Operation } from "../domain/Operation.ts"
import { commitWords } from "./CommitWords.ts"
import type { OpenDatabase } from "./Database.ts"
import * as Faults from "./Faults.ts"
import { inMemory } from "./InMemory.ts"
import { root } from "./Keyed.ts"
import type { Run, Simulate, Spec } from "./Run.ts"
import * as Schedule from "./Schedule.ts"
import { drawShape } from "./Shape.ts"
import { keeping, type Recorder } from "./Trace.ts"
import { World } from "./World.ts"

export const simulate: Simulate = (spec, keep) => simulateOn(inMemory)(spec, keep)

/** The same on a database of another make. */
export const simulateOn = (open: OpenDatabase): Simulate => (spec, keep = {}) => {
  const key = root(spec.seed)
  const shape = { ...drawShape(key, spec.engine), ...spec.shape }
  const faults = Faults.decided(spec, key.of("faults"), shape.rates)
  const replay = spec.deviations === undefined ? null : Schedule.replay(spec.deviations)
  const deviations: Array<Schedule.Deviation> = []
  const schedule = replay ?? scheduleOf(spec)
  const trace = keeping()
  const world = new World({
    open,
    seed: spec.seed,
    shape,
    schedule: keep.deviations === true ? Schedule.recording(schedule, deviations) : schedule,
    faults,
    keep,
    blind: spec.blind ?? [],
    ...(keep.trace === true ? { recorder: trace.record } : {})
  })
  if (keep.trace === true) tellOfCommits(world, trace.record)
  world.run(keep.forMs)
  return {
    spec,
    shape,
    ...known(world),
    unused: { faults: faults.unused(), deviations: replay?.unused() ?? [] },
    trace: trace.events(),
    deviations
  }
}

/** What became durable is a part of the trace too, for people: it is no step, and in no hash. */
const tellOfCommits = ({ kernel, service }: World, record: Recorder) =>
  service.database.onCommit((commit) =>
    record({
      step: kernel.steps,
      at: kernel.now,
      actor: commit.by,
      kind: "note",
      label: "committed",
      detail: commitWords(commit),
      hash: kernel.hash
    })
  )

const known = ({ kernel, observers, service, striker }: World): Pick<
  Run,
  "violations" | "steps" | "virtualMs" | "hash" | "fired" | "reached" | "states" | "outcomes" | "occasions" | "moments"
> => ({
  violations: observers.violations,
  steps: kernel.steps,
  virtualMs: kernel.now,
  hash: kernel.hash,
  fired: striker.fired,
  reached: observers.oracles.reached(),
  states: observers.oracles.states(),
  outcomes: outcomesOf(service.database.committed.operations.values()),
  occasions: striker.occasions,
  moments: striker.moments
})

/** About how many choices between processes a run makes: the moments at which priorities change lie within. */
const choices = 1_500

const scheduleOf = ({ engine, seed }: Spec): Schedule.Schedule => {
  const key = root(seed).of("schedule")
  switch (engine) {
    case "swarm":
      return Schedule.random(key)
    case "pct":
      return Schedule.pct(key, { depth: key.of("depth").between(2, 5), length: choices })
    default:
      return Schedule.fifo
  }
}

/** Of inferred adds, which is what clients set out to make. */
const outcomesOf = (operations: Iterable<Operation>): Run["outcomes"] => {
  const counts: Record<string, number> = {}
  for (const { failure, kind, outcome } of operations) {
    const name = outcome ?? failure
    if (kind === "memory.infer" && name !== null) counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}
