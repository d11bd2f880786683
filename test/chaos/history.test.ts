/** Every rule about what clients were told holds on a history that could be, and notices one that could not. */
import { assert, describe, it } from "@effect/vitest"
import { breaches, rules } from "../../chaos/history/check.ts"
import type { Answer, Asked, Ended, SeenEvent, Told, Write } from "../../chaos/history/told.ts"
import { Sha256Hex } from "../../src/domain/Ids.ts"

const workspace = "w"
const key = (letter: string) => Sha256Hex.make(letter.repeat(64))

const write = (changes: Partial<Write>): Write => ({
  _tag: "Write",
  kind: "infer",
  keyHash: null,
  intent: "i",
  text: null,
  memoryId: null,
  eventId: null,
  ...changes
})
const told = (askedAt: number, asked: Asked, answer: Answer, client = "c"): Told => ({
  client,
  workspace,
  askedAt,
  answeredAt: askedAt + 5,
  asked,
  answer
})
const ack = (eventId: string, state: SeenEvent["state"] = "pending", results: SeenEvent["results"] | null = null): Answer => ({
  _tag: "Acknowledged",
  eventId,
  state,
  results
})
const event = (id: string, state: SeenEvent["state"], changes: Partial<SeenEvent> = {}): Answer => ({
  _tag: "Event",
  event: { id, state, failure: null, results: [], usage: { reserved: 2, charged: 0, refunded: 0 }, ...changes }
})
const refused = (status: number, code: string, eventId: string | null = null): Answer => ({ _tag: "Refused", status, code, eventId })
const unknown: Answer = { _tag: "Unknown", why: "timeout" }
const look = (eventId: string): Asked => ({ _tag: "Event", eventId })
const usage = (available: number, reserved: number, consumed: number, issued: number): Answer => ({
  _tag: "Usage",
  available,
  reserved,
  consumed,
  issued
})

const tea = write({ keyHash: key("a"), intent: "tea", text: "I like tea" })
const note = write({ kind: "add", keyHash: key("b"), intent: "note", text: "A note" })
const edit = write({ kind: "update", intent: "edit", text: "Another note", memoryId: "m2" })
const again = write({ kind: "retry", keyHash: key("d"), intent: "retry e3", eventId: "e3" })
const poor = write({ keyHash: key("e"), intent: "poor", text: "Never stored" })
const lost = write({ keyHash: key("f"), intent: "lost", text: "Nobody knows" })
const bad = write({ keyHash: key("c"), intent: "bad", text: "I cannot be read" })

const stored = [{ id: "m1", change: "add", version: 1 }]
const noted = [{ id: "m2", change: "add", version: 1 }]
const edited = [{ id: "m2", change: "update", version: 2 }]
const charged = { reserved: 2, charged: 2, refunded: 0 }
const refunded = { reserved: 2, charged: 0, refunded: 2 }

/** A life with everything in it that is allowed. */
const history: ReadonlyArray<Told> = [
  told(0, tea, unknown),
  told(10, tea, ack("e1")),
  told(20, { ...tea, intent: "coffee" }, refused(409, "idempotency_conflict", "e1")),
  told(30, look("e1"), event("e1", "running")),
  told(40, look("e1"), event("e1", "pending", { failure: "provider_timeout" })),
  told(50, look("e1"), event("e1", "succeeded", { results: stored, usage: charged })),
  told(60, tea, ack("e1", "succeeded")),
  told(70, note, ack("e2", "succeeded", noted)),
  told(80, { _tag: "Memory", memoryId: "m2" }, { _tag: "Memory", id: "m2", version: 1 }),
  told(90, edit, ack("e4", "succeeded", edited)),
  told(100, { _tag: "Memory", memoryId: "m2" }, { _tag: "Memory", id: "m2", version: 2 }),
  told(110, bad, ack("e3")),
  told(120, look("e3"), event("e3", "failed", { failure: "invalid_output", usage: refunded })),
  told(130, again, ack("e3")),
  told(140, look("e3"), event("e3", "running", { usage: { reserved: 4, charged: 0, refunded: 2 } })),
  told(145, { _tag: "Cancel", eventId: "e3" }, unknown),
  told(150, poor, refused(402, "insufficient_credit")),
  told(160, lost, unknown),
  told(170, look("nobody"), refused(404, "not_found")),
  told(180, { _tag: "Usage" }, usage(6, 2, 2, 10)),
  told(190, { _tag: "Usage" }, usage(14, 0, 6, 20)),
  told(200, write({ kind: "delete", memoryId: "m1", intent: "forget" }), unknown),
  told(210, { _tag: "Memory", memoryId: "m1" }, refused(404, "not_found"))
]

