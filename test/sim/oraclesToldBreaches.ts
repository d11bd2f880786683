/** Answers that no history can give, and the promise that has to notice. */
import type { AddCommand, UpdateCommand } from "../../src/domain/Command.ts"
import { IdempotencyConflict, InputGone, InsufficientCredit, NotFound, VersionConflict, WrongState } from "../../src/domain/Refusal.ts"
import { History } from "./oraclesHistory.ts"
import { hashOf, operationId } from "./oraclesRows.ts"
import { accepted, api, claimed, done, one, planned } from "./oraclesStory.ts"
import * as Telling from "./oraclesTelling.ts"

const { about, change, event, infer, memories, receipt, refused, retry, tell, wanted } = Telling

/** An operation that has just been accepted, told as this; the question came before it. */
const told = (answer: (history: History) => ReturnType<typeof receipt>, question = infer): History => {
  const history = accepted()
  return tell(history, question(history, 1), answer(history), { askedAt: history.now - 5 })
}

/** The first operation, asked for by a client that says what it means. */
const meant = (history: History, meaning: string) => ({ ...infer(history, 1), meaning })
const meaning = (text: string) => (history: History) => meant(history, text)
const conflict = () => refused(new IdempotencyConflict({ operationId: operationId(1) }))

/** What the first operation was asked, and something else. */
const said = (change: Partial<AddCommand>): AddCommand => ({
  kind: "memory.infer",
  scope: { user_id: "ada" },
  messages: [{ role: "user", content: "canary 1" }],
  metadata: {},
  eventDate: null,
  instructions: null,
  ...change
})

/** The first memory, edited by operation 20 while this was asked for. */
const edited = (asked: Partial<UpdateCommand>): History => {
  const history = done()
  const memoryId = history.memoryOf(1)
  history.run(api, (tx) => tx.change(20, memoryId, "edited"))
  const command = { kind: "memory.update", memoryId, text: "edited", metadata: null, expectedVersion: null, ...asked }
  return tell(history, { ...change("Update", memoryId), command } as never, Telling.completed(history, 20), { askedAt: history.now - 5 })
}

/** The first memory, deleted by operation 20. */
const deleted = () => {
  const history = done()
  return history.run(api, (tx) => tx.change(20, history.memoryOf(1), null))
}

const failed = () => claimed().run(api, (tx) => tx.cancel(1))
const short = (available: bigint) => refused(new InsufficientCredit({ required: 2n, available }))

