/**
 * Randomness by name instead of by turn: each decision is a hash of a seed and of what it is about, so that one more or
 * one fewer of them moves no other.
 */

/** A name in a tree of names, and the numbers that belong to it. Deriving changes nothing. */
export class Key {
  private readonly high: number
  private readonly low: number

  constructor(high: number, low: number) {
    this.high = high
    this.low = low
  }

  /** The key of a part of this one. Text and numbers are different parts; so are their different splits. */
  of(part: string | number): Key {
    return typeof part === "number" && Number.isSafeInteger(part) ? this.ofInteger(part) : this.ofText(String(part))
  }

  /** The key of one decision: what kind, whose, about what, and which in its order. */
  at(kind: string, actor: string, id: string, index: number): Key {
    return this.ofText(kind).ofText(actor).ofText(id).ofInteger(index)
  }

  /** Uniform in [0, 1), 53 bits. */
  unit(): number {
    return ((this.high >>> 11) * 4_294_967_296 + (this.low >>> 0)) / 9_007_199_254_740_992
  }

  /** Uniform in 0 … n - 1. */
  below(n: number): number {
    return Math.floor(this.unit() * n)
  }

  /** A uniform integer, both ends included. */
  between(min: number, max: number): number {
    return min + this.below(max - min + 1)
  }

  /** True with this probability. */
  chance(probability: number): boolean {
    return this.unit() < probability
  }

  /** Between two positive numbers, each order of magnitude equally likely. */
  logUniform(min: number, max: number): number {
    return min * (max / min) ** this.unit()
  }

  choose<A>(items: readonly [A, ...ReadonlyArray<A>]): A
  choose<A>(items: ReadonlyArray<A>): A | undefined
  choose<A>(items: ReadonlyArray<A>): A | undefined {
    return items[this.below(items.length)]
  }

  /** The same items in an order of this key's own. */
  shuffled<A>(items: ReadonlyArray<A>): Array<A> {
    const order = [...items]
    for (let last = order.length - 1; last > 0; last--) {
      const other = this.ofInteger(last).below(last + 1)
      const item = order[last]!
      order[last] = order[other]!
      order[other] = item
    }
    return order
  }

  bytes(size: number): Uint8Array {
    const bytes = new Uint8Array(size)
    for (let index = 0; index < size; index++) bytes[index] = this.ofInteger(index >>> 2).low >>> ((index & 3) * 8)
    return bytes
  }

  /** 32 bits of this key, for hashes made of keys. */
  word(): number {
    return this.low >>> 0
  }

  private ofInteger(value: number): Key {
    const upper = Math.floor(value / 4_294_967_296)
    return settle(mix(this.high ^ 0x27d4eb2f, upper), mix(mix(this.low, value | 0), upper))
  }

  private ofText(text: string): Key {
    let { high, low } = this
    for (let index = 0; index < text.length; index++) {
      const unit = text.charCodeAt(index)
      high = Math.imul(high ^ unit, 0x5bd1e995)
      low = Math.imul(low ^ unit, 0x9e3779b1)
    }
    return settle(mix(high, text.length), mix(low, ~text.length))
  }
}

const mix = (state: number, word: number): number =>
  Math.imul(state ^ Math.imul(word, 0xcc9e2d51), 0x1b873593) + 0xe6546b64

/** Every bit of both halves depends on every bit of either. */
const settle = (high: number, low: number): Key => {
  const a = avalanche(high ^ Math.imul(low, 0x85ebca6b))
  return new Key(a, avalanche(low ^ Math.imul(a, 0xc2b2ae35)))
}

const avalanche = (state: number): number => {
  const once = Math.imul(state ^ (state >>> 16), 0x85ebca6b)
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35)
  return twice ^ (twice >>> 16)
}

/** The key that everything in one run is derived from. */
export const root = (seed: string | number): Key => new Key(0x6a09e667, 0x3c6ef372).of(seed)
