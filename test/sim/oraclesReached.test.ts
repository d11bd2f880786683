/** Every named state is reached by a history that passes through it, and by none that does not. */
import { assert, describe, it } from "@effect/vitest"
import { InputGone, InsufficientCredit, IdempotencyConflict, WrongState } from "../../src/domain/Refusal.ts"
import type { FaultKind } from "../../src/sim/Faults.ts"
import { quotas, type ReachedState, reachedStates } from "../../src/sim/oracles/Reached.ts"
import { History } from "./oraclesHistory.ts"
import { add, hashOf, operationId } from "./oraclesRows.ts"
import { accepted, api, claimed, done, ended, one, planned, story, two } from "./oraclesStory.ts"
import { about, infer, receipt, refused, retry, tell } from "./oraclesTelling.ts"
import { truth } from "./oraclesToldBreaches.ts"

/** The next commit of this process is applied, and nobody hears of it. */
const unheard = (history: History, actor: string, kind: FaultKind = "lost_acknowledgement"): History => {
  history.oracles.struck({ actor, label: "commit", index: 0, kind })
  return history
}

const dies = (history: History, by: string): History => {
  history.oracles.died(by, history.now)
  return history
}

/** It stood still until now. */
const woken = (history: History, by: string): History => {
  history.oracles.resumed(by, history.now)
  return history
}

const answered = (history: History, by: string): History => {
  history.oracles.extracted(history.ref(1), by)
  return history
}

const failed = (history = claimed()) => history.run(api, (tx) => tx.cancel(1))
const takenOver = (history = claimed(), by: string = two) => history.wait(3_000).run(by, (tx) => tx.claim(1))
const before = (history: History) => ({ askedAt: history.now - 5 })

const edited = (text: string | null) => {
  const history = planned().run(one, (tx) => tx.settle(1))
  return history.run(api, (tx) => tx.change(20, history.memoryOf(1), text))
}

/** The smallest history that reaches each state. */
const reaching: Readonly<Record<ReachedState, () => History>> = {
  "takeover": () => takenOver(),
  "own lease taken over": () => takenOver(claimed(), one),
  "three holders": () => claimed().run(one, (tx) => tx.release(1)).run(one, (tx) => tx.claim(1))
    .run(one, (tx) => tx.release(1)).run(two, (tx) => tx.claim(1)),
  "takeover of a claim that nobody heard of": () => takenOver(unheard(accepted(), one, "crash_after").run(one, (tx) => tx.claim(1))),
  "late renewal": () => claimed().wait(3_000).run(one, (tx) => tx.renew(1)),
  "dead with a plan": () => dies(planned(), one),
  "dead without a plan": () => dies(claimed(), one),
  "plan of the dead used": () => takenOver(dies(planned(), one)).run(two, (tx) => tx.settle(1)),
  "plan of an earlier claim used": () => takenOver(planned(), one).run(one, (tx) => tx.settle(1)),
  "settled beside a live holder": () => takenOver(planned()).run(two, (tx) => tx.settle(1)),
  "answer for a lost lease": () => answered(woken(takenOver(), one), one),
  "late success after refund refused": () => answered(failed(), one),
  "success after a failure": () => claimed().run(one, (tx) => tx.fail(1, "provider_timeout")).wait(2_000)
    .run(one, (tx) => tx.claim(1)).run(one, (tx) => tx.freeze(1)).run(one, (tx) => tx.settle(1)),
  "429 keeps the attempt": () => claimed().run(one, (tx) => tx.fail(1, "provider_rate_limited")),
  "provider trouble is waited out": () => claimed().run(one, (tx) => tx.fail(1, "provider_unavailable")),
  "invalid output ends it": () => claimed().run(one, (tx) => tx.fail(1, "invalid_output")).wait(2_000)
    .run(one, (tx) => tx.claim(1)).run(one, (tx) => tx.fail(1, "invalid_output")),
  "refused by the model": () => claimed().run(one, (tx) => tx.fail(1, "extraction_refused")),
  "attempts exhausted at claim": () => takenOver().wait(3_000).run(one, (tx) => tx.exhaust(1)),
  "nothing to remember": () => claimed().run(one, (tx) => tx.freeze(1, [])).run(one, (tx) => tx.settle(1)),
  "shutdown gives a lease back": () => claimed().run(one, (tx) => tx.release(1)),
  "cancelled before any claim": () => failed(accepted()),
  "cancelled while running": () => failed(),
  "cancel meets commit": () => {
    const history = planned()
    const askedAt = history.now + 1
    history.run(one, (tx) => tx.settle(1))
    return tell(history, about("Cancel", 1), refused(new WrongState({ state: "succeeded" })), { askedAt })
  },
  "manual retry": () => failed().run(api, (tx) => tx.retry(1)),
  "manual retry with a frozen plan": () => failed(planned()).run(api, (tx) => tx.retry(1)),
  "manual retry stands in line": () => failed().run(api, (tx) => tx.accept(2)).run(api, (tx) => tx.retry(1)),
  "retry refused, the input is gone": () => tell(failed().run(api, (tx) => tx.purge(1)), retry(1), refused(new InputGone())),
  "failed input removed": () => failed().run(api, (tx) => tx.purge(1)),
  "handed over after a failure": () => failed(claimed().run(api, (tx) => tx.accept(2))),
  "several accepted in one commit": () => new History().run(api, (tx) => [1, 2].forEach((n) => tx.accept(n))),
  "several settled in one commit": () => new History().run(api, (tx) => {
    tx.accept(1)
    tx.accept(2, { user: "ben" })
  }).run(api, (tx) => [1, 2].forEach((n) => tx.cancel(n))),
  "update skipped because its target moved": () => met("edited"),
  "change skipped because its target is gone": () => met(null),
  "changed by a plan": () => met(),
  "edited while it waits": () => edited("edited"),
  "deleted while it waits": () => edited(null),
  "projection older than the record skipped": () => {
    const history = edited("edited")
    return history.run(one, (tx) => tx.finish(history.memoryOf(1), 1))
  },
  "projection tried again": () => {
    const history = planned().run(one, (tx) => tx.settle(1))
    return history.run(two, (tx) => tx.edit("projections", [...history.tables.projections.keys()][0]!, { attempts: 2 }))
  },
  "replay of a key while the first accept is uncommitted": () => {
    const history = accepted()
    return tell(history, infer(history, 1), receipt(history, 1, { replayed: true }), before(history))
  },
  "several with one key": () => {
    const history = accepted()
    for (const replayed of [false, true, true]) tell(history, infer(history, 1), receipt(history, 1, { replayed }), before(history))
    return history
  },
  "conflict": () => {
    const history = accepted()
    const question = { _tag: "Infer", keyHash: hashOf(1), commandHash: hashOf(9) } as const
    return tell(history, question, refused(new IdempotencyConflict({ operationId: operationId(1) })))
  },
  "402 then the same key accepted": () => {
    const history = new History().run(api, (tx) => tx.spend())
    const question = { _tag: "Infer", keyHash: hashOf(1), commandHash: hashOf(10) } as const
    tell(history, question, refused(new InsufficientCredit({ required: 2n, available: 0n })))
    history.run(api, (tx) => tx.grant(5n)).run(api, (tx) => tx.accept(1))
    return tell(history, infer(history, 1), receipt(history, 1), before(history))
  },
  "unknown, then found": () => {
    const history = accepted()
    tell(history, infer(history, 1), { _tag: "Unknown" }, before(history))
    return tell(history, infer(history, 1), receipt(history, 1, { replayed: true }))
  },
  "lost acknowledgement then retry finds it done": () => {
    const history = unheard(new History(), api).run(api, (tx) => tx.accept(1))
    return tell(history, infer(history, 1), receipt(history, 1), before(history))
  },
  "settled and never heard of": () => unheard(planned(), one, "in_doubt").run(one, (tx) => tx.settle(1)),
  "commit of the dead": () => {
    const history = dies(planned(), one)
    return history.run(one, (tx) => tx.settle(1), history.now)
  }
}

