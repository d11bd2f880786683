/** Who holds what until its end, who waits for whom in the order of their coming, and who waits in a circle. */

export type Mode = "share" | "exclusive"

/** Whoever holds and waits: a transaction. It waits for one thing at a time. */
export interface Holder {
  readonly locks: Array<Lock>
  /** Who waits for its end, whatever that leaves behind. */
  readonly followers: Array<Wait>
  wait: Wait | null
  /** Its number, given when it first has or changes a row: a smaller one is of an older transaction. */
  readonly numbered: () => number
}

const nobody: ReadonlyArray<never> = []

/** A row, or a name. */
export class Lock {
  holder: Holder | null = null
  /** How often another version of the row has come in its place: who stands in line for an older one is ahead of nobody here. */
  version = 0
  private sharers: Array<Holder> | null = null
  private line: Array<Wait> | null = null

  /** Whether somebody is changing what it is of, and has not ended. */
  get written(): boolean {
    return false
  }

  /** Takes it at once, if nobody is in the way. */
  take(by: Holder, mode: Mode = "exclusive"): boolean {
    if (this.holder === by) return true
    if (this.holder !== null) return false
    if (mode === "share") {
      const sharers = this.sharers ??= []
      if (!sharers.includes(by)) {
        sharers.push(by)
        by.locks.push(this)
      }
      return true
    }
    if (this.sharers !== null && this.sharers.some((one) => one !== by)) return false
    this.holder = by
    by.locks.push(this)
    return true
  }

  /** Stands in line. It is taken when the wait is over. Whoever shares it already goes before those who do not. */
  queue(by: Holder, mode: Mode = "exclusive", changes = false): Wait {
    const wait = new Wait(by, this, mode, this.version, changes)
    const line = this.line ??= []
    const place = this.shares(by) ? line.findIndex((one) => !this.shares(one.by)) : -1
    line.splice(place < 0 ? line.length : place, 0, wait)
    wait.sharers = this.eldest()
    return wait
  }

  /** Lets go, and moves whoever can have it now from the line to `granted`. */
  release(by: Holder, granted: Array<Wait>): void {
    if (this.holder === by) this.holder = null
    const sharer = this.sharers?.indexOf(by) ?? -1
    if (sharer >= 0) this.sharers!.splice(sharer, 1)
    if (this.line !== null) this.grant(granted)
  }

  /** Leaves the line, which may clear the way for those behind. */
  leave(wait: Wait, granted: Array<Wait>): void {
    const place = this.line?.indexOf(wait) ?? -1
    if (place < 0) return
    this.line!.splice(place, 1)
    this.grant(granted)
  }

  /**
   * Everybody that this wait is for: who has it, or the oldest of those who share it, for they are waited for one by one,
   * those who came later after that; and those who came before and want the same version of it, unless both would share it, or he who came before shares
   * it already, for he stands in no line. Nobody once it is over.
   */
  blockers(wait: Wait): ReadonlyArray<Holder> {
    if (!this.isIn(wait)) return nobody
    return [this.holder, this.oldest(wait), ...this.ahead(wait)].filter((one) => one !== null && one !== wait.by) as ReadonlyArray<Holder>
  }

  /** Whose end this wait is for just now. Null: it is for others to have had their turn. */
  target(wait: Wait): Holder | null {
    return this.isIn(wait) && this.ahead(wait).length === 0 ? this.holder ?? this.oldest(wait) : null
  }

  private isIn(wait: Wait): boolean {
    return this.line?.includes(wait) ?? false
  }

  private ahead(wait: Wait): ReadonlyArray<Holder> {
    if (this.standsOut(wait)) return nobody
    const inTheWay = (one: Wait) =>
      (one.mode === "exclusive" || wait.mode === "exclusive") && !this.shares(one.by) && !this.standsOut(one) &&
      this.lineOf(one) === this.lineOf(wait)
    return this.line!.slice(0, this.line!.indexOf(wait)).filter(inTheWay).map(({ by }) => by)
  }

  /** Of which version this one stands in the line: who came to change the row goes on to the newest. */
  private lineOf({ changes, version }: Wait): number {
    return changes ? this.version : version
  }

  /** Who goes on to a version that somebody is changing already stands in no line: he waits for that one's end, as all like him. */
  private standsOut({ changes, version }: Wait): boolean {
    return changes && version !== this.version && this.written
  }

  private oldest(wait: Wait): Holder | null {
    const isOther = (one: Holder) => one !== wait.by && this.shares(one)
    if (!wait.sharers.some(isOther)) wait.sharers = this.eldest()
    return wait.sharers.find(isOther) ?? null
  }

  private shares(by: Holder): boolean {
    return this.sharers?.includes(by) ?? false
  }

  private eldest(): ReadonlyArray<Holder> {
    return this.sharers === null ? nobody : this.sharers.toSorted((one, other) => one.numbered() - other.numbered())
  }

  private grant(granted: Array<Wait>): void {
    const line = this.line!
    while (line.length > 0 && this.take(line[0]!.by, line[0]!.mode)) granted.push(line.shift()!)
    if (line.length === 0) this.line = null
  }
}

/** One wait of a transaction: for a lock, or for the end of another transaction. */
export class Wait {
  readonly by: Holder
  readonly on: Lock | Holder
  readonly mode: Mode
  /** Of the row, when it began. */
  readonly version: number
  /** Whether it is to change the row, and not only to lock it. */
  readonly changes: boolean
  /** Virtual time since when it is for this holder's end, or for its turn, in microseconds. */
  since = 0
  target: Holder | null = null
  /** Who shared what it is for when somebody last looked: the oldest transaction first, as they are waited for. */
  sharers: ReadonlyArray<Holder> = nobody

  constructor(by: Holder, on: Lock | Holder, mode: Mode = "exclusive", version = 0, changes = false) {
    this.by = by
    this.on = on
    this.mode = mode
    this.version = version
    this.changes = changes
  }
}

/** Waits for the end of a transaction that has written something which may or may not stay. */
export const follow = (by: Holder, leader: Holder): Wait => {
  const wait = new Wait(by, leader)
  leader.followers.push(wait)
  return wait
}

/** Gives up a wait. */
export const leave = (wait: Wait, granted: Array<Wait>): void => {
  if (wait.on instanceof Lock) return wait.on.leave(wait, granted)
  const place = wait.on.followers.indexOf(wait)
  if (place >= 0) wait.on.followers.splice(place, 1)
}

/** Whether a wait that was for the end of one is for that of another now. */
export const movesOn = (wait: Wait): boolean => {
  if (!(wait.on instanceof Lock)) return false
  const before = wait.target
  wait.target = wait.on.target(wait)
  return wait.target !== before
}

/** Everybody whose end a wait is for. */
export const behind = (wait: Wait): ReadonlyArray<Holder> => wait.on instanceof Lock ? wait.on.blockers(wait) : [wait.on]

/** The waits that form a circle with this one, this one first; null when there is none. */
export const circle = (start: Wait): ReadonlyArray<Wait> | null => {
  const seen = new Set<Holder>()
  const from = (wait: Wait): ReadonlyArray<Wait> | null => {
    for (const blocker of behind(wait)) {
      if (blocker === start.by) return [wait]
      if (blocker.wait === null || seen.has(blocker)) continue
      seen.add(blocker)
      const rest = from(blocker.wait)
      if (rest !== null) return [wait, ...rest]
    }
    return null
  }
  return from(start)
}
