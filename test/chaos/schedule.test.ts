/** What goes wrong, and when, is a function of the seed. */
import { assert, describe, it } from "@effect/vitest"
import { cards, type Cast, kindOf, schedule, type Timed } from "../../chaos/schedule.ts"

const cast: Cast = { apis: ["api-1", "api-2"], workers: ["worker-1", "worker-2", "worker-3"], leaseMs: 3_000 }
const minutes = (n: number) => n * 60_000

describe("the schedule", () => {
  it("is the same for the same seed, and another for another", () => {
    assert.deepStrictEqual(schedule("a", minutes(2), cast), schedule("a", minutes(2), cast))
    assert.notDeepEqual(schedule("a", minutes(2), cast), schedule("b", minutes(2), cast))
  })

  it("a longer run begins as a shorter one does", () => {
    const short = schedule("a", minutes(1), cast)
    assert.deepStrictEqual(schedule("a", minutes(3), cast).slice(0, short.length), short)
  })

  it("stays within its time, and is in order", () => {
    const times = schedule("a", minutes(1), cast).map(({ atMs }) => atMs)
    assert.deepStrictEqual(times, times.toSorted((a, b) => a - b))
    assert.isBelow(times.at(-1)!, minutes(1))
    assert.isAbove(times[0]!, 0)
  })

  it("every kind of fault comes well within three quarters of a minute, whatever the seed", () => {
    // Some kinds strike an API or a worker, as it comes.
    const kindsIn = (timed: ReadonlyArray<Timed>) =>
      new Set(timed.map(({ fault }) => kindOf(fault).replace(/^(api|worker) (?=black|delay|cut reply)/, "")))
    const every = kindsIn(schedule("a", minutes(60), cast))
    assert.isAtLeast(every.size, 25)
    for (const seed of ["a", "b", "c", "d", "e"]) {
      const first = schedule(seed, minutes(0.65), cast)
      assert.isAtLeast(first.length, cards, seed)
      assert.deepStrictEqual(kindsIn(first.slice(0, cards)), every, seed)
    }
  })

  it("strikes every process, and pauses workers for longer than a lease", () => {
    const faults = schedule("a", minutes(30), cast).map(({ fault }) => fault)
    const struck = new Set(faults.flatMap((fault) => "member" in fault ? [fault.member] : []))
    assert.sameMembers([...struck], [...cast.apis, ...cast.workers])
    const pauses = faults.flatMap((fault) => fault._tag === "Pause" && fault.member.startsWith("worker") ? [fault.ms] : [])
    assert.isNotEmpty(pauses)
    for (const ms of pauses) assert.isAbove(ms, cast.leaseMs)
  })
})
