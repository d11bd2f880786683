/** What the clients of one world set out to do, before anything goes wrong. Every text of theirs carries a canary. */
import { type AddBody, type AddCommand, IdempotencyKey, type Message, normaliseAdd } from "../domain/Command.ts"
import { WorkspaceId } from "../domain/Ids.ts"
import type { Metadata } from "../domain/Memory.ts"
import type { Scope } from "../domain/Scope.ts"
import type { Key } from "./Keyed.ts"
import { type Hashed, hashed } from "./Requests.ts"
import type { Shape } from "./Shape.ts"

/** In every text that a client says, and in every key. */
export const canary = "zq7canary"

/** What somebody does with an operation that was accepted, or beside it. */
export type Step =
  | "look" | "wait" | "read" | "list" | "search" | "events" | "usage" | "edit" | "delete" | "cancel" | "retry" | "purge" | "add"

/** One client: an inferred add, and what follows it. */
export interface Errand {
  readonly number: number
  readonly workspaceId: WorkspaceId
  readonly scope: Scope
  readonly key: IdempotencyKey
  readonly add: Hashed<AddCommand>
  /** The same, in other words of JSON. */
  readonly again: Hashed<AddCommand>
  /** What its key is used for by mistake. */
  readonly mistake: Hashed<AddCommand>
  readonly startMs: number
  readonly steps: ReadonlyArray<Step>
}

export const workspaceOf = (number: number): WorkspaceId => WorkspaceId.make(`ws-${number}`)

export const keyOf = (name: string): IdempotencyKey => IdempotencyKey.make(`${canary}-${name}`)

/** Of these, from the first client to the last. */
export const errands = (key: Key, shape: Shape): ReadonlyArray<Errand> => {
  // Some runs are crowded at the beginning, and some are busy until they heal.
  const spreadMs = shape.chaosMs * key.of("spread").logUniform(0.03, 0.9)
  return Array.from({ length: shape.operations }, (_, number) => errand(key.of("errand"), shape, number, spreadMs))
}

/** Several who begin at once share a group commit. */
const crowds = 4

const errand = (keys: Key, { lanes, workspaces }: Shape, number: number, spreadMs: number): Errand => {
  const at = (name: string) => keys.of(number).of(name)
  const workspaceFor = (who: number) => workspaceOf(keys.of(who).of("workspace").below(workspaces))
  const startFor = (who: number) => spreadMs * startOf(keys.of(who))
  // Now and then two clients of two workspaces use the same key at the same time.
  const isTwin = number % 2 === 1 && at("twin").chance(0.3) && workspaceFor(number) !== workspaceFor(number - 1)
  const named = isTwin ? number - 1 : number
  const user = { user_id: `user-${at("lane").below(lanes)}` }
  const scope: Scope = at("agent").chance(0.2) ? { ...user, agent_id: "agent-1" } : user
  const messages = messagesOf(at("messages"), number)
  const body: AddBody = {
    ...scope,
    messages,
    metadata: { from: canary, with: { parts: [number, "more"], of: "it" } },
    event_date: at("date").chance(0.3) ? `2025-01-0${at("day").between(1, 9)}` : null,
    instructions: `${canary} errand #${number}`
  }
  const add = (changed: AddBody = {}) => hashed(normaliseAdd({ ...body, ...changed }))
  return {
    number,
    workspaceId: workspaceFor(number),
    scope,
    key: keyOf(`errand-${named}`),
    add: add(),
    again: add(inOtherWords(body)),
    mistake: add(mistakeIn(at("mistake"), body, number)),
    startMs: startFor(named),
    steps: stepsOf(at("steps"))
  }
}

/** When a client begins, as a part of the time in which all of them do. */
const startOf = (key: Key): number => {
  const start = key.of("start").unit()
  return key.of("crowd").chance(0.3) ? Math.round(start * crowds) / crowds : start
}

/** The same in JSON of another form: names the other way round, and nothing said that goes without saying. */
const inOtherWords = ({ event_date, messages = [], ...others }: AddBody): AddBody => {
  const rest = event_date == null ? others : { ...others, event_date: `${event_date}T01:00:00.0+01:00` }
  const [first] = messages
  const said = messages.length === 1 && first!.role === "user" ? { content: first!.content } : { messages }
  return backwards({ ...rest, ...said }) as AddBody
}

const backwards = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(backwards)
  return Object.fromEntries(Object.entries(value).toReversed().map(([name, one]) => [name, backwards(one)]))
}

/** What is changed by mistake: one part, and with it the meaning. */
const mistakeIn = (key: Key, { messages = [], metadata }: AddBody, number: number): AddBody =>
  key.choose<AddBody>([
    { messages: [...messages, { role: "user", content: `${canary} by mistake` }] },
    { messages: [{ role: "user", content: `${canary} instead` }, ...messages.slice(1)] },
    { user_id: "somebody-else" },
    { run_id: "run-1" },
    { infer: false },
    { metadata: { ...metadata, more: number } },
    { event_date: "2026-01-02" },
    { instructions: `${canary} another errand #${number}` }
  ])

/** How many marks there are that clients put beside texts. */
export const marks = 2

/** What is looked for beside a scope: mostly nothing. */
export const filterIn = (key: Key): Metadata =>
  key.choose<Metadata>([{}, {}, {}, { from: canary }, { with: { of: "it" } }, { mark: key.of("mark").below(marks) }])

/** The number of the client that gave these instructions. */
export const numberIn = (instructions: string | null): number => Number(/#(\d+)$/.exec(instructions ?? "")?.[1] ?? -1)

const messagesOf = (key: Key, number: number): ReadonlyArray<Message> =>
  Array.from({ length: key.of("count").between(1, 4) }, (_, index): Message => {
    const own = key.of(index)
    const what = `${canary} ${number}.${index}`
    const kind = own.unit()
    if (kind < 0.1) return { role: "assistant", content: `I see, ${what}` }
    if (kind < 0.25) return { role: "user", content: `Thanks for ${what}` }
    if (kind < 0.4) return { role: "user", content: `Correction: it was ${what}` }
    if (kind < 0.48) return { role: "user", content: `Forget about ${what}` }
    // Now and then what others in the lane say too.
    if (kind < 0.58) return { role: "user", content: `Everybody likes ${canary} ${own.of("common").below(2)}` }
    return { role: "user", content: `I remember ${what} and ${"a lot ".repeat(own.of("length").below(3))}more` }
  }).map((message, index, all) =>
    all.some(({ role }) => role === "user") || index > 0 ? message : { ...message, role: "user" as const })

const others: ReadonlyArray<Step> = ["read", "list", "search", "usage", "edit", "edit", "delete", "add"]

const stepsOf = (key: Key): ReadonlyArray<Step> => {
  const at = (name: string) => key.of(name)
  if (at("leaves").chance(0.25)) return []
  const steps: Array<Step> = []
  if (at("hurries").chance(0.06)) steps.push("retry")
  if (at("cancels").chance(0.06)) steps.push("cancel")
  steps.push(at("waits").chance(0.5) ? "wait" : "look")
  if (at("retries").chance(0.4)) steps.push("retry")
  for (let other = at("others").below(3); other > 0; other--) steps.push(at("other").of(other).choose(others)!)
  if (at("looks back").chance(0.15)) steps.push("events")
  if (at("purges").chance(0.05)) steps.push("purge")
  return steps
}
