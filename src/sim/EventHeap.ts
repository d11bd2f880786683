/** Events in the order of their time, and of their coming where times are equal. */

export interface Timed {
  readonly at: number
  readonly seq: number
}

export class EventHeap<A extends Timed> {
  private readonly items: Array<A> = []

  get size(): number {
    return this.items.length
  }

  peek(): A | undefined {
    return this.items[0]
  }

  push(item: A): void {
    const { items } = this
    let place = items.push(item) - 1
    while (place > 0) {
      const parent = (place - 1) >> 1
      if (!before(item, items[parent]!)) break
      items[place] = items[parent]!
      place = parent
    }
    items[place] = item
  }

  pop(): A | undefined {
    const { items } = this
    const first = items[0]
    const last = items.pop()
    if (items.length > 0 && last !== undefined) this.sink(last)
    return first
  }

  /** Puts `item` at the top and lets it fall to its place. */
  private sink(item: A): void {
    const { items } = this
    let place = 0
    while (true) {
      let child = 2 * place + 1
      if (child >= items.length) break
      if (child + 1 < items.length && before(items[child + 1]!, items[child]!)) child++
      if (!before(items[child]!, item)) break
      items[place] = items[child]!
      place = child
    }
    items[place] = item
  }
}

const before = (one: Timed, other: Timed): boolean => one.at < other.at || (one.at === other.at && one.seq < other.seq)
