/** The meaning of a command has one hash, and every part of the meaning is in it. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import {
  AddBody,
  type AddCommand,
  type Command,
  commandHash,
  commandVersion,
  messagesMax,
  normaliseAdd,
  UpdateBody
} from "../../src/domain/Command.ts"
import { decodeBody } from "../../src/domain/Decode.ts"
import { MemoryId } from "../../src/domain/Ids.ts"
import { memoryMaxLength } from "../../src/domain/Memory.ts"
import { scopeKeys } from "../../src/domain/Scope.ts"
import * as StrictJson from "../../src/domain/StrictJson.ts"
import { addBodies, respell, seeds, streamOf } from "./arbitraries.ts"

const decode = decodeBody(AddBody)
const hashOfText = (text: string) =>
  commandHash(normaliseAdd(Result.getOrThrow(decode(Result.getOrThrow(StrictJson.parse(text))))))
const hashOf = (body: unknown) => hashOfText(JSON.stringify(body))
const hello = { content: "I moved to Berlin", user_id: "ada" }

/** The same body with defaults spelled out, or absent. */
const withDefaults = (body: AddBody, random: () => number) => ({
  ...(body.infer === undefined && random() < 0.5 ? { infer: true } : {}),
  ...(body.metadata === undefined && random() < 0.5 ? { metadata: {} } : {}),
  ...(body.event_date === undefined && random() < 0.5 ? { event_date: null } : {}),
  ...(body.instructions === undefined && random() < 0.5 ? { instructions: null } : {}),
  ...body
})

describe("the hash of a command", () => {
  it.prop("key order, white space, escapes, number forms and spelled-out defaults never change it", {
    body: addBodies,
    seed: seeds
  }, ({ body, seed }) => {
    const random = streamOf(seed)
    assert.strictEqual(hashOfText(respell(withDefaults(body, random), random)), hashOf(body))
  }, { arbitrary: { runs: 300 } })

  it("one text is one message of the user", () => {
    assert.strictEqual(hashOf(hello), hashOf({ messages: [{ role: "user", content: hello.content }], user_id: "ada" }))
  })

  it("an instant is the same however it is written", () => {
    const at = (event_date: string | null) => hashOf({ ...hello, event_date })
    const times = ["00:00Z", "00:00:00.000Z", "02:00:00+02:00", "00:00:00.000000-00:00"]
    for (const same of [...times.map((time) => `2024-05-01T${time}`), "2024-04-30T19:00:00-05:00", "2024-05-01"]) {
      assert.strictEqual(at(same), at("2024-05-01T00:00:00Z"), same)
    }
    assert.notStrictEqual(at("2024-05-01T00:00:00.001Z"), at("2024-05-01T00:00:00Z"))
    assert.strictEqual(at(null), hashOf(hello))
  })

  it("texts are compared as they were sent: no folding of case, space or Unicode", () => {
    const texts = ["é", "e\u0301", "É", "é ", " é", "\uFB01", "fi"]
    assert.strictEqual(new Set(texts.map((content) => hashOf({ ...hello, content }))).size, texts.length)
  })

  it("the order of messages is part of the meaning", () => {
    const messages = [{ role: "user", content: "a" }, { role: "user", content: "b" }]
    assert.notStrictEqual(hashOf({ user_id: "u", messages }), hashOf({ user_id: "u", messages: messages.toReversed() }))
  })

  it.prop("every part of the meaning changes it", { body: addBodies }, ({ body }) => {
    const command = normaliseAdd(body)
    const hashes = [command, ...variations(command)].map((variation) => commandHash(variation))
    assert.strictEqual(new Set(hashes).size, hashes.length)
  }, { arbitrary: { runs: 100 } })

  it("edits, deletions and retries differ in each of their parts, and from each other", () => {
    const one = MemoryId.make("018f0000-0000-8000-8000-000000000001")
    const other = MemoryId.make("018f0000-0000-8000-8000-000000000002")
    const edit = { kind: "memory.update", memoryId: one, text: "a", metadata: { a: 1 }, expectedVersion: 3 } as const
    const commands: ReadonlyArray<Command> = [
      edit,
      { ...edit, memoryId: other },
      { ...edit, text: "b" },
      { ...edit, text: null },
      { ...edit, metadata: null },
      { ...edit, metadata: {} },
      { ...edit, metadata: { a: 2 } },
      { ...edit, expectedVersion: 4 },
      { ...edit, expectedVersion: null },
      { kind: "memory.delete", memoryId: one, expectedVersion: 3 },
      { kind: "memory.delete", memoryId: other, expectedVersion: 3 },
      { kind: "memory.delete", memoryId: one, expectedVersion: null },
      { kind: "operation.retry", operationId: one },
      { kind: "operation.retry", operationId: other }
    ]
    assert.strictEqual(new Set(commands.map((command) => commandHash(command))).size, commands.length)
  })

  it("version 1 is fixed for ever", () => {
    assert.strictEqual(commandVersion, 1)
    const id = MemoryId.make("018f0000-0000-8000-8000-000000000001")
    const full = {
      messages: [{ role: "user", content: "Ich wohne in Köln 🏠" }, { role: "assistant", content: "ok", name: "bot" }],
      user_id: "ada",
      agent_id: "a",
      run_id: "r",
      app_id: "p",
      infer: false,
      metadata: { b: [1, 2.5, null, true], a: { z: "x", y: 0 } },
      event_date: "2024-05-01T02:00:00+02:00",
      instructions: "only places"
    }
    const hashes: ReadonlyArray<string | undefined> = [
      hashOf(hello),
      hashOf(full),
      commandHash({ kind: "memory.update", memoryId: id, text: "x", metadata: { k: "v" }, expectedVersion: 2 }),
      commandHash({ kind: "memory.update", memoryId: id, text: null, metadata: { k: "v" }, expectedVersion: null }),
      commandHash({ kind: "memory.delete", memoryId: id, expectedVersion: null }),
      commandHash({ kind: "operation.retry", operationId: id })
    ]
    assert.deepStrictEqual(hashes, golden)
  })

  it("a version that this release does not know has no hash", () => {
    assert.isUndefined(commandHash(normaliseAdd(hello), 99))
  })
})

