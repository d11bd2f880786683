/** Sequences of port operations: the programs of the service, and transactions of single calls, one call at a time. */
import type { Told } from "../history.ts"
import type { Kind, Turns } from "../kind.ts"
import { generate } from "./generate.ts"
import * as Model from "./model.ts"
import { ended } from "./office.ts"
import type { Act, Program, Sequence, Step } from "./sequence.ts"
import * as Server from "./server.ts"

/** A program that is asked for while another one runs there begins after it. In the end all go on by turns to their end. */
class PortTurns implements Turns<Step> {
  private last = 0
  private readonly running = new Set<number>()
  private readonly asked = new Map<number, Array<Program>>()

  mayCome({ on }: Step, waiting: ReadonlySet<number>): boolean {
    return !waiting.has(on)
  }

  as({ act, on }: Step): Step | null {
    const asked = this.asked.get(on) ?? []
    this.asked.set(on, asked)
    if (act.do !== "go") asked.push(act)
    if (this.running.has(on)) return { on, act: act.do === "go" ? act : { do: "go", calls: 1 } }
    const next = asked.shift()
    return next === undefined ? null : { on, act: next }
  }

  after({ act, on }: Step, told: ReadonlyArray<Told>): void {
    this.last = on
    if (act.do !== "go") this.running.add(on)
    for (const { on, what } of told) if (what.startsWith(`${ended}: `)) this.running.delete(on)
  }

  rest(waiting: ReadonlySet<number>): Step | null {
    const left = [...this.running, ...[...this.asked].flatMap(([on, asked]) => asked.length > 0 ? [on] : [])]
    const free = left.filter((on) => !waiting.has(on)).toSorted((a, b) => a - b)
    const on = free.find((on) => on > this.last) ?? free[0]
    return on === undefined ? null : { on, act: { do: "go", calls: free.length === 1 ? 10 : 1 } }
  }
}

/** Which call it answers, and how, unless it is the end of a program: that only says again what its calls have said. */
const topics = (what: string): ReadonlyArray<string> => {
  const [, name, answer] = /^([\w.]+): (.*)$/s.exec(what)!
  const refusal = /^refused: (\w+) (?:\{"reason":"(\w+)"\})?/.exec(answer!)
  if (name === ended) return refusal === null ? [] : [`refused ${refusal[1]}`]
  if (refusal?.[2] !== undefined) return [`call ${name}`, `error ${refusal[2]}`]
  return /^[0-9A-Z]{5} \w+$/.test(answer!) ? [`call ${name}`, `error ${answer}`] : [`call ${name}`]
}

/** Fewer items in a list, fewer calls, nothing where there may be nothing. */
const simpler = ({ act, on }: Step): ReadonlyArray<Step> => {
  if (act.do === "go") return act.calls === 1 ? [] : [1, Math.floor(act.calls / 2), act.calls - 1].map((calls) => ({ on, act: { do: "go", calls } }))
  return less(act).map((act) => ({ on, act: act as Act }))
}

/** Values that say a little less than this one. */
const less = (value: unknown): ReadonlyArray<unknown> => {
  if (Array.isArray(value)) {
    const shorter = value.length < 2 ? [] : value.map((_, place) => value.toSpliced(place, 1))
    return [...shorter, ...value.flatMap((item, place) => less(item).map((smaller) => value.with(place, smaller)))]
  }
  if (typeof value !== "object" || value === null) return []
  return Object.entries(value).flatMap(([name, field]) => [
    ...(name === "key" && typeof field === "string" && "do" in value ? [{ ...value, [name]: null }] : []),
    ...less(field).map((smaller) => ({ ...value, [name]: smaller }))
  ])
}

export const ports: Kind<Sequence> = {
  name: "ports",
  generate,
  connect: Server.connect,
  model: Model.make,
  turns: () => new PortTurns(),
  draws: 24,
  topics,
  simpler
}
