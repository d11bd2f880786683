/** What a plan can ask for: a world that a run comes to the end of, and at most one fault at a point. */
import { nameOf } from "./Faults.ts"
import { fineBudget } from "./Kernel.ts"
import type { Spec } from "./Run.ts"
import type { Shape } from "./Shape.ts"

/** Far more than is ever drawn, and still a matter of seconds. */
const most: Readonly<Partial<Record<keyof Shape, number>>> = {
  workers: 64,
  apis: 64,
  workspaces: 64,
  lanes: 1_024,
  operations: 1_024,
  leaseMs: 86_400_000,
  providerMs: 86_400_000,
  chaosMs: 3_600_000
}

/** One line for each thing that no run can do. */
export const infeasible = ({ faults = [], shape = {} }: Pick<Spec, "faults" | "shape">): ReadonlyArray<string> => {
  const seen = new Set<string>()
  const twice = new Set(faults.map(nameOf).filter((name) => seen.size === seen.add(name).size))
  const { budget = 0 } = shape
  return [
    ...Object.entries(most).flatMap(([name, limit]) =>
      Number(shape[name as keyof Shape] ?? 0) > limit ? [`/spec/shape/${name} must be at most ${limit}`] : []),
    ...(budget > 0 && budget < fineBudget ? [`/spec/shape/budget must be 0, or at least ${fineBudget}: nobody comes on with less`] : []),
    ...[...twice].map((name) => `/spec/faults has more than one at ${name}`)
  ]
}
