/** A history in which everything happens that may, and the beginnings that others go on from. */
import { History } from "./oraclesHistory.ts"
import { acme, add, operationId, other } from "./oraclesRows.ts"
import { change, tell } from "./oraclesTelling.ts"
import type { Tx } from "./oraclesTx.ts"

export const [api, one, two] = ["api-1#1", "worker-1#1", "worker-2#1"] as const

/** An operation that was accepted, claimed, planned, settled and projected. */
export const done = (history = new History(), n = 1): History => {
  history
    .run(api, (tx) => tx.accept(n))
    .run(one, (tx) => tx.claim(n))
    .run(one, (tx) => tx.freeze(n))
    .run(one, (tx) => tx.settle(n))
  const id = history.memoryOf(n)
  return history.run(two, (tx) => tx.index(id)).run(two, (tx) => tx.finish(id, 1))
}

export const accepted = () => new History().run(api, (tx) => tx.accept(1))
export const claimed = () => accepted().run(one, (tx) => tx.claim(1))
export const planned = () => claimed().run(one, (tx) => tx.freeze(1))

/** The name of its row. */
export const key = (n: number) => `${acme}/${operationId(n)}`

/** An operation that succeeds, and something with it. */
export const settled = (tamper: (tx: Tx) => void, history = planned()) =>
  history.run(one, (tx) => {
    tx.settle(1)
    tamper(tx)
  })

/** Everything that may happen to operations and memories, all of it true. */
export const story = (): History => {
  const history = done()
  const first = history.memoryOf(1)
  history
    // Two in one lane, one elsewhere, in one commit. The second of the lane waits.
    .run(api, (tx) => [2, 3].forEach((n) => tx.accept(n)))
    .run(api, (tx) => tx.accept(4, { user: "ben" }))
    .run(api, (tx) => tx.accept(5, { workspaceId: other }))
    .run(one, (tx) => [2, 4].forEach((n) => tx.claim(n)))
    .run(one, (tx) => tx.freeze(2, [{ change: "update", text: "new", target: 0 }, add("more")], [first]))
    // An edit comes first: the plan leaves that memory alone.
    .run(api, (tx) => tx.change(20, first, "edited"))
    .run(one, (tx) => tx.renew(2))
    // Its worker stands still, and another takes over with the same plan.
    .wait(3_000)
    .run(two, (tx) => [2, 4].forEach((n) => tx.claim(n)))
    .run(two, (tx) => tx.settle(2))
    .run(two, (tx) => tx.claim(3))
    .run(two, (tx) => tx.fail(3, "provider_rate_limited"))
    .wait(2_000)
    .run(two, (tx) => tx.claim(3))
    .run(two, (tx) => tx.release(3))
    .run(api, (tx) => tx.cancel(3))
    // The lease of the last attempt runs out: whoever finds it ends it.
    .wait(3_000)
    .run(one, (tx) => tx.exhaust(4))
    .run(one, (tx) => tx.claim(5))
    .run(one, (tx) => tx.fail(5, "extraction_refused"))
  history
    .run(api, (tx) => tx.retry(3))
    .run(two, (tx) => tx.claim(3))
    .run(two, (tx) => tx.freeze(3, []))
    .run(two, (tx) => tx.settle(3))
    .run(api, (tx) => tx.purge(4))
    .run(api, (tx) => tx.change(21, history.memoryOf(2, 1), null))
  return history
}

/** Brings everything in the story to its end. */
export const ended = (history: History): History => {
  const first = history.memoryOf(1)
  const gone = history.memoryOf(2, 1)
  // Whoever edited and deleted has never heard how that went.
  tell(history, change("Update", first), { _tag: "Unknown" })
  tell(history, change("Delete", gone), { _tag: "Unknown" })
  return history
    .run(one, (tx) => tx.finish(first, 1))
    .run(one, (tx) => tx.index(first))
    .run(one, (tx) => tx.finish(first, 2))
    .run(one, (tx) => tx.index(gone))
    .run(one, (tx) => [1, 2].forEach((version) => tx.finish(gone, version)))
}