export const toldBreaches: ReadonlyArray<readonly [breaks: string, history: () => History]> = [
  ["told-of-is-there", () => told((history) => receipt(history, 1, { eventId: Telling.nobody }))],
  ["told-of-is-there", () => tell(accepted().wait(10), about("Event", 1), refused(new NotFound({ what: "event" })))],
  ["key-means-one-command", () => {
    const history = accepted()
    return tell(history, { ...infer(history, 1), keyHash: hashOf(2) } as never, receipt(history, 1), { askedAt: 0 })
  }],
  ["key-means-one-command", () => {
    const history = accepted()
    return tell(history, { ...infer(history, 1), commandHash: hashOf(2) } as never, receipt(history, 1), { askedAt: 0 })
  }],
  ["key-means-one-command", () => {
    const history = accepted().run(api, (tx) => tx.accept(2))
    return tell(history, infer(history, 1), receipt(history, 2), { askedAt: 0 })
  }],
  ["key-means-one-command", () => {
    const history = accepted()
    return tell(history, infer(history, 1), refused(new IdempotencyConflict({ operationId: operationId(1) })))
  }],
  ["key-means-one-command", () => {
    const history = accepted()
    const question = { _tag: "Infer", keyHash: hashOf(2), commandHash: hashOf(3) } as const
    return tell(history, question, refused(new IdempotencyConflict({ operationId: operationId(1) })))
  }],
  ["key-means-one-command", () => {
    const history = accepted()
    const question = { _tag: "Infer", keyHash: hashOf(1), commandHash: hashOf(3) } as const
    return tell(history, question, refused(new IdempotencyConflict({ operationId: operationId(2) })))
  }],
  ["told-what-was", () => told((history) => receipt(history, 1, { status: "running" }))],
  ["told-what-was", () => told((history) => receipt(history, 1, { createdAt: 5 }))],
  ["told-what-was", () => tell(claimed().wait(10), about("Event", 1), event(accepted(), 1))],
  ["told-what-was", () => {
    const history = done()
    return tell(history, about("Event", 1), event(history, 1, { attempts: 2 }))
  }],
  ["told-what-was", () => {
    const history = done()
    return tell(history, about("Event", 1), event(history, 1, { results: [] }))
  }],
  ["told-the-money", () => told((history) => receipt(history, 1, { reserved: 3n }))],
  ["told-the-money", () => told((history) => receipt(history, 1, { replayed: true, reserved: 4n }))],
  ["told-the-money", () => {
    const history = done()
    return tell(history, about("Event", 1), event(history, 1, { usage: { reserved: 2n, charged: 0n, refunded: 0n } }))
  }],
  ["told-the-money", () => {
    const history = failed()
    return tell(history, about("Event", 1), event(history, 1, { usage: { reserved: 2n, charged: 2n, refunded: 0n } }))
  }],
  ["told-the-money", () => {
    const history = claimed()
    return tell(history, about("Event", 1), event(history, 1, { usage: { reserved: 2n, charged: 2n, refunded: 2n } }))
  }],
  ["first-is-the-first", () => tell(told((history) => receipt(history, 1)), infer(accepted(), 1), receipt(accepted(), 1), { askedAt: 0 })],
  ["first-is-the-first", () => {
    const history = accepted().wait(10)
    return tell(history, infer(history, 1), receipt(history, 1))
  }],
  ["first-is-the-first", () => {
    const history = failed()
    return tell(history, retry(1), receipt(history, 1))
  }],
  ["first-is-the-first", () => {
    const history = failed().run(api, (tx) => tx.retry(1))
    tell(history, retry(1), receipt(history, 1))
    return tell(history, retry(1), receipt(history, 1))
  }],
  ["credit-was-short", () => tell(new History().wait(10), infer(accepted(), 1), short(0n))],
  ["replays-come-first", () => {
    const history = accepted().run(api, (tx) => tx.spend()).wait(10)
    return tell(history, infer(history, 1), short(0n))
  }],
  ["replays-come-first", () => {
    const history = accepted().wait(10)
    return tell(history, infer(history, 1), refused(new WrongState({ state: "pending" })))
  }],
  ["key-means-what-was-said", () => {
    const history = told((history) => receipt(history, 1), meaning("one"))
    return tell(history, meant(history, "another"), receipt(history, 1, { replayed: true }))
  }],
  ["key-means-what-was-said", () => {
    const history = told((history) => receipt(history, 1), meaning("one"))
    return tell(history, { ...meant(history, "one"), commandHash: hashOf(9) } as never, conflict())
  }],
  ["key-means-what-was-said", () => {
    const history = accepted()
    tell(history, { ...meant(history, "one"), commandHash: hashOf(9) } as never, conflict())
    return tell(history, meant(history, "one"), receipt(history, 1), { askedAt: history.now - 5 })
  }],
  ["refused-claims-nothing", () => {
    const history = new History().run(api, (tx) => tx.spend())
    const question = infer(accepted(), 1)
    tell(history, question, short(0n))
    history.run(api, (tx) => tx.grant(5n)).run(api, (tx) => tx.accept(1)).oracles.atEnd(history.tables)
    return history
  }],
  ["keyless-is-made-once", () => {
    const history = deleted()
    tell(history, change("Delete", history.memoryOf(1)), Telling.completed(history, 20), { askedAt: history.now - 5 })
    history.run(api, (tx) => tx.again("operations", `acme/${operationId(20)}`, { id: operationId(21) }))
    history.oracles.atEnd(history.tables)
    return history
  }],
  ["if-match-is-kept", () => {
    const history = deleted()
    return tell(history, change("Delete", history.memoryOf(1), 2), Telling.completed(history, 20), { askedAt: 0 })
  }],
  ["done-is-done", () => {
    const history = failed().wait(10)
    return tell(history, retry(1), receipt(history, 1, { already: true }))
  }],
  ["done-is-done", () => {
    const history = done()
    return tell(history, change("Delete", history.memoryOf(1)), Telling.completed(history, 1, { already: true }))
  }],
  ["done-is-done", () => {
    const history = deleted()
    return tell(history, change("Update", history.memoryOf(1)), Telling.completed(history, 20, { already: true }))
  }],
  ["done-is-done", () => {
    const history = done()
    return tell(history, about("Cancel", 1), event(history, 1))
  }],
  ["done-is-done", () => {
    const history = failed()
    return tell(history, about("Purge", 1), event(history, 1))
  }],
  ["told-the-money", () => {
    const history = claimed()
    return tell(history, about("Event", 1), event(history, 1, { usage: { reserved: 2n, charged: 0n, refunded: 2n } }))
  }],
  ["told-the-money", () => {
    const history = claimed()
    return tell(history, about("Event", 1), event(history, 1, { acceptReserved: 4n }))
  }],
  ["told-the-money", () => tell(claimed(), retry(1), receipt(claimed(), 1, { already: true, reserved: 0n }))],
  ["told-what-was", () => {
    const history = done()
    const { evidence } = history.operation(1)
    return tell(history, about("Event", 1), event(history, 1, { evidence: { ...evidence, stored: 2 } }))
  }],
  ["told-what-was", () => tell(done(), about("Event", 1), event(done(), 1, { scope: { user_id: "ben" } }))],
  ["told-what-is-kept", () => tell(claimed(), about("Event", 1), event(claimed(), 1, { inputRetained: false }))],
  ["told-what-is-kept", () => tell(done(), about("Event", 1), event(done(), 1, { inputRetained: true }))],
  ["told-the-projection", () => tell(done().wait(10), about("Event", 1), event(done(), 1, { projection: "pending" }))],
  ["told-the-projection", () => tell(done(), about("Event", 1), event(done(), 1, { projection: "none" }))],
  ["told-the-projection", () => {
    const history = planned().run(one, (tx) => tx.settle(1)).wait(10)
    return tell(history, about("Event", 1), event(history, 1, { projection: "ready" }))
  }],
  ["waits-end", () => {
    const history = done(new History().wait(30_000)).wait(10_000)
    return tell(history, { ...about("Event", 1), seconds: 30 } as never, event(history, 1), { askedAt: 0 })
  }],
  ["made-as-asked", () => {
    const history = accepted()
    return tell(history, { ...infer(history, 1), command: said({ eventDate: "2025-01-01" }) } as never, receipt(history, 1), { askedAt: 0 })
  }],
  ["made-as-asked", () => {
    const history = accepted()
    return tell(history, { ...infer(history, 1), command: said({ scope: { user_id: "eve" } }) } as never, receipt(history, 1), { askedAt: 0 })
  }],
  ["made-as-asked", () => edited({ text: "another" })],
  ["made-as-asked", () => edited({ text: null })],
  ["made-as-asked", () => edited({ metadata: { of: "it" } })],
  ["made-as-asked", () => {
    const history = deleted()
    const question = { ...change("Delete", history.memoryOf(1)), command: { kind: "memory.delete", memoryId: history.memoryOf(1), expectedVersion: null } }
    history.run(api, (tx) => tx.change(21, history.memoryOf(1), "back"))
    return tell(history, question as never, Telling.completed(history, 21), { askedAt: history.now - 5 })
  }],
  ["made-as-asked", () => {
    const history = done()
    const question = { _tag: "Add", keyHash: null, commandHash: hashOf(50), command: said({ kind: "memory.add" }) } as const
    return tell(history, question, Telling.completed(history, 1), { askedAt: 0 })
  }],
  ["acknowledged-is-done", () => {
    const history = told((history) => receipt(history, 1))
    history.oracles.atEnd(history.tables)
    return history
  }],
  ["somebody-was-first", () => {
    const history = done()
    tell(history, infer(history, 1), receipt(history, 1, { replayed: true }))
    history.oracles.atEnd(history.tables)
    return history
  }]
]

