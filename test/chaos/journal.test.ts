/** What the database saw: who may write what of an operation, and a real Postgres that writes down who did. */
import { assert, describe, it } from "@effect/vitest"
import { type Entry, journalBreaches, journalRules, seenIn } from "../../chaos/history/entry.ts"

const entry = (writer: string, changes: Partial<Entry>): Entry => ({
  writer,
  workspace: "w",
  id: "e1",
  what: "changed",
  was: "running",
  state: "running",
  wasEpoch: 1,
  epoch: 1,
  failure: null,
  free: false,
  ...changes
})
const claim = (writer: string, epoch: number, changes: Partial<Entry> = {}) =>
  entry(writer, { was: "pending", wasEpoch: epoch - 1, epoch, free: true, ...changes })
const takeover = (writer: string, epoch: number, changes: Partial<Entry> = {}) => claim(writer, epoch, { was: "running", ...changes })
const plan = (writer: string, epoch: number) => entry(writer, { what: "planned", wasEpoch: epoch, epoch })

/** A life with everything in it that is allowed. */
const life: ReadonlyArray<Entry> = [
  claim("worker-1", 1),
  entry("worker-1", {}),
  takeover("worker-2", 2),
  plan("worker-2", 2),
  entry("worker-2", { wasEpoch: 2, epoch: 2, state: "pending", failure: "provider_timeout" }),
  claim("worker-1", 3),
  entry("api-1", { wasEpoch: 3, epoch: 3, state: "failed", failure: "cancelled" }),
  entry("api-2", { was: "failed", state: "pending", wasEpoch: 3, epoch: 3, free: true }),
  claim("worker-3", 4),
  entry("worker-1", { wasEpoch: 4, epoch: 4, state: "failed", failure: "attempts_exhausted", free: true }),
  entry("api-2", { was: "failed", state: "pending", wasEpoch: 4, epoch: 4, free: true }),
  claim("worker-2", 5),
  entry("worker-2", { wasEpoch: 5, epoch: 5, state: "succeeded" })
]

const rulesBroken = (entries: ReadonlyArray<Entry>) => journalBreaches(entries).map(({ rule }) => rule)

describe("what the database saw", () => {
  it("holds in a life in which everything happened that may", () => {
    assert.deepStrictEqual(journalBreaches(life), [])
    assert.deepStrictEqual(seenIn(life), { changes: 13, plans: 1, takeovers: 1, retries: 2 })
  })

  it.each<readonly [what: string, rule: keyof typeof journalRules, entries: ReadonlyArray<Entry>]>([
    ["a claim of what another holds", "nobody-takes-what-is-held", [claim("worker-1", 1), takeover("worker-2", 2, { free: false })]],
    ["a late success", "only-the-holder-writes", [...life.slice(0, 3), entry("worker-1", { wasEpoch: 2, epoch: 2, state: "succeeded" })]],
    ["a late failure", "only-the-holder-writes", [...life.slice(0, 3), entry("worker-1", { wasEpoch: 2, epoch: 2, state: "pending" })]],
    ["a late renewal", "only-the-holder-writes", [...life.slice(0, 3), entry("worker-1", { wasEpoch: 2, epoch: 2 })]],
    ["a late plan", "only-the-holder-writes", [...life.slice(0, 3), plan("worker-1", 2)]],
    ["an end of spent attempts of which the last still lasts", "only-the-holder-writes", [
      claim("worker-1", 1),
      entry("worker-2", { state: "failed", failure: "attempts_exhausted" })
    ]]
  ])("%s is noticed", (_, rule, entries) => {
    assert.deepStrictEqual(rulesBroken(entries), [rule])
  })

  it("operations are told apart by their workspace, too", () => {
    assert.deepStrictEqual(rulesBroken([claim("worker-1", 1), { ...claim("worker-2", 1), workspace: "v" }, entry("worker-1", {})]), [])
  })
})
