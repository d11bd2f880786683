/** Who holds what until its end, who waits for whom in the order of their coming, and who waits in a circle. */

export type Mode = "share" | "exclusive"

/** Whoever holds and waits: a transaction. It waits for one thing at a time. */
export interface Holder {
  readonly locks: Array<Lock>
  /** Who waits for its end, whatever that leaves behind. */
  readonly followers: Array<Wait>
  wait: Wait | null
}

/** A row, or a name. */
export class Lock {
  holder: Holder | null = null
  /** How often another version of the row has come in its place: who stands in line for an older one is ahead of nobody here. */
  version = 0
  private sharers: Array<Holder> | null = null
  private line: Array<Wait> | null = null

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
  queue(by: Holder, mode: Mode = "exclusive", version: number | null = this.version): Wait {
    const wait = new Wait(by, this, mode, version)
    const line = this.line ??= []
    const place = this.shares(by) ? line.findIndex((one) => !this.shares(one.by)) : -1
    line.splice(place < 0 ? line.length : place, 0, wait)
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
   * Everybody that this wait is for: who has it, or the first of those who share it, for they are waited for one by one;
   * and those who came before and want the same version of it, unless both would share it, or he who came before shares
   * it already, for he stands in no line. Nobody once it is over.
   */
  blockers(wait: Wait): ReadonlyArray<Holder> {
    const place = this.line?.indexOf(wait) ?? -1
    if (place < 0) return []
    const inTheWay = ({ by, mode, version }: Wait) =>
      (mode === "exclusive" || wait.mode === "exclusive") && !this.shares(by) &&
      (version ?? this.version) === (wait.version ?? this.version)
    const ahead = this.line!.slice(0, place).filter(inTheWay).map(({ by }) => by)
    const first = this.sharers?.find((one) => one !== wait.by) ?? null
    return [this.holder, first, ...ahead].filter((one) => one !== null && one !== wait.by) as ReadonlyArray<Holder>
  }

  private shares(by: Holder): boolean {
    return this.sharers?.includes(by) ?? false
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
  /** Of the row, when it began. Null: whoever came to change the row, and not only to lock it, goes on to the newest one. */
  readonly version: number | null
  /** Virtual time at which it began, in microseconds. */
  since = 0

  constructor(by: Holder, on: Lock | Holder, mode: Mode = "exclusive", version: number | null = 0) {
    this.by = by
    this.on = on
    this.mode = mode
    this.version = version
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
