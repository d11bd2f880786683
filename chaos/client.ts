/**
 * A client of a chaos run: adds, edits, deletes, cancels, retries and looks, by seed; repeats what had no answer under the
 * same key, sometimes gives up, sometimes asks twice at once, and sometimes uses a key for something else by mistake.
 */
import { keyHash, IdempotencyKey } from "../src/domain/Command.ts"
import { type Key, root } from "../src/sim/Keyed.ts"
import { ask, type Caller, type Request } from "./ask.ts"
import type { Told, Write } from "./history/told.ts"
import { smallTalk } from "./provider.ts"

export interface Options {
  readonly seed: string
  readonly index: number
  readonly workspace: string
  readonly secret: string
  /** Where it may ask. */
  readonly apis: ReadonlyArray<string>
  /** In every text that it sends. */
  readonly canary: string
  readonly history: Array<Told>
  readonly isOver: () => boolean
}

/** A keyed write that was asked, to be asked again. */
interface Sent {
  readonly request: Request
  readonly write: Write
}

/** What a client knows: what it sent, and what it has heard of. */
interface Known {
  readonly sent: Array<Sent>
  readonly events: Array<string>
  readonly memories: Array<string>
  /** Events that it saw failed, each until it retries it. */
  readonly failed: Set<string>
}

/** The longest that a write is repeated without an answer. */
const triesMax = 8