/** Answers that are true, one kind after another. */
export const truth = (): History => {
  const history = new History().run(api, (tx) => tx.accept(1))
  const asked = { askedAt: history.now - 5 }
  tell(history, infer(history, 1), { _tag: "Unknown" }, asked)
  tell(history, { ...meant(history, "one"), command: said({}) } as never, receipt(history, 1), asked)
  tell(history, meant(history, "one"), receipt(history, 1, { replayed: true }))
  tell(history, { ...meant(history, "another"), commandHash: hashOf(9) } as never, conflict())
  tell(history, about("Purge", 1), refused(new WrongState({ state: "pending" })))
  history.run(one, (tx) => tx.claim(1)).run(one, (tx) => tx.freeze(1))
  tell(history, infer(history, 1), receipt(history, 1, { replayed: true }))
  // It was running when it was asked for, and has succeeded when the answer comes.
  const running = event(history, 1)
  history.run(one, (tx) => tx.settle(1))
  const id = history.memoryOf(1)
  tell(history, about("Event", 1), running, asked)
  tell(history, about("Event", 1), event(history, 1))
  tell(history, about("Cancel", 1), refused(new WrongState({ state: "succeeded" })))
  tell(history, { _tag: "List", ...wanted({ scope: { user_id: "ada" } }) }, memories(history, id))
  tell(history, { _tag: "List", ...wanted({ scope: { user_id: "ben" } }) }, memories(history))
  tell(history, change("Update", id, 3), refused(new VersionConflict({ current: 1 })))
  history.run(api, (tx) => tx.change(20, id, "edited"))
  tell(history, change("Update", id, 1), Telling.completed(history, 20), { askedAt: history.now - 5 })
  tell(history, { _tag: "Search", word: "edited", ...wanted() }, memories(history, id))
  tell(history, { _tag: "Search", word: "fact", ...wanted() }, memories(history))
  tell(history, { _tag: "Events", scope: {}, limit: 1 }, { _tag: "Events", events: [Telling.eventOf(history, 20)] })
  history.run(api, (tx) => tx.change(21, id, null))
  tell(history, change("Delete", id), Telling.completed(history, 21), { askedAt: history.now - 5 })
  tell(history, change("Delete", id), Telling.completed(history, 21, { already: true }))
  tell(history, change("Delete", id, 1), Telling.completed(history, 21, { already: true }))
  tell(history, { _tag: "Memory", memoryId: id }, refused(new NotFound({ what: "memory" })))
  tell(history, about("Event", 1), event(history, 1))
  history.run(api, (tx) => tx.accept(2)).run(api, (tx) => tx.cancel(2))
  tell(history, about("Cancel", 2), event(history, 2))
  history.run(api, (tx) => tx.retry(2))
  tell(history, retry(2), receipt(history, 2, { reserved: 2n }), { askedAt: history.now - 5 })
  tell(history, retry(2), receipt(history, 2, { reserved: 0n, already: true }))
  history.run(api, (tx) => tx.cancel(2)).run(api, (tx) => tx.purge(2))
  tell(history, about("Purge", 2), event(history, 2))
  tell(history, retry(2), refused(new InputGone()))
  tell(history, { _tag: "Usage" }, Telling.balances(history))
  tell(history, { _tag: "Event", operationId: Telling.nobody, seconds: 0 }, refused(new NotFound({ what: "event" })))
  history.run(api, (tx) => tx.spend())
  tell(history, { _tag: "Infer", keyHash: hashOf(3), commandHash: hashOf(9) }, short(0n))
  history.run(api, (tx) => tx.grant(10n)).run(api, (tx) => tx.accept(3)).run(api, (tx) => tx.cancel(3))
  tell(history, infer(history, 3), receipt(history, 3, { status: "pending" }), { askedAt: history.now - 15 })
  history.run(api, (tx) => tx.cancel(90)).run(one, (tx) => {
    tx.index(id)
    for (const version of [1, 2, 3]) tx.finish(id, version)
  })
  return history
}