const ended: Ended = {
  operations: [
    { workspace, id: "e1", kind: "memory.infer", state: "succeeded", failure: null, results: stored },
    { workspace, id: "e2", kind: "memory.add", state: "succeeded", failure: null, results: noted },
    { workspace, id: "e3", kind: "memory.infer", state: "failed", failure: "cancelled", results: [] },
    { workspace, id: "e4", kind: "memory.update", state: "succeeded", failure: null, results: edited },
    { workspace, id: "e5", kind: "memory.infer", state: "succeeded", failure: null, results: [] }
  ],
  keys: [
    { workspace, keyHash: key("a"), operationId: "e1" },
    { workspace, keyHash: key("b"), operationId: "e2" },
    { workspace, keyHash: key("c"), operationId: "e3" },
    { workspace, keyHash: key("d"), operationId: "e3" },
    { workspace, keyHash: key("f"), operationId: "e5" }
  ],
  memories: [
    { workspace, id: "m1", version: 1, text: "I like tea [call 3]", deleted: false },
    { workspace, id: "m2", version: 2, text: "Another note", deleted: false }
  ]
}

const without = (id: string): Ended => ({ ...ended, operations: ended.operations.filter((operation) => operation.id !== id) })
const withEnd = (id: string, changes: Partial<Ended["operations"][number]>): Ended => ({
  ...ended,
  operations: ended.operations.map((operation) => operation.id === id ? { ...operation, ...changes } : operation)
})
const withMemory = (id: string, changes: Partial<Ended["memories"][number]>): Ended => ({
  ...ended,
  memories: ended.memories.map((memory) => memory.id === id ? { ...memory, ...changes } : memory)
})

