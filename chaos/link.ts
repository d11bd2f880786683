/**
 * The way of one process to the database: a TCP proxy that understands enough of what passes to break it where it hurts.
 * Without a fault it passes everything on at once.
 */
import { Effect, type Scope } from "effect"
import * as Net from "node:net"
import { type Commit, CommitSpotter, type Frame, Framer, isCommitted, isNotification, isReady, isTlsRequest } from "./frames.ts"

/** Where the next connections are cut: the commit never arrives, its answer never does, or any answer does not. */
export type Cut = "before-commit" | "after-commit" | "reply"

/** Cuts to come. */
export interface Cuts {
  readonly count: number
  /** Only where a transaction has moved money, and of those every second one: who tries again gets through. Of commits. */
  readonly ofMoney?: boolean
  /** Is told each time, just before. */
  readonly fired?: () => void
  /** Whether enough were cut elsewhere. */
  readonly isOver?: () => boolean
}

export interface Link {
  readonly port: number
  /** Cuts the next connections that come to this point. */
  readonly cut: (where: Cut, cuts: Cuts) => void
  /** How many connections were cut at each point so far. */
  readonly cuts: Readonly<Record<Cut, number>>
  /** Everything takes this much longer, in milliseconds. */
  readonly delay: (ms: number) => void
  /** Nothing passes any more, in either direction, and nobody is told. */
  readonly hold: () => void
  /** What was held is delivered late, or every connection breaks. */
  readonly release: (how: "deliver" | "break") => void
  /** How many messages came late or were held so far. */
  readonly late: () => number
  /** Whether notifications are dropped. */
  readonly deafen: (deaf: boolean) => void
  /** How many notifications were dropped. */
  readonly dropped: () => number
  readonly heal: () => void
}

/** What the connections of a link are subject to. */
interface State {
  /** One for each cut to come, each after some that pass. */
  readonly armed: Record<Cut, Array<Omit<Cuts, "count"> & { passes: number }>>
  readonly cuts: Record<Cut, number>
  delayMs: number
  late: number
  held: boolean
  deaf: boolean
  dropped: number
}

/** Opens a proxy on 127.0.0.1. `upstream` is the port of the database, or null while it is down. */
export const open = (upstream: () => number | null): Effect.Effect<Link, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(Effect.promise(() => listen(upstream)), ({ close }) => Effect.promise(close)),
    ({ link }) => link
  )

const listen = async (upstream: () => number | null) => {
  const state: State = {
    armed: { "before-commit": [], "after-commit": [], reply: [] },
    cuts: { "before-commit": 0, "after-commit": 0, reply: 0 },
    delayMs: 0,
    late: 0,
    held: false,
    deaf: false,
    dropped: 0
  }
  const pairs = new Set<Pair>()
  const server = Net.createServer((client) => {
    const port = upstream()
    if (port === null) return void client.resetAndDestroy()
    const pair = new Pair(client, Net.connect(port, "127.0.0.1"), state, () => pairs.delete(pair))
    pairs.add(pair)
  })
  const port = await new Promise<number>((resolve) =>
    server.listen(0, "127.0.0.1", () => resolve((server.address() as Net.AddressInfo).port)))
  const release = (how: "deliver" | "break") => {
    if (!state.held) return
    state.held = false
    for (const pair of pairs) {
      if (how === "break") pair.break()
      else pair.flow()
    }
  }
  const link: Link = {
    port,
    cuts: state.cuts,
    cut: (where, { count, ...how }) =>
      void state.armed[where].push(...Array.from({ length: count }, (_, index) => ({
        ...how,
        passes: how.ofMoney === true && index > 0 ? 1 : 0
      }))),
    delay: (ms) => void (state.delayMs = ms),
    hold: () => void (state.held = true),
    release,
    late: () => state.late,
    deafen: (deaf) => void (state.deaf = deaf),
    dropped: () => state.dropped,
    heal: () => {
      for (const armed of Object.values(state.armed)) armed.length = 0
      state.delayMs = 0
      state.deaf = false
      release("break")
    }
  }
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      for (const pair of pairs) pair.break()
    })
  return { link, close }
}

