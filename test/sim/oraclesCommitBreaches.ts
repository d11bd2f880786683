/** Commits that break a promise in the smallest way there is, and the promise that has to notice. */
import { MemoryId, Timestamp } from "../../src/domain/Ids.ts"
import { accepted, api, claimed, done, key, one, planned, settled, two } from "./oraclesStory.ts"
import { History } from "./oraclesHistory.ts"
import { acme, add, hashOf, operationId, other } from "./oraclesRows.ts"
import type { Tx } from "./oraclesTx.ts"

const at = Timestamp.make
const derived = MemoryId.make("018f0000-0000-8000-9000-000000000001")
const projection = (id: MemoryId, version: number) => ({ workspaceId: acme, id, version, attempts: 0, dueAt: 0 })

/** Two of one lane, the first of them claimed. */
const lane = () => new History().run(api, (tx) => [1, 2].forEach((n) => tx.accept(n))).run(one, (tx) => tx.claim(1))

/** One memory, projected, and what happens to it. */
const memory = (happens: (tx: Tx, id: ReturnType<History["memoryOf"]>) => void) => {
  const history = done()
  return history.run(one, (tx) => happens(tx, history.memoryOf(1)))
}

/** Four claims of one process pass by an operation of another workspace that is before theirs. */
export const passing = (history: History) => {
  history.run(api, (tx) => tx.accept(1, { workspaceId: other }))
  for (let n = 2; n < 8; n++) history.run(api, (tx) => tx.accept(n, { user: `user-${n}` }))
  for (let n = 3; n < 7; n++) history.run(one, (tx) => tx.claim(n))
  return history
}

/** Work comes again while the one process is still in an attempt of it that was cancelled: it has no hand free. */
export const busy = () => {
  const history = done(new History().wait(30_000))
  history.run(api, (tx) => tx.accept(2)).run(one, (tx) => tx.claim(2))
  history.oracles.extracting(history.ref(2), one)
  history.run(api, (tx) => tx.cancel(2)).run(api, (tx) => tx.retry(2)).wait(1_500)
  history.oracles.extractionOver(history.ref(2), one)
  return history.run(one, (tx) => tx.claim(2))
}