/** Lives until the run is over. */
export const live = async (options: Options): Promise<void> => {
  const caller: Caller = { ...options, client: `client-${options.index}` }
  const known: Known = { sent: [], events: [], memories: [], failed: new Set() }
  for (let step = 0; !options.isOver(); step++) {
    const key = root(options.seed).of("client").of(options.index).of(step)
    await act(options, caller, known, key, step)
    await pause(key.of("pause").between(30, 250))
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** What a client does next, and how often. */
const actions: ReadonlyArray<readonly [share: number, act: (turn: Turn) => Promise<unknown>]> = [
  [0.34, (turn) => write(turn, infer(turn))],
  [0.1, (turn) => write(turn, verbatim(turn))],
  [0.1, (turn) => again(turn)],
  [0.03, (turn) => mistake(turn)],
  [0.05, (turn) => onMemory(turn, edit)],
  [0.03, (turn) => onMemory(turn, forget)],
  [0.06, (turn) => onNewest(turn, changeMind)],
  [0.07, (turn) => onFailure(turn, retry)],
  [0.14, (turn) => onEvent(turn, look)],
  [0.05, (turn) => onMemory(turn, readMemory)],
  [0.03, (turn) => once(turn, { method: "GET", path: "/v1/usage", asked: { _tag: "Usage" } })]
]

interface Turn {
  readonly options: Options
  readonly caller: Caller
  readonly known: Known
  readonly key: Key
  readonly step: number
}

const act = (options: Options, caller: Caller, known: Known, key: Key, step: number): Promise<unknown> => {
  const at = key.of("action").unit()
  let sum = 0
  const chosen = actions.find(([share]) => (sum += share) > at) ?? actions[0]!
  return chosen[1]({ options, caller, known, key, step })
}

/** Another one at each attempt. */
const anyApi = ({ key, options }: Turn, attempt: number): string =>
  options.apis[(key.of("api").below(options.apis.length) + attempt) % options.apis.length]!

const patience = ({ key }: Turn, attempt: number): number =>
  key.of("patience").of(attempt).chance(0.2) ? key.of("short").of(attempt).between(20, 250) : key.of("long").of(attempt).between(1_000, 5_000)

const once = async (turn: Turn, request: Request, attempt = 0): Promise<Told> => {
  const told = await ask(turn.caller, anyApi(turn, attempt), request, patience(turn, attempt))
  learn(turn.known, told)
  return told
}

const learn = ({ events, failed, memories }: Known, { answer }: Told): void => {
  if (answer._tag === "Event" && answer.event.state === "failed") failed.add(answer.event.id)
  if (answer._tag === "Acknowledged" && !events.includes(answer.eventId)) events.push(answer.eventId)
  const results = answer._tag === "Acknowledged" ? answer.results ?? [] : answer._tag === "Event" ? answer.event.results : []
  for (const { id } of results) if (id !== null && !memories.includes(id)) memories.push(id)
}

/** Asks until there is an answer, always under the same key; gives up now and then. */
const write = async (turn: Turn, sent: Sent): Promise<void> => {
  const { key, known, options } = turn
  if (sent.request.key !== undefined) known.sent.push(sent)
  const twins = key.of("burst").chance(0.06) && sent.request.key !== undefined ? 3 : 1
  for (let attempt = 0; attempt < triesMax; attempt++) {
    const answers = await Promise.all(
      Array.from({ length: twins }, (_, twin) => once(turn, sent.request, attempt * twins + twin))
    )
    if (answers.every(({ answer }) => answer._tag !== "Unknown")) return
    // Without a key a repeat is another write: nobody careful does that.
    if (sent.request.key === undefined || key.of("give up").of(attempt).chance(0.1) || options.isOver()) return
    await pause(key.of("backoff").of(attempt).between(20, 100 * 2 ** Math.min(attempt, 4)))
  }
}

const scope = ({ key, options }: Turn) => ({ user_id: `user-${options.workspace}-${key.of("user").below(5)}` })

const sentence = ({ key, options, step }: Turn): string =>
  `${key.of("talk").chance(0.05) ? smallTalk : "I like number"} ${options.index}-${step}, ${options.canary}`

const keyed = ({ options, step }: Turn, kind: string): string => `${kind}-${options.seed}-${options.index}-${step}`

const sentOf = (request: Omit<Request, "asked">, asked: Omit<Write, "_tag" | "keyHash">): Sent => {
  const write: Write = {
    ...asked,
    _tag: "Write",
    keyHash: request.key === undefined ? null : keyHash(IdempotencyKey.make(request.key))
  }
  return { request: { ...request, asked: write }, write }
}

const infer = (turn: Turn): Sent => {
  const text = sentence(turn)
  const waits = turn.key.of("prefer").chance(0.1)
  return sentOf({
    method: "POST",
    path: "/v1/memories",
    key: keyed(turn, "infer"),
    body: { messages: [{ role: "user", content: text }], ...scope(turn) },
    headers: waits ? { prefer: "wait=1" } : {}
  }, { kind: "infer", intent: `infer ${text}`, text, memoryId: null, eventId: null })
}

const verbatim = (turn: Turn): Sent => {
  const text = `Note ${turn.options.index}-${turn.step}, ${turn.options.canary}`
  return sentOf({
    method: "POST",
    path: "/v1/memories",
    key: turn.key.of("keyless").chance(0.2) ? undefined : keyed(turn, "add"),
    body: { content: text, infer: false, ...scope(turn) }
  }, { kind: "add", intent: `add ${text}`, text, memoryId: null, eventId: null })
}

/** Asks again what it asked before, answered or not. */
const again = async (turn: Turn): Promise<unknown> => {
  const sent = turn.key.of("which").choose(turn.known.sent)
  return sent === undefined ? undefined : once(turn, sent.request)
}

/** Uses a key that it had used before for something else. */
const mistake = async (turn: Turn): Promise<unknown> => {
  const sent = turn.key.of("which").choose(turn.known.sent)
  if (sent?.request.key === undefined) return undefined
  const other = turn.key.of("other").chance(0.5) ? infer(turn) : verbatim(turn)
  const { request } = sentOf({ ...other.request, key: sent.request.key }, other.write)
  return once(turn, request)
}

const onMemory = async (turn: Turn, then: (turn: Turn, memoryId: string) => Promise<unknown>): Promise<unknown> => {
  const memoryId = turn.key.of("which").choose(turn.known.memories)
  return memoryId === undefined ? undefined : then(turn, memoryId)
}

const onEvent = async (turn: Turn, then: (turn: Turn, eventId: string) => Promise<unknown>): Promise<unknown> => {
  // Mostly one of the latest: the older ones have ended long ago.
  const recent = turn.key.of("recent").chance(0.7) ? turn.known.events.slice(-5) : turn.known.events
  const eventId = turn.key.of("which").choose(recent)
  return eventId === undefined ? undefined : then(turn, eventId)
}

/** Mostly the latest, which may still wait. */
const onNewest = (turn: Turn, then: (turn: Turn, eventId: string) => Promise<unknown>): Promise<unknown> => {
  const eventId = turn.key.of("newest").chance(0.7) ? turn.known.events.at(-1) : undefined
  return eventId === undefined ? onEvent(turn, then) : then(turn, eventId)
}

/** Mostly one that failed: nothing else may be run again. */
const onFailure = (turn: Turn, then: (turn: Turn, eventId: string) => Promise<unknown>): Promise<unknown> => {
  const eventId = turn.key.of("failed").chance(0.85) ? turn.key.of("which").choose([...turn.known.failed]) : undefined
  if (eventId === undefined) return onEvent(turn, then)
  turn.known.failed.delete(eventId)
  return then(turn, eventId)
}

const edit = (turn: Turn, memoryId: string) => {
  const text = `Edited ${turn.options.index}-${turn.step}, ${turn.options.canary}`
  return write(turn, sentOf(
    { method: "PATCH", path: `/v1/memories/${memoryId}`, key: keyed(turn, "update"), body: { memory: text } },
    { kind: "update", intent: `update ${memoryId} ${text}`, text, memoryId, eventId: null }
  ))
}

const forget = (turn: Turn, memoryId: string) =>
  write(turn, sentOf(
    { method: "DELETE", path: `/v1/memories/${memoryId}`, key: keyed(turn, "delete") },
    { kind: "delete", intent: `delete ${memoryId}`, text: null, memoryId, eventId: null }
  ))

const retry = (turn: Turn, eventId: string) =>
  write(turn, sentOf(
    { method: "POST", path: `/v1/events/${eventId}/retry`, key: keyed(turn, "retry") },
    { kind: "retry", intent: `retry ${eventId}`, text: null, memoryId: null, eventId }
  ))

const cancel = (turn: Turn, eventId: string) =>
  once(turn, { method: "POST", path: `/v1/events/${eventId}/cancel`, asked: { _tag: "Cancel", eventId } })

/** Calls something off, and often wants it after all. */
const changeMind = async (turn: Turn, eventId: string): Promise<void> => {
  const { answer } = await cancel(turn, eventId)
  const isOff = answer._tag === "Event" && answer.event.state === "failed"
  if (!isOff || !turn.key.of("after all").chance(0.6)) return
  turn.known.failed.delete(eventId)
  await retry(turn, eventId)
}

const look = (turn: Turn, eventId: string) =>
  once(turn, {
    method: "GET",
    path: `/v1/events/${eventId}${turn.key.of("wait").chance(0.4) ? "?wait=2" : ""}`,
    asked: { _tag: "Event", eventId }
  })

const readMemory = (turn: Turn, memoryId: string) =>
  once(turn, { method: "GET", path: `/v1/memories/${memoryId}`, asked: { _tag: "Memory", memoryId } })
