/** Sequences of statements from a seed: few rows and many hands, so that they get in each other's way. */
import { type Key, root } from "../../src/sim/Keyed.ts"
import type { Act, Sequence, Statement, Step } from "./sequence.ts"

type Verb = Act["do"]

/** How often each is done, among all that is done. */
const weights: ReadonlyArray<readonly [Verb, number]> = [
  ["insert", 10], ["offer", 10], ["upsert", 8], ["count", 14], ["recode", 9], ["delete", 8], ["lock", 20], ["skip", 11],
  ["read", 3], ["name", 6], ["times", 2], ["home", 2], ["family", 2], ["commit", 12], ["rollback", 6], ["cancel", 4]
]
const total = weights.reduce((sum, [, weight]) => sum + weight, 0)

export const generate = (seed: string, index: number): Sequence => {
  const key = root(seed).of("sequence").of(index)
  const connections = key.of("connections").chance(0.4) ? 2 : 3
  const length = key.of("length").between(4, 16)
  const steps = Array.from({ length }, (_, n): Step => {
    const step = key.of("step").of(n)
    const act = actOf(step)
    const on = step.of("on").below(connections)
    const canHurry = act.do !== "commit" && act.do !== "rollback" && act.do !== "cancel"
    return canHurry && step.of("hurry").chance(0.03) ? { on, act, hurried: true } : { on, act }
  })
  return { kind: "statements", name: `${seed}/${index}`, connections, steps }
}

const actOf = (key: Key): Act => {
  const verb = verbOf(key)
  if (verb === "commit" || verb === "rollback" || verb === "cancel") return { do: verb }
  return statementOf(key, verb)
}

const verbOf = (key: Key): Verb => {
  let place = key.of("verb").below(total)
  for (const [verb, weight] of weights) {
    if (place < weight) return verb
    place -= weight
  }
  throw new RangeError("no verb")
}

const statementOf = (key: Key, verb: Statement["do"]): Statement => {
  // The first ones are there from the beginning.
  const id = key.of("id").choose(["a", "a", "a", "a", "b", "b", "c", "c", "d"] as const)
  const other = key.of("other").choose(["a", "b", "b", "c", "d"] as const)
  const ids = key.of("one").chance(0.5) || id === other ? [id] : [id, other]
  const code = key.of("code").choose(["x", "x", "y", "y", null] as const)
  const home = key.of("home").choose(["g", "h", "h"] as const)
  switch (verb) {
    case "insert":
      return { do: verb, id, code, home: key.of("homeless").chance(0.6) ? null : home }
    case "offer":
      return { do: verb, id, code, arbiter: key.of("arbiter").choose(["any", "id", "code"] as const) }
    case "upsert":
    case "count":
      return { do: verb, id }
    case "recode":
      return { do: verb, id, code }
    case "delete":
      return { do: verb, ids }
    case "lock":
      return { do: verb, ids, mode: key.of("mode").choose(["exclusive", "exclusive", "share"] as const) }
    case "skip":
      return { do: verb, limit: key.of("limit").between(1, 2), due: key.of("due").chance(0.7) }
    case "name":
      return { do: verb, names: [["p"], ["q"], ["p", "q"]][key.of("names").below(3)] as ReadonlyArray<"p" | "q"> }
    case "home":
      return { do: verb, home }
    case "family":
      return { do: verb, id, home }
    case "read":
    case "times":
      return { do: verb }
  }
}
