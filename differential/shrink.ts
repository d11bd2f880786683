/** The smallest sequence that still differs: fewer steps, fewer connections, simpler steps. Each try is a comparison. */
import { Effect } from "effect"
import { compare, type Difference } from "./compare.ts"
import type { Act, Sequence, Step } from "./sequence.ts"
import type { Lane } from "./server.ts"

/** The most comparisons that one difference is worth. */
const mostTries = 400

export const shrink = Effect.fnUntraced(function*(lane: Lane, found: Difference) {
  let best = found
  let tries = 0
  const take = Effect.fnUntraced(function*(sequence: Sequence) {
    if (tries >= mostTries || sizeOf(sequence) >= sizeOf(best.sequence)) return false
    tries++
    const { difference } = yield* compare(lane, sequence)
    if (difference === null) return false
    best = difference
    return true
  })
  const withSteps = (steps: ReadonlyArray<Step>) => take({ ...best.sequence, steps })
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
    for (const sequence of simpler(best.sequence)) yield* take(sequence)
  } while (sizeOf(best.sequence) < before)
  return { difference: best, tries }
})

/** Every step counts, then everything that is said in it. */
const sizeOf = ({ connections, steps }: Sequence): number =>
  steps.reduce((sum: number, step) => sum + 1_000 + weightOf(step), connections)

const weightOf = ({ act, hurried, on }: Step): number => {
  const values = Object.entries(act).flatMap(([name, value]): ReadonlyArray<unknown> => name === "do" ? [] : [value].flat())
  const words = 10 * values.filter((value) => value !== null).length
  return words + on + (hurried === true ? 5 : 0)
}

const simpler = (sequence: Sequence): ReadonlyArray<Sequence> => {
  const { connections, steps } = sequence
  const fewer: ReadonlyArray<Sequence> = connections === 2 ? [] : [0, 1, 2].map((gone) => ({
    ...sequence,
    connections: 2,
    steps: steps.filter(({ on }) => on !== gone).map((step) => ({ ...step, on: step.on > gone ? step.on - 1 : step.on }))
  }))
  const changed = steps.flatMap((step, place) =>
    variants(step).map((other): Sequence => ({ ...sequence, steps: steps.with(place, other) })))
  return [...fewer, ...changed]
}

const variants = ({ act, hurried, on }: Step): ReadonlyArray<Step> => {
  const acts: Array<Act> = []
  if ("ids" in act && act.ids.length > 1) acts.push(...act.ids.map((id) => ({ ...act, ids: [id] })))
  if ("names" in act && act.names.length > 1) acts.push(...act.names.map((name) => ({ ...act, names: [name] })))
  if ("code" in act && act.code !== null) acts.push({ ...act, code: null })
  if (act.do === "insert" && act.home !== null) acts.push({ ...act, home: null })
  const calm: ReadonlyArray<Step> = hurried === true ? [{ on, act }] : []
  return [...calm, ...acts.map((act): Step => hurried === true ? { on, act, hurried } : { on, act })]
}