/** SHA-256 of "indelible/command/v1", a zero byte, and the RFC 8785 form; computed by another program. */
const golden = [
  "ffafd4a13048a0065ad247759ed98adab9552731928a382c5b8ee7027c058079",
  "a90aac3ef43dc920554f231188f60d47866e669d93e1ee61aaf64653181e1643",
  "a990834e62c93a6f60becb2b6ca5835b70d6f944b7ba8b542a078c33f70271a4",
  "fe836a4a7fd8a2acbc41aacaf590df9f58c4fc9fd47c9760dc1b96d5e4d201d7",
  "448c7928f1ea8e39d395344caab723dcb469dd15239f364991f7c200554d069c",
  "d14ba950a85bd67e66be68385252185ffa27c5d42ff43665cdd5d88ca232106b"
]

/** Commands that each differ from this one in one part of the meaning. */
const variations = (command: AddCommand): ReadonlyArray<AddCommand> => [
  { ...command, kind: command.kind === "memory.add" ? "memory.infer" : "memory.add" },
  ...scopeKeys.map((key) => ({ ...command, scope: { ...command.scope, [key]: `${command.scope[key] ?? ""}+` } })),
  ...command.messages.flatMap((message, index) => {
    const change = (changed: Partial<typeof message>) => ({
      ...command,
      messages: command.messages.with(index, { ...message, ...changed })
    })
    return [
      change({ role: message.role === "tool" ? "user" : "tool" }),
      change({ content: `${message.content}.` }),
      change({ name: `${message.name ?? ""}+` })
    ]
  }),
  { ...command, messages: [...command.messages, { role: "user", content: "and" }] },
  { ...command, messages: [{ role: "user", content: "and" }, ...command.messages, { role: "tool", content: "" }] },
  { ...command, metadata: { ...command.metadata, extra: 1 } },
  { ...command, metadata: { ...command.metadata, extra: "1" } },
  { ...command, eventDate: "1999-12-31T23:59:59.999Z" },
  { ...command, instructions: `${command.instructions ?? ""}+` }
]

