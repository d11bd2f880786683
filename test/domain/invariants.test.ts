/** Every invariant holds on rows that the domain itself made, and notices the one row that breaks it. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { Sha256Hex } from "../../src/domain/Ids.ts"
import type { Violation } from "../../src/domain/Invariant.ts"
import * as Invariants from "../../src/domain/Invariants.ts"
import { charge, emptyBalances, post, refund, reserve, type Transfer } from "../../src/domain/Ledger.ts"
import { decide, evolve, type Input, type Operation } from "../../src/domain/Operation.ts"
import { applyPlan, buildPlan, type MemoryWrite } from "../../src/domain/Plan.ts"
import type { HistoryRecord, Snapshot } from "../../src/domain/Snapshot.ts"
import { accepted, added, at, grantOf, hash, operationId, workspaceId } from "./samples.ts"

const step = (operation: Operation, input: Input) => evolve(operation, Result.getOrThrow(decide(operation, input)))
const claim = { _tag: "Claim", owner: "w", leaseMs: 1_000, maxAttempts: 5, now: 2_000 } as const
const commit = { _tag: "Commit", epoch: 1, results: [], evidence: accepted(1).evidence, now: 3_000 } as const
const retry = { _tag: "Retry", authorizationNo: 2, seq: 9, ready: true, fairTag: 9, now: 4_000 } as const
const nobody = { workspaceId, operationId: null, authorizationNo: null }
const give: Transfer = { ...nobody, kind: "grant", amount: 100n, reference: "g" }
const open = (n: number, no: number) => reserve(grantOf(n, no, 2n))
const historyOf = ({ change, memory }: MemoryWrite): HistoryRecord => ({
  workspaceId,
  memoryId: memory.id,
  version: memory.version,
  change,
  text: memory.text,
  operationId: memory.operationId,
  at: memory.updatedAt
})

/** What an operation makes of facts about the memories that others wrote. */
const applied = (n: number, facts: Parameters<typeof buildPlan>[0]["facts"], targets: ReadonlyArray<MemoryWrite>) => {
  const memories = targets.map(({ memory }) => memory)
  const related = memories.map(({ id, text, version }) => ({ id, version, text: text! }))
  const about = { scope: { user_id: "ada" }, metadata: {}, eventDate: null, model: "m" }
  return applyPlan(buildPlan({ operationId: operationId(n), facts, related, ...about }), {
    operation: { workspaceId, id: operationId(n) },
    now: at(3_000),
    current: new Map(memories.map((memory) => [memory.id, memory]))
  })
}
const first = applied(1, ["one", "two"].map((text) => ({ change: "add", text, target: null })), [])
const second = applied(2, [
  { change: "delete", text: null, target: 0 },
  { change: "update", text: "2", target: 1 }
], first.writes)
const gone = second.writes[0]!.memory.id
const kept = second.writes[1]!.memory.id

/** Two that succeeded; one that failed, was retried and runs; one behind it in its lane; and an edit. */
const healthy = (): Snapshot => {
  const [one, two, three] = [1, 2, 3].map((n) => step(accepted(n), claim))
  const reopened = step(step(three!, { _tag: "Cancel", now: 3_000 }), { ...retry, seq: 6 })
  const [a, cheap, c] = [1, 2, 3].map((n) => open(n, 1).authorization)
  const b: typeof cheap = { ...cheap!, price: { policy: "infer-add", stored: 1, noMemory: 1 } }
  const ends = [charge(a!, 2n), charge(b, 1n), refund(c!)]
  const holds = [open(3, 2), open(4, 1)]
  const opened = [1, 2, 3].flatMap((n) => open(n, 1).transfers)
  const transfers = [give, ...opened, ...[...ends, ...holds].flatMap((moved) => moved.transfers)]
  return {
    operations: [
      step(one!, { ...commit, results: first.results }),
      step(two!, { ...commit, results: second.results }),
      step(reopened, { ...claim, now: 5_000 }),
      accepted(4, { seq: 7, ready: false }),
      { ...step(step(accepted(5), claim), commit), kind: "memory.update", authorizationNo: null }
    ],
    keys: [{ workspaceId, keyHash: hash, operationId: operationId(1) }],
    authorizations: [...ends, ...holds].map(({ authorization }) => authorization),
    transfers,
    accounts: [{ workspaceId, balances: transfers.reduce(post, emptyBalances) }],
    memories: second.writes.map(({ memory }) => memory),
    history: [...first.writes, ...second.writes].map(historyOf).map((row) =>
      row.memoryId === gone ? { ...row, text: null } : row
    ),
    projections: [{ workspaceId, id: kept, version: 2 }],
    plans: [{ workspaceId, id: operationId(3) }],
    inputs: [3, 4].map((n) => ({ workspaceId, id: operationId(n) })),
    vectors: [{ workspaceId, id: kept, version: 1 }]
  }
}