/** One connection of a client, and ours to the server on its behalf. */
class Pair {
  private readonly spotter = new CommitSpotter()
  private commit: Commit = { movesMoney: false }
  private readonly client: Net.Socket
  private readonly server: Net.Socket
  private readonly state: State
  private readonly gone: () => void
  private readonly up: Flow
  private readonly down: Flow
  private closed = 0

  constructor(client: Net.Socket, server: Net.Socket, state: State, gone: () => void) {
    this.client = client
    this.server = server
    this.state = state
    this.gone = gone
    this.up = new Flow(server, state)
    this.down = new Flow(client, state)
    const fromClient = new Framer("client")
    const fromServer = new Framer("server")
    client.on("data", (chunk: Buffer) => fromClient.push(chunk).every((frame) => this.ask(frame)))
    server.on("data", (chunk: Buffer) => fromServer.push(chunk).every((frame) => this.answer(frame)))
    for (const socket of [client, server]) {
      socket.setNoDelay(true)
      socket.on("error", () => this.break())
    }
    client.on("end", () => this.up.end())
    server.on("end", () => this.down.end())
    client.on("close", () => this.end())
    server.on("close", () => this.end())
  }

  flow(): void {
    this.up.flow()
    this.down.flow()
  }

  /** Both ends learn of it at once, as of a process or a network that is gone. */
  break(): void {
    for (const socket of [this.client, this.server]) {
      // A reset of a socket that is about to end is refused, and would leave it open for ever.
      if (socket.writableEnded) socket.destroy()
      else socket.resetAndDestroy()
    }
  }

  /** One end is closed: what is on its way to the other still arrives. */
  private end(): void {
    if (++this.closed === 2) return this.gone()
    this.up.end()
    this.down.end()
  }

  /** Returns whether there is anything more to do. */
  private ask(frame: Frame): boolean {
    if (isTlsRequest(frame)) {
      this.client.write("N")
      return true
    }
    const commit = this.spotter.commitIn(frame)
    if (commit !== null) {
      this.commit = commit
      if (this.fire("before-commit", commit)) return false
    }
    this.up.send(frame.bytes)
    return true
  }

  private answer(frame: Frame): boolean {
    if (isCommitted(frame) && this.fire("after-commit", this.commit) || isReady(frame) && this.fire("reply", this.commit)) return false
    if (this.state.deaf && isNotification(frame)) this.state.dropped++
    else this.down.send(frame.bytes)
    return true
  }

  private fire(where: Cut, { movesMoney }: Commit): boolean {
    const armed = this.state.armed[where] = this.state.armed[where].filter(({ isOver }) => isOver?.() !== true)
    const index = armed.findIndex(({ ofMoney = false }) => movesMoney || !ofMoney)
    const cut = armed[index]
    if (cut === undefined || cut.passes-- > 0) return false
    armed.splice(index, 1)
    this.state.cuts[where]++
    cut.fired?.()
    this.break()
    return true
  }
}

/** One direction: in order, late when the link is slow, not at all while it is held. */
class Flow {
  private readonly to: Net.Socket
  private readonly state: State
  private waiting: Array<{ readonly bytes: Buffer | null; readonly at: number }> = []
  private timer: NodeJS.Timeout | undefined

  constructor(to: Net.Socket, state: State) {
    this.to = to
    this.state = state
  }

  send(bytes: Buffer): void {
    if (this.waiting.length === 0 && !this.state.held && this.state.delayMs === 0) {
      if (this.to.writable) this.to.write(bytes)
    } else {
      this.later(bytes)
    }
  }

  end(): void {
    this.later(null)
  }

  flow(): void {
    clearTimeout(this.timer)
    this.timer = undefined
    while (!this.state.held && this.waiting.length > 0) {
      const [{ at, bytes }] = this.waiting as [{ at: number; bytes: Buffer | null }]
      const wait = at - performance.now()
      if (wait > 0) {
        this.timer = setTimeout(() => this.flow(), wait)
        return
      }
      this.waiting.shift()
      if (bytes === null) this.to.end()
      else if (this.to.writable) this.to.write(bytes)
    }
  }

  private later(bytes: Buffer | null): void {
    if (bytes !== null) this.state.late++
    this.waiting.push({ bytes, at: performance.now() + this.state.delayMs })
    if (this.timer === undefined) this.flow()
  }
}
