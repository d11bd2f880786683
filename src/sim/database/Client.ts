/** What a process has of the database: a bounded number of connections, and its own place in what is random. */
import type { Key } from "../Keyed.ts"
import type { Process } from "../Process.ts"
import type { Session } from "./Session.ts"

/** A bounded number of connections. Whoever finds none free stands in line. */
export class Pool {
  private free: number
  private readonly line: Array<() => void> = []

  constructor(connections: number) {
    this.free = connections
  }

  /** Calls back when there is a connection for it: at once, or `late`. */
  take(go: (late: boolean) => void): void {
    if (this.free === 0) return void this.line.push(() => go(true))
    this.free--
    go(false)
  }

  give(): void {
    const next = this.line.shift()
    if (next === undefined) this.free++
    else next()
  }
}

export interface PoolSizes {
  readonly connections: number
  readonly leaseConnections: number
}

interface Label {
  readonly key: Key
  count: number
}

export class Client {
  readonly process: Process
  readonly main: Pool
  /** For renewing leases: never part of a transaction, and never behind one. */
  readonly leases: Pool
  readonly sessions = new Set<Session>()
  private readonly key: Key
  private readonly labels = new Map<string, Label>()

  constructor(process: Process, key: Key, { connections, leaseConnections }: PoolSizes) {
    this.process = process
    this.key = key.of(process.id)
    this.main = new Pool(connections)
    this.leases = new Pool(leaseConnections)
  }

  /** The key of its next request with this label. */
  next(label: string): Key {
    let known = this.labels.get(label)
    if (known === undefined) this.labels.set(label, known = { key: this.key.of(label), count: 0 })
    return known.key.of(known.count++)
  }
}