const names = (violations: ReadonlyArray<Violation>) => [...new Set(violations.map(({ invariant }) => invariant))]
const edit = <Row>(rows: ReadonlyArray<Row>, index: number, change: Partial<Row>) =>
  rows.with(index, { ...rows[index]!, ...change })
const operation = (index: number, change: Partial<Operation>) => (s: Snapshot): Partial<Snapshot> => ({
  operations: edit(s.operations, index, change)
})
const balance = (account: "available" | "reserved" | "issued", by: bigint) => (s: Snapshot): Partial<Snapshot> => {
  const { balances } = s.accounts[0]!
  return { accounts: [{ workspaceId, balances: { ...balances, [account]: balances[account] + by } }] }
}
/** One broken row each, and the invariant that has to notice it. */
const broken: ReadonlyArray<readonly [breaks: string, change: (s: Snapshot) => Partial<Snapshot>]> = [
  ["nothing-without-its-operation", () => ({ keys: [{ workspaceId, keyHash: hash, operationId: operationId(99) }] })],
  ["nothing-without-its-operation", () => ({ inputs: [{ workspaceId, id: operationId(99) }] })],
  ["records-equal-results", (s) => ({ history: s.history.slice(1) })],
  ["records-equal-results", (s) => ({ history: edit(s.history, 0, { operationId: operationId(3) }) })],
  ["records-equal-results", (s) => ({ history: [...s.history, s.history[0]!] })],
  ["records-equal-results", operation(0, { results: [...first.results, first.results[0]!] })],
  ["records-equal-results", operation(0, { outcome: "no_memory" })],
  ["records-equal-results", operation(4, { outcome: "stored" })],
  ["ids-are-derived", operation(0, { results: first.results.toReversed() })],
  ["money-follows-state", operation(3, { state: "failed", failure: "cancelled", completedAt: at(9) })],
  ["money-follows-state", operation(2, { authorizationNo: 1 })],
  ["money-follows-state", operation(4, { authorizationNo: 1 })],
  ["money-follows-state", (s) => ({ authorizations: edit(s.authorizations, 1, { no: 2 }) })],
  ["money-follows-state", (s) => ({ authorizations: edit(s.authorizations, 2, { state: "open" }) })],
  ["money-follows-state", (s) => ({ authorizations: s.authorizations.slice(0, 4) })],
  ["charged-by-the-price", (s) => ({ authorizations: edit(s.authorizations, 0, { charged: 1n }) })],
  ["charged-by-the-price", (s) => ({ authorizations: edit(s.authorizations, 1, { price: { policy: "infer-add", stored: 2, noMemory: 1 } }) })],
  ["charged-by-the-price", (s) => ({
    authorizations: edit(s.authorizations, 0, { charged: 2n, price: { policy: "infer-add", stored: 1, noMemory: 2 } })
  })],
  ["authorization-ends-once", (s) => ({ transfers: [...s.transfers, s.transfers[4]!] })],
  ["authorization-ends-once", (s) => ({ transfers: s.transfers.filter(({ kind }) => kind !== "release") })],
  ["authorization-ends-once", (s) => ({ transfers: [...s.transfers, refund(open(1, 1).authorization).transfers[0]!] })],
  ["authorization-ends-once", (s) => ({ authorizations: edit(s.authorizations, 0, { charged: 3n }) })],
  ["authorization-ends-once", (s) => ({ authorizations: edit(s.authorizations, 4, { charged: 1n }) })],
  ["lease-follows-state", operation(2, { leaseOwner: null })],
  ["lease-follows-state", operation(2, { ready: false })],
  ["lease-follows-state", operation(0, { leaseOwner: "w", leaseExpiresAt: at(9) })],
  ["terminal-is-finished", operation(0, { ready: true })],
  ["terminal-is-finished", operation(0, { completedAt: null })],
  ["terminal-is-finished", operation(0, { nextAttemptAt: at(9) })],
  ["terminal-is-finished", operation(0, { failure: "cancelled" })],
  ["terminal-is-finished", operation(3, { outcome: "no_memory" })],
  ["waits-for-what-may-pass", operation(3, { failure: "extraction_refused" })],
  ["waits-for-what-may-pass", operation(2, { failure: "cancelled" })],
  ["success-is-redacted", (s) => ({ inputs: [...s.inputs, { workspaceId, id: operationId(1) }] })],
  ["success-is-redacted", (s) => ({ plans: [...s.plans, { workspaceId, id: operationId(2) }] })],
  ["attempts-are-claims", operation(0, { attempts: -1 })],
  ["attempts-are-claims", operation(0, { attempts: 2 })],
  ["attempts-are-claims", operation(2, { attempts: 0 })],
  ["attempts-are-claims", operation(0, { invalidOutputs: 2 })],
  ["one-head", operation(3, { ready: true })],
  ["one-head", operation(3, { seq: 1 })],
  ["one-head", operation(3, { seq: 6 })],
  ["one-runner", operation(3, { state: "running", leaseOwner: "w", leaseExpiresAt: at(9), ready: true })],
  ["one-operation-per-key", (s) => ({ keys: [...s.keys, { ...s.keys[0]!, operationId: operationId(2) }] })],
  ["never-overdrawn", balance("available", -1_000n)],
  ["credits-are-conserved", balance("issued", 1n)],
  ["balances-equal-transfers", (s) => ({ transfers: [...s.transfers, { ...give, reference: "h" }] })],
  ["balances-equal-transfers", () => ({ accounts: [] })],
  ["reserved-equals-holds", balance("reserved", 1n)],
  ["nothing-without-its-memory", (s) => ({ memories: s.memories.slice(1) })],
  ["nothing-without-its-memory", () => ({ vectors: [{ workspaceId, id: added(77).id, version: 1 }] })],
  ["versions-are-contiguous", (s) => ({ history: edit(s.history, 3, { version: 3 }) })],
  ["versions-are-contiguous", (s) => ({ history: edit(s.history, 3, { change: "add" }) })],
  ["record-equals-history", (s) => ({ memories: edit(s.memories, 1, { version: 3 }) })],
  ["record-equals-history", (s) => ({ memories: edit(s.memories, 1, { text: "another" }) })],
  ["record-equals-history", (s) => ({ memories: edit(s.memories, 1, { operationId: operationId(1) }) })],
  ["deleted-is-forgotten", (s) => ({ history: edit(s.history, 0, { text: "one" }) })],
  ["deleted-is-forgotten", (s) => ({ memories: edit(s.memories, 0, { text: "one" }) })],
  ["deleted-is-forgotten", (s) => ({ history: edit(s.history, 1, { text: null }) })],
  ["projection-never-ahead", () => ({ projections: [{ workspaceId, id: kept, version: 3 }] })],
  ["projection-never-ahead", () => ({ vectors: [{ workspaceId, id: kept, version: 3 }] })],
  ["projected-or-waiting", () => ({ projections: [] })],
  ["projected-or-waiting", (s) => ({ vectors: [...s.vectors!, { workspaceId, id: gone, version: 1 }] })]
]

