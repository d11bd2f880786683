/** What a thread lets others see of it when nobody can ask it: whether it is in the middle of a run, and of which. */

export class Pulse {
  readonly memory: SharedArrayBuffer
  /** How often a run has begun or ended: odd in the middle of one. Then its number, or -1 for one without. */
  private readonly cells: Int32Array

  constructor(memory = new SharedArrayBuffer(8)) {
    this.memory = memory
    this.cells = new Int32Array(memory)
  }

  /** Of the thread: the runs that follow are of this number. */
  number(index: number): void {
    Atomics.store(this.cells, 1, index)
  }

  /** Of the thread: a run, from its beginning to its end. */
  during<A>(run: () => A): A {
    Atomics.add(this.cells, 0, 1)
    try {
      return run()
    } finally {
      Atomics.add(this.cells, 0, 1)
    }
  }

  /** Of the others: equal twice and odd, it has not come to the end of a run in between. */
  get beats(): number {
    return Atomics.load(this.cells, 0)
  }

  get index(): number {
    return Atomics.load(this.cells, 1)
  }
}