export const commitBreaches: ReadonlyArray<readonly [breaks: string, history: () => History]> = [
  // Of the domain, on what a commit touched.
  ["nothing-without-its-operation", () => accepted().run(api, (tx) => tx.put("keys", { ...tx.get("keys", `${acme}/${hashOf(1)}`)!, keyHash: hashOf(9), operationId: operationId(9) }))],
  ["records-equal-results", () => settled((tx) => tx.bend(1, { results: [] }))],
  ["ids-are-derived", () => settled((tx) => tx.bend(1, { results: [{ ...tx.operation(1).results[0]!, id: derived }] }))],
  ["lease-follows-state", () => claimed().run(one, (tx) => tx.bend(1, { leaseOwner: null }))],
  ["terminal-is-finished", () => settled((tx) => tx.bend(1, { completedAt: null }))],
  ["success-is-redacted", () => settled((tx) => tx.forget("inputs"))],
  ["success-is-redacted", () => settled((tx) => tx.forget("plans"))],
  ["attempts-are-claims", () => accepted().run(one, (tx) => tx.bend(1, { attempts: 3 }))],
  ["waits-for-what-may-pass", () => claimed().run(one, (tx) => {
    tx.fail(1, "provider_timeout")
    tx.bend(1, { failure: "extraction_refused" })
  })],
  ["charged-by-the-price", () => settled((tx) => tx.edit("authorizations", `${key(1)}/1`, { charged: 1n }))],
  ["money-follows-state", () => settled((tx) => tx.forget("authorizations"))],
  ["money-follows-state", () => claimed().run(api, (tx) => tx.edit("authorizations", `${key(1)}/1`, { state: "refunded" }))],
  ["authorization-ends-once", () => settled((tx) => tx.forget("transfers"))],
  ["one-head", () => lane().run(one, (tx) => tx.bend(2, { ready: true }))],
  ["one-runner", () => lane().run(one, (tx) => {
    tx.bend(2, { ready: true })
    tx.claim(2)
  })],
  ["one-operation-per-key", () => accepted().run(api, (tx) => {
    tx.accept(2)
    tx.put("keys", { ...tx.get("keys", `${acme}/${hashOf(2)}`)!, commandVersion: 2 })
    tx.again("keys", `${acme}/${hashOf(2)}`)
  })],
  ["never-overdrawn", () => new History().run(api, (tx) => tx.grant(-200n))],
  ["credits-are-conserved", () => accepted().run(api, (tx) => tx.drain("available", 1n))],
  ["balances-equal-transfers", () => settled((tx) => tx.forget("accounts"))],
  ["reserved-equals-holds", () => accepted().run(api, (tx) => tx.edit("authorizations", `${key(1)}/1`, { reserved: 3n }))],
  ["nothing-without-its-memory", () => settled((tx) => tx.forget("memories"))],
  ["versions-are-contiguous", () => memory((tx, id) => {
    tx.change(20, id, "edited")
    tx.drop("history", `${acme}/${id}/1`)
  })],
  ["record-equals-history", () => memory((tx, id) => {
    tx.change(20, id, "edited")
    tx.edit("memories", `${acme}/${id}`, { text: "another" })
  })],
  ["deleted-is-forgotten", () => memory((tx, id) => {
    tx.change(20, id, null)
    tx.edit("history", `${acme}/${id}/1`, { text: "kept" })
  })],
  ["projection-never-ahead", () => memory((tx, id) => tx.edit("vectors", `${acme}/${id}`, { version: 2 }))],
  ["projected-or-waiting", () => memory((tx, id) => tx.drop("vectors", `${acme}/${id}`))],
  // Of the domain, on two moments of one row.
  ["terminal-is-absorbing", () => done().run(one, (tx) => tx.bend(1, { outcome: "no_memory" }))],
  ["epoch-never-returns", () => claimed().run(one, (tx) => tx.bend(1, { epoch: 0, attempts: 0 }))],
  ["one-holder-per-epoch", () => claimed().run(one, (tx) => tx.bend(1, { leaseOwner: "another" }))],
  ["attempts-are-counted-by-claims", () => claimed().run(one, (tx) => tx.bend(1, { attempts: 2 }))],
  ["identity-is-fixed", () => claimed().run(one, (tx) => tx.bend(1, { scope: { user_id: "eve" } }))],
  ["version-never-returns", () => memory((tx, id) => tx.edit("memories", `${acme}/${id}`, { text: "in place" }))],
  ["deletion-is-final", () => memory((tx, id) => tx.change(20, id, null)).run(one, (tx) => {
    const [id] = [...tx.history.tables.memories.values()].map((row) => row.id)
    tx.edit("memories", `${acme}/${id}`, { deleted: false, text: "back", version: 3 })
  })],
  // Who writes, until when, how often.
  ["only-the-holder-writes", () => planned().run(two, (tx) => tx.settle(1))],
  ["only-the-holder-writes", () => claimed().run(two, (tx) => tx.fail(1, "provider_timeout"))],
  ["only-the-holder-writes", () => claimed().run(two, (tx) => tx.renew(1))],
  ["only-the-holder-writes", () => claimed().run("worker-1#2", (tx) => tx.release(1))],
  ["frozen-by-the-holder", () => claimed().run(two, (tx) => tx.freeze(1))],
  ["frozen-by-the-holder", () => claimed().run(one, (tx) => tx.release(1)).run(one, (tx) => tx.freeze(1))],
  ["a-claim-is-one-epoch", () => accepted().run(one, (tx) => {
    tx.claim(1)
    tx.bend(1, { epoch: 2 })
  })],
  ["a-claim-is-one-epoch", () => claimed().run(one, (tx) => tx.fail(1, "provider_timeout")).run(one, (tx) => {
    tx.bend(1, { nextAttemptAt: null })
    tx.claim(1)
  })],
  ["one-holder-in-database-time", () => claimed().run(two, (tx) => tx.steal(1))],
  ["one-holder-in-database-time", () => claimed().run(one, (tx) => tx.fail(1, "provider_timeout")).wait(60_000)
    .run(one, (tx) => tx.claim(1)).run(two, (tx) => {
      tx.bend(1, { leaseExpiresAt: at(0) })
      tx.exhaust(1)
    })],
  ["leases-by-the-database-clock", () => claimed().run(one, (tx) => tx.bend(1, { leaseExpiresAt: at(tx.now + 2_001) }))],
  ["attempts-are-exact", () => claimed().run(one, (tx) => {
    tx.fail(1, "provider_rate_limited")
    tx.bend(1, { attempts: 1 })
  })],
  ["attempts-are-exact", () => claimed().run(one, (tx) => {
    tx.fail(1, "provider_timeout")
    tx.bend(1, { attempts: 0 })
  })],
  ["attempts-are-exact", () => claimed().run(one, (tx) => {
    tx.fail(1, "invalid_output")
    tx.bend(1, { invalidOutputs: 0 })
  })],
  ["hints-are-heard", () => done(new History().wait(30_000)).run(api, (tx) => tx.accept(2)).wait(2_000).run(one, (tx) => tx.claim(2))],
  ["attempts-are-exact", () => accepted().run(one, (tx) => {
    tx.claim(1)
    tx.bend(1, { attempts: 0 })
  })],
  ["attempts-are-capped", () => claimed().run(one, (tx) => {
    tx.fail(1, "invalid_output")
    tx.bend(1, { invalidOutputs: 2 })
  })],
  ["attempts-are-capped", () => claimed().run(one, (tx) => {
    tx.fail(1, "provider_timeout")
    tx.bend(1, { nextAttemptAt: at(tx.now + 100_000_000) })
  })],
  ["attempts-are-capped", () => claimed().wait(3_000).run(two, (tx) => {
    tx.bend(1, { attempts: 2, epoch: 2 })
    tx.exhaust(1)
  })],
  ["attempts-are-capped", () => claimed().run(one, (tx) => {
    tx.fail(1, "extraction_refused")
    tx.bend(1, { failure: "provider_timeout" })
  })],
  ["attempts-are-capped", () => claimed().run(one, (tx) => {
    tx.fail(1, "extraction_refused")
    tx.bend(1, { failure: "invalid_output" })
  })],
  ["attempts-are-capped", () => claimed().run(one, (tx) => {
    tx.fail(1, "provider_rate_limited")
    tx.bend(1, { windowStartedAt: at(0), startedAt: at(0), nextAttemptAt: at(tx.now + 3_000_000) })
  })],
  // Lanes and the fair queue.
  ["lane-order", () => new History().run(api, (tx) => tx.accept(2)).run(api, (tx) => {
    tx.accept(1)
    tx.bend(1, { seq: 0 })
  })],
  ["lane-order", () => {
    const history = lane().run(one, (tx) => tx.freeze(1))
    return history.run(one, (tx) => {
      tx.settle(1)
      tx.bend(2, { seq: 1 })
    })
  }],
  ["lane-has-its-head", () => lane().run(one, (tx) => tx.freeze(1)).run(one, (tx) => {
    tx.settle(1)
    tx.bend(2, { ready: false })
  })],
  ["tags-are-fair", () => new History().run(api, (tx) => {
    tx.accept(1)
    tx.bend(1, { fairTag: 5 })
  })],
  ["tags-are-fair", () => done().run(api, (tx) => {
    tx.accept(2)
    tx.bend(2, { fairTag: 0 })
  })],
  ["tags-are-fair", () => new History().run(api, (tx) => {
    tx.accept(1)
    tx.edit("accounts", acme, { fairTime: 0 })
  })],
  ["handed-anew", () => lane().run(one, (tx) => tx.freeze(1)).run(one, (tx) => {
    tx.settle(1)
    tx.bend(2, { fairTag: 0 })
  })],
  ["handed-anew", () => lane().run(one, (tx) => tx.freeze(1)).run(one, (tx) => {
    tx.settle(1)
    tx.bend(2, { fairTag: 9 })
  })],
  // Somebody else was served meanwhile, far ahead: it may not go on where it once stood.
  ["handed-anew", () => {
    return lane().run(api, (tx) => tx.accept(3, { user: "bob" })).run(one, (tx) => tx.claim(3))
      .run(one, (tx) => tx.renew(1)).run(one, (tx) => tx.freeze(1)).run(one, (tx) => {
        tx.settle(1)
        tx.bend(2, { fairTag: 2 })
      })
  }],
  ["clock-follows-the-served", () => done().run(api, (tx) => tx.accept(2)).run(one, (tx) => {
    tx.claim(2)
    tx.forget("fairClock")
  })],
  ["nobody-is-overtaken", () => passing(new History({ locked: () => false }))],
  // The index.
  ["projected-from-the-start", () => settled((tx) => tx.forget("projections"))],
  ["projected-from-the-start", () => memory((tx, id) => tx.put("projections", { ...projection(id, 1), operationId: operationId(1) }))],
  ["vector-never-returns", () => memory((tx, id) => tx.edit("vectors", `${acme}/${id}`, { version: 0 }))],
  ["vector-never-returns", () => {
    const history = memory((tx, id) => tx.change(20, id, null))
    const id = history.memoryOf(1)
    return history.run(one, (tx) => tx.index(id)).run(one, (tx) => tx.edit("vectors", `${acme}/${id}`, { deleted: false }))
  }],
  ["finished-when-there", () => memory((tx, id) => tx.change(20, id, "edited"))
    .run(one, (tx) => [...tx.history.tables.projections.values()].forEach(({ id, version }) => tx.finish(id, version)))],
  ["vector-is-of-its-text", () => done(new History({ vectorOf: () => Float32Array.of(0, 1) }))],
  ["made-up-is-not-stored", () => new History({ neverStored: ["made up"] }).run(api, (tx) => tx.accept(1))
    .run(one, (tx) => tx.claim(1)).run(one, (tx) => tx.freeze(1, [add("it is made up")]))],
  // Processes, and the history of commits itself.
  ["the-dead-write-nothing", () => {
    const history = accepted()
    history.oracles.died(one, history.now)
    return history.run(one, (tx) => tx.claim(1), history.now + 1)
  }],
  ["commits-tell-everything", () => {
    const history = accepted()
    history.tables.operations.set(key(1), { ...history.operation(1) })
    return history.run(one, (tx) => tx.claim(1))
  }],
  ["commits-tell-everything", () => {
    const history = accepted()
    history.tables.keys.clear()
    return history.run(one, (tx) => tx.claim(1))
  }],
  ["found-on-the-way", () => {
    const history = accepted()
    history.tables.accounts.clear()
    return history.run(one, (tx) => tx.claim(1))
  }],
  ["input-is-nowhere-else", () => new History({ canaries: ["canary 1", "canary 2"] }).run(api, (tx) => {
    tx.accept(1)
    tx.bend(1, { scope: { user_id: "says canary 1" } })
  })]
]