const withSecret = <Row extends { readonly text: string | null }>(rows: ReadonlyArray<Row>): ReadonlyArray<Row> =>
  rows.map((row) => row.text === null ? row : { ...row, text: `s3cret ${row.text}` })

describe("the invariants", () => {
  it("hold on rows that the domain made", () => {
    assert.deepStrictEqual(Invariants.checkSnapshot(healthy()), [])
  })

  it("each notices the row that breaks it", () => {
    broken.forEach(([name, change], index) => {
      assert.include(names(Invariants.checkSnapshot({ ...healthy(), ...change(healthy()) })), name, `case ${index}`)
    })
  })

  it("none is without a case that it has to notice", () => {
    const covered = new Set([...broken, ...brokenTransitions].map(([name]) => name))
    assert.deepStrictEqual(Invariants.catalogue.map(({ name }) => name).toSorted(), [...covered].toSorted())
    for (const { promise } of Invariants.catalogue) assert.match(promise, /^[A-Z].*\.$/)
  })

  it("say where, and never what: a detail holds no text of a memory", () => {
    for (const [, change] of broken) {
      const rows = { ...healthy(), ...change(healthy()) }
      const secrets = { memories: withSecret(rows.memories), history: withSecret(rows.history) }
      const found = Invariants.checkSnapshot({ ...rows, ...secrets })
      for (const { detail, id } of found) {
        assert.notInclude(detail, "s3cret")
        assert.isNotEmpty(id)
      }
    }
  })

  it("say nothing of an index that was not read", () => {
    assert.deepStrictEqual(Invariants.checkSnapshot({ ...healthy(), vectors: null, projections: [] }), [])
  })

  it("two workspaces never answer for each other", () => {
    const snapshot = healthy()
    const other = { ...snapshot.accounts[0]!, workspaceId: "other" as typeof workspaceId }
    const found = Invariants.checkSnapshot({ ...snapshot, accounts: [...snapshot.accounts, other] })
    assert.deepStrictEqual([...new Set(found.map((violation) => violation.workspaceId))], ["other"])
  })
})

