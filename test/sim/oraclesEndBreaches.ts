/** What is stuck, left over or overheard, and questions that should not be asked; and the promise that has to notice. */
import { Duration } from "effect"
import type { ExtractionRequest } from "../../src/services/Provider.ts"
import { History } from "./oraclesHistory.ts"
import { acme, add, operationId, settings } from "./oraclesRows.ts"
import { accepted, api, claimed, done, one, planned, two } from "./oraclesStory.ts"
import type { Tx } from "./oraclesTx.ts"

/** Time is over. */
const over = (history: History): History => {
  history.oracles.atEnd(history.tables)
  return history
}

/** Succeeded, and something of it is left. */
const left = (tamper: (tx: Tx) => void) =>
  over(planned().run(one, (tx) => {
    tx.settle(1)
    tamper(tx)
  }))

const asks = (history: History, by: string, n = 1): History => {
  history.oracles.extracting(history.ref(n), by)
  return history
}

const hears = (history: History, by: string, facts?: number): History => {
  history.oracles.extracted(history.ref(1), by, facts)
  return history
}

/** What the first operation is about, and what else the model is asked. */
const asksFor = (change: Partial<ExtractionRequest>): History => {
  const history = claimed()
  const { eventDate, instructions, messages } = history.tables.inputs.get(`${acme}/${operationId(1)}`)!.input
  history.oracles.extracting(history.ref(1), one, { messages, instructions, eventDate, related: [], ...change })
  return history
}

/** The clock of the first worker runs wrong. */
const astray = (history: History): History => {
  history.oracles.struck({ kind: "clock_drift", actor: one, label: "tick", index: 0 })
  return history
}

/** The model wants a process to wait. */
const told = (history: History, by: string, waitMs: number): History => {
  history.oracles.extractionOver(history.ref(1), by, waitMs)
  return history
}

/** A process has ended by itself. */
const leaves = (history: History, by: string): History => {
  history.oracles.died(by, history.now)
  history.oracles.left(by)
  return history
}

export const endBreaches: ReadonlyArray<readonly [breaks: string, history: () => History]> = [
  ["every-operation-ends", () => over(accepted())],
  ["every-operation-ends", () => over(planned())],
  ["every-hold-ends", () => left((tx) => tx.forget("authorizations"))],
  ["nothing-is-left-of-a-success", () => left((tx) => tx.forget("inputs"))],
  ["nothing-is-left-of-a-success", () => left((tx) => tx.forget("plans"))],
  ["nothing-is-left-of-a-success", () => left((tx) => tx.bend(1, { ready: true }))],
  ["every-memory-is-projected", () => left(() => {})],
  ["every-memory-is-projected", () => {
    const history = done()
    return over(history.run(api, (tx) => tx.edit("vectors", `${acme}/${history.memoryOf(1)}`, { version: 0 })))
  }],
  ["every-memory-is-projected", () => {
    const history = done()
    return over(history.run(api, (tx) => tx.change(20, history.memoryOf(1), null)).run(one, (tx) => tx.finish(history.memoryOf(1), 2)))
  }],
  ["every-lane-empties", () => over(accepted())],
  ["nothing-stays-reserved", () => over(done().run(api, (tx) => tx.drain("reserved", -1n)))],
  ["input-is-nowhere-else", () => {
    const history = new History({ canaries: ["a secret of mine"] })
    history.oracles.overheard("worker-1#1", "An attempt ended: a secret of mine")
    return history
  }],
  ["input-is-nowhere-else", () => {
    const history = new History({ canaries: ["a secret (of mine)"] })
    history.tables.transfers.set("acme/x", { ...[...history.tables.transfers.values()][0]!, reference: "a secret (of mine)" })
    return over(history)
  }],
  ["claimed-before-asked", () => asks(accepted(), one)],
  ["claimed-before-asked", () => asks(asks(claimed(), one), one)],
  ["claimed-before-asked", () => asks(planned().wait(3_000).run(two, (tx) => tx.claim(1)), two)],
  ["plan-is-the-answer", () => asks(claimed(), one).run(one, (tx) => tx.freeze(1))],
  ["plan-is-the-answer", () => hears(asks(claimed(), one), one, 2).run(one, (tx) => tx.freeze(1))],
  ["leaves-nothing-behind", () => leaves(claimed().wait(30_000).run(one, (tx) => tx.renew(1)), one)],
  ["leases-are-kept", () => claimed().wait(30_000).run(one, (tx) => tx.renew(1)).wait(3_000).run(two, (tx) => tx.claim(1))],
  ["renewed-when-due", () => claimed().wait(30_000).run(one, (tx) => tx.renew(1)).wait(10).run(one, (tx) => tx.renew(1))],
  ["waits-as-asked", () => told(asks(claimed(), one), one, 60_000).run(one, (tx) => tx.fail(1, "provider_rate_limited"))],
  ["rate-limits-are-waited-out", () => told(asks(claimed(), one), one, 500).run(one, (tx) => {
    tx.cancel(1)
    tx.bend(1, { failure: "provider_rate_limited" })
  })],
  ["stops-before-it-gives-back", () => asks(claimed(), one).run(one, (tx) => tx.release(1))],
  ["expired-inputs-go", () => {
    const history = new History({ settings: { ...settings, failedInputRetention: Duration.zero } })
    history.oracles.healed()
    return over(history.run(api, (tx) => tx.accept(1)).run(api, (tx) => tx.cancel(1)).wait(20_000))
  }],
  ["not-asked-when-lost", () => asks(claimed().run(one, (tx) => tx.renew(1)).wait(3_300), one)],
  ["not-asked-when-lost", () => asks(claimed().run(one, (tx) => tx.renew(1)).wait(2_100).run(two, (tx) => tx.claim(1)).wait(1_300), one)],
  ["attempts-are-bounded", () => hears(asks(claimed(), one).wait(1.5 * Duration.toMillis(settings.attemptBound)), one)],
  ["asked-as-said", () => asksFor({ messages: [{ role: "user", content: "something else" }] })],
  ["asked-as-said", () => asksFor({ eventDate: "2025-01-01T00:00:00.000Z" })],
  ["no-more-at-once", () => {
    const history = new History({ settings: { ...settings, workerConcurrency: 1 } }).run(api, (tx) => tx.accept(1))
    history.run(api, (tx) => tx.accept(2, { user: "ben" })).run(one, (tx) => [1, 2].forEach((n) => tx.claim(n)))
    return asks(asks(history, one), one, 2)
  }],
  ["asked-as-said", () => asksFor({ instructions: "something else" })],
  ["not-waited-for-when-lost", () => hears(asks(claimed(), one).wait(2_250), one)],
  ["not-waited-for-when-lost", () => hears(asks(astray(claimed()), one).wait(3_300), one)],
  ["not-waited-for-when-lost", () => hears(asks(claimed(), one).wait(2_100).run(two, (tx) => tx.claim(1)).wait(1_300), one)]
]