/** What could not be: the rule that notices, and the history with one more entry, or another end. */
const broken: ReadonlyArray<readonly [rule: string, told: ReadonlyArray<Told>, ended: Ended]> = [
  ["acknowledged-is-there", history, without("e1")],
  ["acknowledged-is-there", history, { ...ended, keys: ended.keys.slice(1) }],
  ["acknowledged-is-there", history, { ...ended, keys: ended.keys.with(0, { ...ended.keys[0]!, operationId: "e2" }) }],
  ["one-key-one-event", [...history, told(300, tea, ack("e5"))], ended],
  ["one-key-one-event", [...history, told(300, { ...tea, intent: "coffee" }, ack("e1"))], ended],
  ["conflict-is-true", [...history, told(300, { ...tea, intent: "cocoa" }, refused(409, "idempotency_conflict", "e2"))], ended],
  ["conflict-is-true", [...history, told(300, note, refused(409, "idempotency_conflict", "e2"))], ended],
  ["refused-leaves-nothing", history, { ...ended, keys: [...ended.keys, { workspace, keyHash: key("e"), operationId: "e5" }] }],
  ["nothing-unasked", history, { ...ended, keys: [...ended.keys, { workspace, keyHash: key("9"), operationId: "e5" }] }],
  ["nothing-unasked", history, { ...ended, keys: ended.keys.slice(0, 4) }],
  ["nothing-unasked", history, { ...ended, operations: [...ended.operations, { ...ended.operations[3]!, id: "e6" }] }],
  ["nothing-unasked", history, withMemory("m1", { text: "I like to be hacked" })],
  ["stored-as-told", history, withEnd("e2", { results: [{ id: "m2", change: "add", version: 3 }] })],
  ["stored-as-told", history, { ...ended, memories: ended.memories.slice(0, 1) }],
  ["stored-as-told", history, withMemory("m2", { version: 1, text: "A note" })],
  ["stored-as-told", history, withMemory("m2", { text: "A note" })],
  ["sound-requests-are-served", [...history, told(300, look("e1"), refused(401, "unauthenticated"))], ended],
  ["sound-requests-are-served", [...history, told(300, note, refused(500, "internal"))], ended],
  ["acknowledged-is-never-absent", [...history, told(300, look("e1"), refused(404, "not_found"))], ended],
  ["acknowledged-is-never-absent", [...history, told(300, again, refused(404, "not_found"))], ended],
  ["acknowledged-is-never-absent", [...history, told(300, { _tag: "Memory", memoryId: "m2" }, refused(404, "not_found"))], ended],
  ["states-go-forward", [...history, told(300, look("e1"), event("e1", "running", { usage: charged }))], ended],
  ["states-go-forward", [...history, told(300, look("e1"), event("e1", "succeeded", { usage: charged }))], ended],
  ["states-go-forward", [...history, told(125, look("e3"), event("e3", "running", { usage: refunded }))], ended],
  ["money-goes-forward", [...history, told(300, look("e1"), event("e1", "succeeded", { results: stored }))], ended],
  ["money-goes-forward", [...history, told(300, look("e1"), event("e1", "succeeded", {
    results: stored,
    usage: { reserved: 2, charged: 2, refunded: 2 }
  }))], ended],
  ["the-end-is-what-was-seen", history, withEnd("e1", { state: "failed", failure: "cancelled" })],
  ["the-end-is-what-was-seen", history, withEnd("e1", { results: [] })],
  ["the-end-is-what-was-seen", [...history, told(300, look("e9"), event("e9", "running"))], ended],
  ["the-end-is-what-was-seen", history.filter(({ asked }) => asked !== again), withEnd("e3", { state: "succeeded" })],
  ["versions-go-forward", [...history, told(300, { _tag: "Memory", memoryId: "m2" }, { _tag: "Memory", id: "m2", version: 1 })], ended],
  ["cancelled-because-asked", history.filter(({ asked }) => asked._tag !== "Cancel"), ended],
  ["cancelled-because-asked", [...history, told(300, look("e5"), event("e5", "failed", { failure: "cancelled", usage: refunded }))], ended],
  ["nothing-is-forgotten-early", history, withEnd("e3", { failure: "input_expired" })],
  ["balances-add-up", [...history, told(300, { _tag: "Usage" }, usage(1, 0, 0, 20))], ended],
  ["balances-add-up", [...history, told(300, { _tag: "Usage" }, usage(15, 0, 5, 20))], ended]
]

describe("what clients were told", () => {
  it("holds beside the end of a life in which everything happened that may", () => {
    assert.deepStrictEqual(breaches(history, ended), [])
  })

  it.each(broken.map(([rule, told, end], index) => ({ rule, index, told, end })))("$rule notices case $index", ({ end, rule, told }) => {
    assert.include(breaches(told, end).map((breach) => breach.rule), rule)
  })

  it("no rule is without a case that it has to notice", () => {
    assert.deepStrictEqual(rules.map(({ name }) => name).toSorted(), [...new Set(broken.map(([rule]) => rule))].toSorted())
    for (const { promise } of rules) assert.match(promise, /^[A-Z].*\.$/)
  })

  it("requests that overlap prove nothing about each other", () => {
    const slow: Told = { ...told(45, look("e1"), event("e1", "running")), answeredAt: 500 }
    assert.deepStrictEqual(breaches([...history, slow], ended), [])
  })

  it("a manual retry that nobody answered may come at any time later", () => {
    const late = told(300, look("e3"), event("e3", "pending", { usage: { reserved: 4, charged: 0, refunded: 2 } }))
    const seen = history.map((one) => one.asked === again ? { ...one, answer: unknown } : one)
    assert.deepStrictEqual(breaches([...seen, late], ended), [])
  })

  it("says where, and never what was said", () => {
    const said = broken.flatMap(([, told, end]) => breaches(told, end))
    for (const text of ["tea", "note", "hacked"]) assert.notInclude(JSON.stringify(said), text)
  })

  it("one workspace never answers for another", () => {
    const elsewhere = history.map((one) => ({ ...one, workspace: "v" }))
    const found = breaches([...history, ...elsewhere], ended)
    assert.isNotEmpty(found)
    assert.deepStrictEqual([...new Set(found.map((breach) => breach.workspace))], ["v"])
  })
})