const running = step(accepted(1), claim)
const failed = step(running, { _tag: "Cancel", now: 3_000 })
const succeeded = step(running, commit)

const seen = Invariants.checkOperationTransition

/** Two moments of one row that cannot both have been. */
const brokenTransitions: ReadonlyArray<readonly [breaks: string, found: ReadonlyArray<Violation>]> = [
  ["terminal-is-absorbing", seen({ before: succeeded, after: failed })],
  ["terminal-is-absorbing", seen({ before: failed, after: { ...accepted(1), epoch: 1 } })],
  ["terminal-is-absorbing", seen({ before: succeeded, after: { ...succeeded, results: first.results } })],
  ["epoch-never-returns", seen({ before: running, after: accepted(1) })],
  ["epoch-never-returns", seen({ before: running, after: { ...running, seq: 0 } })],
  ["epoch-never-returns", seen({ before: running, after: { ...running, authorizationNo: null } })],
  ["one-holder-per-epoch", seen({ before: running, after: { ...running, leaseOwner: "x" } })],
  ["one-holder-per-epoch", seen({ before: accepted(1), after: { ...running, epoch: 0 } })],
  ["attempts-are-counted-by-claims", seen({ before: running, after: { ...running, attempts: 2 } })],
  ["identity-is-fixed", seen({ before: running, after: { ...running, scope: { user_id: "eve" } } })],
  ["identity-is-fixed", seen({
    before: running,
    after: { ...running, evidence: { ...running.evidence, commandHash: Sha256Hex.make("b".repeat(64)) } }
  })],
  ["version-never-returns", Invariants.checkMemoryTransition({ before: added(1, { version: 2 }), after: added(1) })],
  ["version-never-returns", Invariants.checkMemoryTransition({ before: added(1), after: added(1, { text: "x" }) })],
  ["deletion-is-final", Invariants.checkMemoryTransition({
    before: added(1, { deleted: true, text: null }),
    after: added(1, { version: 2 })
  })]
]

describe("the invariants of transitions", () => {
  it("each notices two moments that cannot both have been", () => {
    for (const [name, found] of brokenTransitions) assert.include(names(found), name)
  })

  it("hold between any two moments of a life", () => {
    const reopened = step(failed, retry)
    const again = step(reopened, claim)
    const life = [accepted(1), running, failed, reopened, again, step(again, { ...commit, epoch: 2 })]
    life.forEach((before, index) => {
      for (const after of life.slice(index)) {
        assert.deepStrictEqual(seen({ before, after }), [])
      }
    })
  })
})
