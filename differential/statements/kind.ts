/** Sequences of statements on two small tables: everything that a transaction can do, without anything of the service. */
import { isError, type Told } from "../history.ts"
import type { Kind, Turns } from "../kind.ts"
import { generate } from "./generate.ts"
import * as Model from "./model.ts"
import type { Act, Sequence, Step } from "./sequence.ts"
import * as Server from "./server.ts"

/** In the end whoever is still open commits. A transaction that has failed is asked once more, and then left to its end. */
class StatementTurns implements Turns<Step> {
  private readonly open = new Set<number>()
  /** Of open transactions: how often they have been told of an error. */
  private readonly errors = new Map<number, number>()

  mayCome({ act, on }: Step, waiting: ReadonlySet<number>): boolean {
    return act.do === "cancel" || !waiting.has(on)
  }

  as(step: Step, waiting: ReadonlySet<number>): Step | null {
    const { act, on } = step
    if (act.do === "cancel") return waiting.has(on) ? { on, act } : null
    if (isEnd(step) ? !this.open.has(on) : (this.errors.get(on) ?? 0) > 1) return null
    return waiting.size > 0 ? { on, act } : step
  }

  after(step: Step, told: ReadonlyArray<Told>): void {
    this.open.add(step.on)
    for (const { on, what } of told) if (isError(what)) this.errors.set(on, (this.errors.get(on) ?? 0) + 1)
    if (!isEnd(step)) return
    this.open.delete(step.on)
    this.errors.delete(step.on)
  }

  rest(waiting: ReadonlySet<number>): Step | null {
    const on = [...this.open].toSorted().find((on) => !waiting.has(on))
    return on === undefined ? null : { on, act: { do: "commit" } }
  }
}

const isEnd = ({ act }: Step): boolean => act.do === "commit" || act.do === "rollback"

const simpler = ({ act, hurried, on }: Step): ReadonlyArray<Step> => {
  const acts: Array<Act> = []
  if ("ids" in act && act.ids.length > 1) acts.push(...act.ids.map((id) => ({ ...act, ids: [id] })))
  if ("names" in act && act.names.length > 1) acts.push(...act.names.map((name) => ({ ...act, names: [name] })))
  if ("code" in act && act.code !== null) acts.push({ ...act, code: null })
  if (act.do === "insert" && act.home !== null) acts.push({ ...act, home: null })
  const calm: ReadonlyArray<Step> = hurried === true ? [{ on, act }] : []
  return [...calm, ...acts.map((act): Step => hurried === true ? { on, act, hurried } : { on, act })]
}

export const statements: Kind<Sequence> = {
  name: "statements",
  generate,
  connect: Server.connect,
  model: Model.make,
  turns: () => new StatementTurns(),
  draws: 8,
  topics: (what) => isError(what) ? [`error ${what}`] : [],
  simpler
}