/** A plan about a memory that is edited, deleted or left alone before it is committed. */
const met = (text?: string | null): History => {
  const history = done()
  const id = history.memoryOf(1)
  history.run(api, (tx) => tx.accept(2)).run(one, (tx) => tx.claim(2))
    .run(one, (tx) => tx.freeze(2, [{ change: "update", text: "new", target: 0 }, add("more")], [id]))
  if (text !== undefined) history.run(api, (tx) => tx.change(20, id, text))
  return history.run(one, (tx) => tx.settle(2))
}

const names = Object.keys(reachedStates) as ReadonlyArray<ReachedState>

describe("a named state", () => {
  for (const name of names) {
    it(`is reached: ${name}`, () => {
      const { oracles } = reaching[name]()
      assert.include(oracles.reached(), name)
      assert.deepStrictEqual(oracles.violations, [])
    })
  }

  it("is reached by nothing that is not it: each is missing from most of the others", () => {
    const reached = names.map((name) => reaching[name]().oracles.reached())
    for (const name of names) {
      const count = reached.filter((states) => states.includes(name)).length
      assert.isBelow(count, names.length / 2, name)
    }
  })

  it("is not reached by a life without trouble", () => {
    assert.deepStrictEqual(done().oracles.reached(), [])
  })

  it("has a sentence and a quota, and there are enough of them", () => {
    assert.isAtLeast(names.length, 25)
    for (const name of names) {
      assert.isAbove(quotas[name], 0)
      assert.match(reachedStates[name], /^[a-z].*[^.]$/)
    }
  })

  it("is told once, in the order of its first time", () => {
    const states = ended(story()).oracles.reached()
    assert.strictEqual(new Set(states).size, states.length)
    assert.isBelow(states.indexOf("several accepted in one commit"), states.indexOf("takeover"))
    assert.include(truth().oracles.reached(), "unknown, then found")
  })
})

describe("abstract states", () => {
  it("are the same whoever is who, and whatever came first", () => {
    const both = (order: ReadonlyArray<number>) => {
      const history = new History()
      for (const n of order) history.run(api, (tx) => tx.accept(n, { user: `user-${n}` }))
      return history.oracles.states().at(-1)
    }
    assert.strictEqual(both([1, 2]), both([2, 1]))
    assert.notStrictEqual(both([1, 2]), both([1]))
  })

  it("are each counted once, and come back when everything is as it was", () => {
    const history = claimed()
    const count = history.oracles.states().length
    history.run(one, (tx) => tx.release(1)).run(one, (tx) => tx.claim(1)).run(one, (tx) => tx.renew(1))
    assert.strictEqual(history.oracles.states().length, count)
    history.run(one, (tx) => tx.freeze(1))
    assert.strictEqual(history.oracles.states().length, count + 1)
  })

  it("tell plans, money, inputs and projections apart", () => {
    const states = [accepted(), claimed(), planned(), failed(), failed(planned()), failed().run(api, (tx) => tx.purge(1)), done()]
    const latest = states.map(({ oracles }) => oracles.states().at(-1))
    assert.strictEqual(new Set(latest).size, states.length)
    const settled = planned().run(one, (tx) => tx.settle(1))
    assert.notInclude(latest, settled.oracles.states().at(-1))
  })
})
