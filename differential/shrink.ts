/** The smallest sequence that still differs: fewer steps, fewer connections, simpler steps. Each try is a comparison. */
import { Effect } from "effect"
import { type Arena, compare, type Difference } from "./compare.ts"
import type { AnySequence, AnyStep, Kind, StepOf } from "./kind.ts"

export const shrink = Effect.fnUntraced(function*<S extends AnySequence>(
  arena: Arena<S>,
  found: Difference<S>,
  mostTries: number
) {
  let best = found
  let tries = 0
  const take = Effect.fnUntraced(function*(sequence: S) {
    if (tries >= mostTries || sizeOf(sequence) >= sizeOf(best.sequence)) return false
    tries++
    const { difference } = yield* compare(arena, sequence)
    if (difference === null) return false
    best = difference
    return true
  })
  const withSteps = (steps: ReadonlyArray<StepOf<S>>) => take({ ...best.sequence, steps })
  // What comes after the difference has no part in it.
  const { at, sequence: { steps } } = found
  if (at < steps.length) yield* withSteps(steps.slice(0, at + 1))
  let before: number
  do {
    before = sizeOf(best.sequence)
    for (let length = Math.ceil(best.sequence.steps.length / 2); length >= 1; length = length === 1 ? 0 : Math.ceil(length / 2)) {
      for (let from = 0; from < best.sequence.steps.length;) {
        const { steps } = best.sequence
        if (!(yield* withSteps([...steps.slice(0, from), ...steps.slice(from + length)]))) from += length
      }
    }
    for (const sequence of simpler(arena.kind, best.sequence)) yield* take(sequence)
  } while (sizeOf(best.sequence) < before)
  return { difference: best, tries }
})

/** Every step counts, then everything that is said in it. */
const sizeOf = ({ connections, steps }: AnySequence): number =>
  steps.reduce((sum: number, step) => sum + 1_000 + weightOf(step), connections)

const weightOf = ({ act, hurried, on }: AnyStep): number => 10 * wordsIn(act) + on + (hurried === true ? 5 : 0)

/** What is said in a value. A number says more the larger it is. */
const wordsIn = (value: unknown): number => {
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + 1 + wordsIn(item), 0)
  if (typeof value === "object" && value !== null) return Object.values(value).reduce((sum: number, item) => sum + wordsIn(item), 0)
  return value === null ? 0 : typeof value === "number" ? 1 + Math.min(value, 50) / 100 : 1
}

const simpler = <S extends AnySequence>(kind: Kind<S>, sequence: S): ReadonlyArray<S> => {
  const { connections, steps } = sequence
  const fewer: ReadonlyArray<S> = connections === 2 ? [] : [0, 1, 2].map((gone) => ({
    ...sequence,
    connections: 2,
    steps: steps.filter(({ on }) => on !== gone).map((step) => ({ ...step, on: step.on > gone ? step.on - 1 : step.on }))
  }))
  const changed = steps.flatMap((step, place) =>
    kind.simpler(step).map((other): S => ({ ...sequence, steps: steps.with(place, other) })))
  return [...fewer, ...changed]
}
