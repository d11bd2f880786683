/** A circle is found where there is one, and not among those whose wait is already over. */
import { assert, describe, it } from "@effect/vitest"
import { circle, type Holder, Lock, type Wait } from "../../src/sim/database/Lock.ts"

let numbers = 0
const holder = (): Holder => {
  const number = ++numbers
  return { locks: [], followers: [], wait: null, numbered: () => number }
}

const waitFor = (lock: Lock, by: Holder): Wait => by.wait = lock.queue(by)

describe("a circle of waits", () => {
  it("is found from any of its members", () => {
    const [one, other] = [new Lock(), new Lock()]
    const [a, b] = [holder(), holder()]
    one.take(a)
    other.take(b)
    const first = waitFor(other, a)
    assert.isNull(circle(first))
    const second = waitFor(one, b)
    assert.deepStrictEqual(circle(second), [second, first])
    assert.deepStrictEqual(circle(first), [first, second])
  })

  for (const others of [0, 1]) {
    it(`has no part in which somebody has what he waited for, and has not gone on yet (${others} behind him)`, () => {
      const [one, other] = [new Lock(), new Lock()]
      const [a, b, c] = [holder(), holder(), holder()]
      one.take(a)
      other.take(b)
      waitFor(one, b)
      for (let index = 0; index < others; index++) waitFor(one, c)
      const granted: Array<Wait> = []
      one.release(a, granted)
      assert.deepStrictEqual(granted, [b.wait])
      assert.isNull(circle(waitFor(other, a)))
    })
  }
})
