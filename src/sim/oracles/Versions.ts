/** What one row was, and from when: all that an answer about it can be held against. */

export class Versions<Row> {
  private readonly times: Array<number> = []
  private readonly rows: Array<Row> = []

  /** It is this from now on, in milliseconds of virtual time. Never called with less than before. */
  push(at: number, row: Row): void {
    this.times.push(at)
    this.rows.push(row)
  }

  /** When it came into being; undefined while it has not. */
  get beganAt(): number | undefined {
    return this.times[0]
  }

  /** What it is. */
  get last(): Row | undefined {
    return this.rows.at(-1)
  }

  /** When it became what it is. */
  get changedAt(): number | undefined {
    return this.times.at(-1)
  }

  /** Whether it was like this at some moment between these, both included. What changed at a moment was both in it. */
  some(from: number, to: number, test: (row: Row) => boolean): boolean {
    for (let index = this.rows.length - 1; index >= 0; index--) {
      const began = this.times[index]!
      if (began > to) continue
      if (test(this.rows[index]!)) return true
      if (began < from) return false
    }
    return false
  }

  /** When it became what it was before that. */
  get previousAt(): number | undefined {
    return this.times.at(-2)
  }

  /** What it was first of all that was like this. */
  find(test: (row: Row) => boolean): Row | undefined {
    return this.rows.find(test)
  }

  /** Whether it did not exist yet at some moment between these. */
  missing(from: number): boolean {
    return this.beganAt === undefined || this.beganAt >= from
  }
}
