/** Sequences of port operations from a seed: a few operations in two lanes, and many who want something of them. */
import { type Key, root } from "../../src/sim/Keyed.ts"
import type { Act, Call, Op, Program, Sequence, Step } from "./sequence.ts"

const accepted = (op: Op): Program => ({ do: "accept", all: [{ op, lane: "k", key: "u", text: "p" }] })
const claimed = (lease: "short" | "long"): Program => ({ do: "claim", limit: 1, lease })

type Weights<Name> = ReadonlyArray<readonly [Name, number]>

const programs: Weights<Program["do"]> = [
  ["accept", 10], ["claim", 10], ["take over", 5], ["renew", 3], ["freeze", 4], ["commit", 10], ["end", 12], ["retry", 6],
  ["purge", 3], ["sweep", 4], ["grant", 3], ["add", 5], ["edit", 5], ["remove", 4], ["project", 4], ["look", 2],
  ["transaction", 60]
]
const calls: Weights<Call["call"]> = [
  ["lock", 8], ["lanes", 6], ["accounts", 5], ["memories", 4], ["claimable", 5], ["expired", 3], ["insert", 9], ["keys", 5],
  ["save", 14], ["redact", 6], ["plans", 7], ["ready", 5], ["clock", 4], ["reserve", 4], ["settle", 5], ["refund", 3],
  ["grant", 5], ["write", 11], ["projections", 4], ["finish", 3], ["postpone", 3], ["announce", 2], ["prune", 2], ["read", 2]
]
/** What there is before anybody gets in anybody's way. */
const openings: ReadonlyArray<ReadonlyArray<Program>> = [
  [],
  [accepted("a")],
  [accepted("a"), accepted("b")],
  [accepted("a"), accepted("b"), claimed("long")],
  [accepted("a"), accepted("b"), claimed("short")],
  [accepted("a"), claimed("long"), { do: "freeze", op: "a", stale: false, change: "add" }],
  [accepted("a"), accepted("b"), { do: "end", ops: ["a"], stale: false, how: "cancel" }],
  [accepted("a"), claimed("long"), { do: "end", ops: ["a"], stale: false, how: "fail" }, accepted("b")],
  [accepted("a"), claimed("long"), { do: "commit", ops: ["a"], stale: false, change: "add" }],
  [{ do: "add", op: "a", lane: "k", key: null, text: "p" }],
  [{ do: "add", op: "a", lane: "k", key: "x", text: "p" }, accepted("b")]
]

export const generate = (seed: string, index: number): Sequence => {
  const key = root(seed).of("ports").of(index)
  const connections = key.of("connections").chance(0.5) ? 2 : 3
  const opening = openings[key.of("opening").below(openings.length)]!.map((act): ReadonlyArray<Step> =>
    [{ on: 0, act }, { on: 0, act: { do: "go", calls: 50 } }])
  const length = key.of("length").between(8, 30)
  const steps = Array.from({ length }, (_, n): Step => {
    const step = key.of("step").of(n)
    const on = n < connections ? n : step.of("on").below(connections)
    const isGo = n >= connections && step.of("go").chance(0.72)
    const act: Act = isGo
      ? { do: "go", calls: step.of("calls").choose([1, 1, 1, 2, 2, 3] as const) }
      : programOf(step, pick(step.of("program"), programs))
    return { on, act }
  })
  return { kind: "ports", name: `${seed}/${index}`, connections, steps: [...opening.flat(), ...steps] }
}

const pick = <Name>(key: Key, weights: Weights<Name>): Name => {
  let place = key.below(weights.reduce((sum, [, weight]) => sum + weight, 0))
  for (const [name, weight] of weights) {
    if (place < weight) return name
    place -= weight
  }
  throw new RangeError("nothing to pick")
}

