/**
 * While they are armed, whatever would let the real world into a simulation throws and says what was touched: clocks,
 * randomness, timers, the network, promises, languages, time zones, garbage. Programs may swallow that, so it is also
 * remembered.
 */

/** Something outside the simulation was touched. Always a bug of the program or of a simulated port. */
export class Touched extends Error {
  override readonly name = "Touched"
  readonly what: string

  constructor(what: string) {
    super(`${what} was touched inside the simulation`)
    this.what = what
  }
}

export interface Tripwires {
  /** What was touched first, or null. */
  readonly touched: () => Touched | null
  readonly disarm: () => void
}

interface PromiseHooks {
  readonly onInit: (init: () => void) => () => void
}

interface Host {
  readonly hrtime?: { bigint: () => bigint } & ((previous?: [number, number]) => [number, number])
  readonly getBuiltinModule?: (name: string) => { readonly promiseHooks?: PromiseHooks } | undefined
}

const world = globalThis as unknown as Record<string, object | undefined> & { readonly process?: Host }

/** By owner: the functions that read the real world or that wait for it. */
const wires: ReadonlyArray<readonly [owner: () => object | undefined, name: string, members: ReadonlyArray<string>]> = [
  [() => globalThis, "", [
    "setTimeout", "setInterval", "setImmediate", "queueMicrotask",
    "fetch", "WebSocket", "EventSource", "BroadcastChannel", "MessageChannel", "WeakRef", "FinalizationRegistry"
  ]],
  // What these say depends on the machine: its language, and where on earth it is.
  [() => world["Intl"], "Intl.", [
    "DateTimeFormat", "Collator", "NumberFormat", "PluralRules", "RelativeTimeFormat", "ListFormat", "Segmenter"
  ]],
  [() => String.prototype, "String.prototype.", ["localeCompare", "toLocaleLowerCase", "toLocaleUpperCase"]],
  [() => Number.prototype, "Number.prototype.", ["toLocaleString"]],
  [() => (world["Date"] as { readonly prototype?: object } | undefined)?.prototype, "Date.prototype.", [
    "getTimezoneOffset", "getFullYear", "getMonth", "getDate", "getDay", "getHours", "getMinutes",
    "toString", "toDateString", "toTimeString", "toLocaleString", "toLocaleDateString", "toLocaleTimeString"
  ]],
  [() => world["Math"], "Math.", ["random"]],
  [() => world["performance"], "performance.", ["now", "mark", "measure"]],
  [() => world["crypto"], "crypto.", ["getRandomValues", "randomUUID"]],
  [() => (world["crypto"] as { readonly subtle?: object } | undefined)?.subtle, "crypto.subtle.", [
    "digest", "generateKey", "importKey", "sign", "verify", "encrypt", "decrypt"
  ]],
  [() => world["AbortSignal"], "AbortSignal.", ["timeout"]],
  [() => world["Atomics"], "Atomics.", ["wait", "waitAsync"]],
  [() => world["process"], "process.", ["nextTick", "hrtime", "uptime", "cpuUsage", "memoryUsage"]],
  [() => world.process?.hrtime, "process.hrtime.", ["bigint"]]
]

/** Whoever armed last hears of what is touched. */
let listener: { touched: Touched | null } | null = null

/** Arms them all until `disarm`. Inside of another arming it costs nothing: a batch of runs arms once, around all. */
export const arm = (): Tripwires => {
  const outer = listener
  const mine: { touched: Touched | null } = { touched: null }
  listener = mine
  const restore = outer === null ? install() : () => {}
  return {
    touched: () => mine.touched,
    disarm: () => {
      listener = outer
      restore()
    }
  }
}

const remember = (what: string): Touched => {
  const touched = new Touched(what)
  if (listener !== null) listener.touched ??= touched
  return touched
}

const trip = (what: string): never => {
  throw remember(what)
}

const install = (): () => void => {
  const undo: Array<() => void> = []
  for (const [ownerOf, prefix, members] of wires) {
    const owner = ownerOf()
    if (owner === undefined) continue
    for (const member of members) {
      if (member in owner) undo.push(replace(owner, member, wire(owner, member, prefix + member)))
    }
  }
  undo.push(replace(globalThis, "Date", timelessDate()), replace(globalThis, "Promise", noPromises()))
  // An async function makes a promise without asking for the global one. A hook must not throw: it remembers.
  const hooks = world.process?.getBuiltinModule?.("node:v8")?.promiseHooks
  if (hooks !== undefined) undo.push(hooks.onInit(() => remember("an async function or a promise")))
  return () => {
    for (const restore of undo.toReversed()) restore()
  }
}

/** A function that throws, and still has the members of the real one. What loads only when read is not read. */
const wire = (owner: object, member: string, what: string): object => {
  const real: unknown = Object.getOwnPropertyDescriptor(owner, member)?.value
  const stand = function() {}
  const touched = what === "Math.random" ? () => isIdentity() ? 0 : trip(what) : () => trip(what)
  return new Proxy(typeof real === "function" ? real : stand, { apply: touched, construct: () => trip(what) })
}

/**
 * Whether it is Effect that draws a hash for a function, which happens where causes that hold one are compared. Those
 * with equal hashes are compared as a whole, so that any number will do, and nothing is in the order of such a number.
 */
const isIdentity = (): boolean => {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 10
  try {
    return /\/effect\/(dist|src)\/Hash\.[jt]s/.test(new Error("who asks").stack ?? "")
  } finally {
    Error.stackTraceLimit = limit
  }
}

/** Puts `value` in the place of a member, own or inherited; returns how to undo that. */
const replace = (owner: object, member: string, value: unknown): () => void => {
  const before = Object.getOwnPropertyDescriptor(owner, member)
  const enumerable = before?.enumerable ?? false
  Object.defineProperty(owner, member, { value, enumerable, configurable: true, writable: true })
  return () => {
    if (before === undefined) Reflect.deleteProperty(owner, member)
    else Object.defineProperty(owner, member, before)
  }
}

/** Dates of a given time stay: they are values. The present is not. */
const timelessDate = (): object =>
  // oxlint-disable-next-line no-restricted-globals -- this is the wire that keeps everybody else away from it
  new Proxy(Date, {
    apply: () => trip("Date()"),
    construct: (target, args, as) => args.length === 0 ? trip("new Date()") : Reflect.construct(target, args, as),
    get: (target, member) => member === "now" ? () => trip("Date.now") : Reflect.get(target, member)
  })

const noPromises = (): object =>
  new Proxy(Promise, {
    construct: () => trip("new Promise"),
    get: (target, member) => {
      const found: unknown = Reflect.get(target, member)
      return typeof found === "function" && typeof member === "string" ? () => trip(`Promise.${member}`) : found
    }
  })