const pathsOf = (body: unknown) => {
  const decoded = decode(body)
  return Result.isFailure(decoded) ? decoded.failure.errors.map(({ path }) => path) : "taken"
}

describe("the body of an add", () => {
  it("needs a scope with no empty id, one kind of text, and something to remember", () => {
    assert.strictEqual(pathsOf(hello), "taken")
    assert.deepStrictEqual(pathsOf({ content: "x" }), [""])
    for (const key of scopeKeys) assert.deepStrictEqual(pathsOf({ content: "x", user_id: "u", [key]: "" }), [`/${key}`])
    assert.deepStrictEqual(pathsOf({ user_id: "u", content: "x", messages: [{ role: "user", content: "x" }] }), [""])
    assert.deepStrictEqual(pathsOf({ user_id: "u", content: " \n" }), [""])
    assert.deepStrictEqual(pathsOf({ user_id: "u", messages: [] }), ["/messages"])
    const many = Array.from({ length: messagesMax + 1 }, () => ({ role: "user", content: "x" }))
    assert.deepStrictEqual(pathsOf({ user_id: "u", messages: many }), ["/messages"])
  })

  it("a verbatim text is at most as long as a memory; an inferred one may be longer", () => {
    const long = "x".repeat(memoryMaxLength + 1)
    const messages = [{ role: "user", content: "short" }, { role: "user", content: long }]
    assert.strictEqual(pathsOf({ user_id: "u", messages }), "taken")
    assert.deepStrictEqual(pathsOf({ user_id: "u", messages, infer: false }), ["/messages/1/content"])
    assert.deepStrictEqual(pathsOf({ user_id: "u", content: long, infer: false }), ["/content"])
  })

  it("a date that is no instant is refused, not guessed", () => {
    const times = ["T00:00:00", "T24:00:00Z", "T00:00:00+25:00", " 00:00:00Z", "T00:00:00z", "T00:00:60Z"]
    const dates = ["", "1", "2024", "2024-02-30", "2024-02-30T00:00:00Z", "May 1 2024", "2024-13-01", "tomorrow"]
    for (const event_date of [...dates, ...times.map((time) => `2024-05-01${time}`)]) {
      assert.deepStrictEqual(pathsOf({ ...hello, event_date }), ["/event_date"], event_date)
    }
  })

  it("a date that in UTC leaves the years of four digits is refused, and every other can be sent back", () => {
    const outside = ["0000-01-01T00:00:00+23:59", "0000-01-01T00:00+00:01", "9999-12-31T23:59:59-23:59"]
    for (const event_date of outside) {
      assert.deepStrictEqual(pathsOf({ ...hello, event_date }), ["/event_date"], event_date)
    }
    const edges = [
      ["0000-01-01T00:00:00+00:00", "0000-01-01T00:00:00.000Z"],
      ["0000-01-01T23:59:00+23:59", "0000-01-01T00:00:00.000Z"],
      ["9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999Z"],
      ["9999-12-31T00:00:59-23:59", "9999-12-31T23:59:59.000Z"]
    ] as const
    for (const [event_date, eventDate] of edges) {
      assert.strictEqual(normaliseAdd({ ...hello, event_date }).eventDate, eventDate)
      assert.strictEqual(pathsOf({ ...hello, event_date }), "taken", event_date)
      assert.strictEqual(pathsOf({ ...hello, event_date: eventDate }), "taken", eventDate)
    }
  })

  it("an edit changes something, and never to nothing", () => {
    const edit = decodeBody(UpdateBody)
    assert.isTrue(Result.isSuccess(edit({ memory: "x" })) && Result.isSuccess(edit({ metadata: {} })))
    const tooLong = { memory: "x".repeat(memoryMaxLength + 1) }
    for (const body of [{}, { memory: " " }, { memory: null }, { metadata: null }, tooLong]) {
      assert.isTrue(Result.isFailure(edit(body)))
    }
  })
})