/** Everything that the world may say of its model, and all of it true; and an input whose retention has just ended. */
export const candour = (): History => {
  const short = { ...settings, failedInputRetention: Duration.zero }
  const history = new History({ settings: short, vectorOf: () => Float32Array.of(2, 0), neverStored: ["made up"] })
  history.oracles.healed()
  history.run(api, (tx) => tx.accept(1)).run(one, (tx) => tx.claim(1))
  // Its lease was over before it was heard of: who takes it over asks beside his own former self.
  history.wait(2_100).run(one, (tx) => tx.claim(1))
  asks(hears(asks(history, one), one, 1), one).run(one, (tx) => tx.freeze(1)).run(one, (tx) => tx.settle(1))
  const id = history.memoryOf(1)
  return history.run(one, (tx) => tx.index(id)).run(one, (tx) => tx.finish(id, 1))
    .run(api, (tx) => tx.accept(2)).run(api, (tx) => tx.cancel(2)).wait(10_000)
}

/** Questions that may be asked, however late they look, and texts that may be where they are. */
export const innocence = (): History => {
  const history = asks(claimed(), one)
  history.wait(2_010).run(two, (tx) => tx.claim(1))
  asks(history.wait(100), two)
  // It stood still past its lease, has just gone on, and claims what it has lost.
  history.wait(60_000)
  history.oracles.resumed(two, history.now)
  history.run(two, (tx) => tx.accept(2, { user: "ben" })).run(two, (tx) => tx.claim(2)).wait(50_000)
  history.oracles.resumed(two, history.now)
  asks(history, two, 2)
  // A claim that takes longer than its lease is begun, and stopped a little later.
  history.run(two, (tx) => tx.accept(3, { user: "cy" })).run(one, (tx) => tx.claim(3)).wait(9_000)
  asks(history, one, 3).wait(100).oracles.extracted(history.ref(3), one)
  // Its clock runs slow, and it thinks that it has still time.
  history.run(two, (tx) => tx.accept(4, { user: "di" })).run(two, (tx) => tx.claim(4))
  asks(history, two, 4).oracles.struck({ kind: "clock_drift", actor: "worker-2#7", label: "tick", index: 0 })
  history.wait(2_800).oracles.extracted(history.ref(4), two)
  history.oracles.overheard("worker-1#1", `An attempt of ${operationId(1)} ended`)
  return history
}

/** Processes that end in good order, or not quite, for a reason. */
export const farewell = (): History => {
  const history = asks(claimed(), one)
  told(history, one, 500).run(one, (tx) => tx.fail(1, "provider_rate_limited", 500))
  asks(history.wait(600).run(one, (tx) => tx.claim(1)), one).oracles.extractionOver(history.ref(1), one)
  leaves(history.run(one, (tx) => tx.release(1)), one)
  leaves(history.run(two, (tx) => tx.claim(1)).wait(30_000).trouble().wait(5_000), two)
  // What was claimed in troubled times may be what nobody has heard of.
  leaves(history.wait(60_000), two)
  // Whoever is dead keeps nothing.
  const [three, four] = ["worker-3#1", "worker-4#1"]
  history.run(api, (tx) => tx.accept(2, { user: "ben" })).run(three, (tx) => tx.claim(2)).wait(60_000).run(three, (tx) => tx.renew(2)).wait(3_000)
  history.oracles.died(three, history.now)
  history.run(four, (tx) => tx.claim(2))
  return history
}

/** What a caller said, where it may be. */
export const remembered = (): History => {
  const history = new History({ canaries: ["canary 1"] })
  history
    .run(api, (tx) => tx.accept(1))
    .run(one, (tx) => tx.claim(1))
    .run(one, (tx) => tx.freeze(1, [add("canary 1")]))
    .run(one, (tx) => tx.settle(1))
  const id = history.memoryOf(1)
  return history.run(one, (tx) => tx.index(id)).run(one, (tx) => tx.finish(id, 1))
}