/** The small things that most programs say. */
const details = (key: Key) => {
  const op = key.of("op").choose(["a", "a", "a", "a", "a", "a", "b", "b", "c", "z"] as const)
  const other = key.of("other").choose(["a", "a", "a", "b", "b", "b", "c", "z"] as const)
  return {
    op,
    of: key.of("of").choose(["a", "a", "b", "c"] as const),
    ops: key.of("one").chance(0.6) || op === other ? [op] : [op, other],
    lane: key.of("lane").choose(["k", "k", "k", "l"] as const),
    lanes: key.of("lanes").choose([["k"], ["k"], ["l"], ["k", "l"]] as const),
    workspace: key.of("workspace").choose(["w", "w", "w", "w", "w", "v"] as const),
    key: key.of("key").choose(["x", "y", null] as const),
    text: key.of("text").choose(["p", "q"] as const),
    change: key.of("change").choose(["add", "add", "update", "delete", "none"] as const),
    stale: key.of("stale").chance(0.15),
    limit: key.of("limit").between(1, 2),
    version: key.of("version").between(1, 3)
  }
}

const programOf = (key: Key, verb: Program["do"]): Program => {
  const { change, lane, limit, of, op, ops, stale, text, version, workspace, ...rest } = details(key)
  switch (verb) {
    case "accept":
      return {
        do: verb,
        all: ops.map((op, n) => ({ op, lane, key: key.of("use").of(n).choose(["x", "y", "u", "u"] as const), text }))
      }
    case "claim":
      return { do: verb, limit, lease: key.of("lease").choose(["short", "long", "long"] as const) }
    case "take over":
      return { do: verb, limit }
    case "renew":
      return { do: verb, ops, stale }
    case "freeze":
      return { do: verb, op, stale, change }
    case "commit":
      return { do: verb, ops, stale, change }
    case "end": {
      const how = key.of("how").choose(
        ["fail", "fail", "fail later", "fail for good", "fail for good", "release", "exhaust", "cancel", "cancel"] as const
      )
      return { do: verb, ops, stale, how }
    }
    case "retry":
      return { do: verb, op, key: rest.key }
    case "purge":
    case "look":
      return { do: verb, op }
    case "sweep":
      return { do: verb }
    case "grant":
      return { do: verb, workspace, amount: key.of("amount").between(1, 3), reference: text }
    case "add":
      return { do: verb, op, lane, key: rest.key, text }
    case "edit":
      return { do: verb, op, of, key: rest.key, text, version: key.of("blind").chance(0.6) ? null : version }
    case "remove":
      return { do: verb, op, of, key: rest.key, version: key.of("blind").chance(0.6) ? null : version }
    case "project":
      return { do: verb, limit, how: key.of("how").choose(["finish", "postpone", "nothing"] as const) }
    case "transaction": {
      const count = key.of("count").between(1, 5)
      return {
        do: verb,
        calls: Array.from({ length: count }, (_, n) => callOf(key.of("call").of(n), pick(key.of("calls").of(n), calls))),
        end: key.of("end").chance(0.75) ? "commit" : "rollback"
      }
    }
  }
}

const callOf = (key: Key, call: Call["call"]): Call => {
  const { lane, lanes, limit, of, op, ops, text, version, workspace, ...rest } = details(key)
  const memories = key.of("one").chance(0.6) ? [of] : ops
  switch (call) {
    case "lock":
    case "redact":
    case "plans":
    case "announce":
      return { call, ops }
    case "lanes":
    case "ready":
      return { call, workspace, lanes }
    case "accounts":
      return { call, workspaces: key.of("accounts").choose([["w"], ["w"], ["w"], ["v"], ["v", "w"]] as const) }
    case "memories":
      return { call, of: memories }
    case "claimable":
    case "expired":
    case "projections":
    case "prune":
      return { call, limit }
    case "insert":
      return { call, op, lane, ready: key.of("ready").chance(0.5), key: rest.key }
    case "keys":
      return { call, op, key: key.of("use").choose(["x", "y"] as const) }
    case "save":
      return { call, ops, as: key.of("as").choose(["claimed", "claimed", "failed", "released", "reopened"] as const) }
    case "clock":
      return { call, to: key.of("to").between(1, 4) }
    case "reserve":
    case "refund":
      return { call, op, no: key.of("no").between(1, 2) }
    case "settle":
      return { call, ops, as: key.of("as").choose(["charge", "refund"] as const) }
    case "grant":
      return { call, workspace, reference: text }
    case "write":
      return { call, of: memories, change: key.of("write").choose(["add", "update", "update", "delete"] as const), version }
    case "finish":
      return { call, of: memories, version }
    case "postpone":
      return { call, of: memories, version, attempts: key.of("attempts").between(0, 2) }
    case "read":
      return { call, op }
  }
}
