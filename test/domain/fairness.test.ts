/** A backlog delays nobody else: the first operation of another workspace is next, however long the backlog is. */
import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as Arbitrary from "effect/Arbitrary"
import { advanceClock, startTags } from "../../src/domain/Fairness.ts"
import { seeds, streamOf } from "./arbitraries.ts"

const upTo = (maximum: number) => Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum })))

/** Pending operations in fair order, the clock, and the virtual time of each workspace: what the tables hold. */
class Line {
  clock = 0
  readonly waiting: Array<{ readonly workspace: string; readonly tag: number; readonly seq: number }> = []
  readonly times = new Map<string, number>()
  seq = 0

  accept(workspace: string, count: number) {
    const { tags, workspaceTime } = startTags(this.clock, this.times.get(workspace) ?? 0, count)
    this.times.set(workspace, workspaceTime)
    for (const tag of tags) this.waiting.push({ workspace, tag, seq: this.seq++ })
    this.waiting.sort((a, b) => a.tag - b.tag || a.seq - b.seq)
  }

  /** Serves a batch, in one claim. */
  serve(count = 1): ReadonlyArray<string> {
    const served = this.waiting.splice(0, count)
    this.clock = advanceClock(this.clock, served.map(({ tag }) => tag))
    return served.map(({ workspace }) => workspace)
  }
}

describe("the fair queue", () => {
  it.prop("serves the first operation of another workspace within two, whatever the backlog", {
    backlog: upTo(3_000),
    before: upTo(3_000)
  }, ({ backlog, before }) => {
    const line = new Line()
    line.accept("a", backlog)
    line.serve(Math.min(before - 1, backlog - 1))
    line.accept("b", 1)
    assert.include([...line.serve(), ...line.serve()], "b")
  })

  it.prop("serves it in the next claim when claims take many", {
    backlog: upTo(2_000),
    size: upTo(200)
  }, ({ backlog, size }) => {
    const line = new Line()
    line.accept("a", backlog + 2 * size)
    line.serve(size)
    line.accept("b", 1)
    assert.include(line.serve(size + 1), "b")
  })

  it.prop("shares alike between backlogs, and gives no credit for having been idle", {
    early: upTo(500)
  }, ({ early }) => {
    const line = new Line()
    line.accept("b", 1)
    line.accept("a", early + 200)
    line.serve(early)
    line.accept("b", 200)
    const served = Array.from({ length: 100 }, () => line.serve()[0])
    let lead = 0
    for (const workspace of served) {
      lead += workspace === "b" ? 1 : -1
      assert.isAtMost(Math.abs(lead), 3)
    }
  })

  it.prop("keeps the order of one workspace, and its clock never goes back", { seed: seeds }, ({ seed }) => {
    const random = streamOf(seed)
    let [clock, time, last] = [0, 0, -1]
    for (let round = 0; round < 50; round++) {
      const { tags, workspaceTime } = startTags(clock, time, 1 + Math.floor(random() * 5))
      for (const tag of tags) {
        assert.isAbove(tag, last)
        last = tag
      }
      assert.strictEqual(workspaceTime, last + 1)
      const next = advanceClock(clock, tags.map((tag) => Math.floor(tag * random())))
      assert.isAtLeast(next, clock)
      ;[clock, time] = [next, workspaceTime]
    }
    assert.strictEqual(advanceClock(clock, []), clock)
  })
})
