/** Plans, records and whatever commits together, broken in the smallest way there is; and the promise that has to notice. */
import type { TransferRow } from "../../src/domain/Ledger.ts"
import type { Plan } from "../../src/domain/Plan.ts"
import { History } from "./oraclesHistory.ts"
import { acme, add, hashOf, operationId } from "./oraclesRows.ts"
import { accepted, api, claimed, done, key, one, planned, settled } from "./oraclesStory.ts"
import type { Tx } from "./oraclesTx.ts"

const nothing = { messages: [], metadata: {}, eventDate: null, instructions: null }

/** One operation of one plan step about the memory of another. */
const about = (change: "update" | "delete") => {
  const history = done()
  const id = history.memoryOf(1)
  const facts = [{ change, text: "new", target: 0 }] as const
  return {
    id,
    history: history.run(api, (tx) => tx.accept(2)).run(one, (tx) => tx.claim(2)).run(one, (tx) => tx.freeze(2, facts, [id]))
  }
}

/** A plan that is not of its input. */
const frozen = (change: Partial<Plan>) =>
  claimed().run(one, (tx) => {
    tx.freeze(1)
    tx.edit("plans", key(1), { plan: { ...tx.get("plans", key(1))!.plan, ...change } })
  })

/** The memory that the first operation added. */
const added = (tx: Tx) => tx.operation(1).results[0]!.id!

export const planBreaches: ReadonlyArray<readonly [breaks: string, history: () => History]> = [
  // Plans and records.
  ["plan-is-set-once", () => planned().run(one, (tx) => tx.freeze(1, [add("another")]))],
  ["plan-is-set-once", () => planned().run(api, (tx) => tx.cancel(1)).run(api, (tx) => tx.purge(1))
    .run(api, (tx) => tx.retry(1)).run(one, (tx) => tx.claim(1)).run(one, (tx) => tx.freeze(1))],
  ["nothing-before-its-plan", () => claimed().run(one, (tx) => {
    tx.freeze(1)
    tx.settle(1)
  })],
  ["nothing-before-its-plan", () => settled((tx) => tx.bend(1, { evidence: { ...tx.operation(1).evidence, planDigest: hashOf(7) } }))],
  ["nothing-before-its-plan", () => settled((tx) => tx.bend(1, { evidence: { ...tx.operation(1).evidence, stored: 2 } }))],
  ["records-equal-the-plan", () => settled((tx) => {
    const { id } = tx.operation(1).results[0]!
    tx.edit("memories", `${acme}/${id}`, { text: "another" })
    tx.edit("history", `${acme}/${id}/1`, { text: "another" })
  })],
  ["records-equal-the-plan", () => {
    const { history, id } = about("update")
    return history.run(one, (tx) => {
      tx.settle(2)
      for (const table of ["memories", "history", "projections"] as const) tx.forget(table)
      tx.bend(2, { results: [{ id, change: "none", version: null, reason: "target_changed" }], outcome: "no_memory" })
    })
  }],
  ["records-equal-the-plan", () => {
    const { history, id } = about("delete")
    return history.run(one, (tx) => {
      tx.settle(2)
      for (const table of ["memories", "history", "projections"] as const) tx.forget(table)
      tx.bend(2, { results: [{ id, change: "none", version: null, reason: "target_gone" }], outcome: "no_memory" })
    })
  }],
  ["plan-is-of-its-input", () => frozen({ metadata: { of: "another" } })],
  ["plan-is-of-its-input", () => frozen({ eventDate: "2025-01-01T00:00:00.000Z" })],
  ["plan-is-of-its-input", () => frozen({ scope: { user_id: "ada", run_id: "run" } })],
  ["records-equal-the-plan", () => settled((tx) => tx.edit("memories", `${acme}/${added(tx)}`, { metadata: { of: "another" } }))],
  ["records-equal-the-plan", () => settled((tx) => tx.edit("memories", `${acme}/${added(tx)}`, { eventDate: "2025-01-01" }))],
  ["records-equal-the-plan", () => {
    const { history, id } = about("update")
    return history.run(one, (tx) => {
      tx.settle(2)
      tx.edit("memories", `${acme}/${id}`, { metadata: { of: "another" } })
    })
  }],
  ["kept-for-its-time", () => claimed().run(api, (tx) => tx.cancel(1)).run(one, (tx) => tx.purge(1))],
  ["kept-while-needed", () => claimed().run(api, (tx) => tx.drop("inputs", key(1)))],
  ["kept-while-needed", () => claimed().run(api, (tx) => {
    tx.cancel(1)
    tx.purge(1)
  })],
  ["own-scope-only", () => settled((tx) => {
    tx.edit("memories", `${acme}/${tx.operation(1).results[0]!.id}`, { scope: { user_id: "ada", agent_id: "other" } })
  })],
  ["kept-while-needed", () => planned().run(api, (tx) => tx.drop("plans", key(1)))],
  ["kept-while-needed", () => claimed().run(api, (tx) => tx.drop("inputs", key(1))).run(api, (tx) => tx.accept(1))],
  // What commits together.
  ["accept-is-one-commit", () => new History().run(api, (tx) => {
    tx.accept(1)
    tx.forget("inputs")
  })],
  ["accept-is-one-commit", () => new History().run(api, (tx) => {
    tx.accept(1)
    tx.forget("keys")
  })],
  ["accept-is-one-commit", () => new History().run(api, (tx) => {
    tx.accept(1)
    tx.forget("transfers")
  })],
  ["accept-is-one-commit", () => claimed().run(api, (tx) =>
    tx.put("keys", { ...tx.get("keys", `${acme}/${hashOf(1)}`)!, keyHash: hashOf(9) }))],
  ["accept-is-one-commit", () => accepted().run(api, (tx) => tx.cancel(1)).run(api, (tx) => tx.purge(1)).run(api, (tx) => tx.retry(1))],
  ["accept-is-one-commit", () => done().run(api, (tx) => tx.put("inputs", { workspaceId: acme, id: operationId(1), input: nothing }))],
  ["end-is-one-commit", () => settled((tx) => tx.forget("outbox"))],
  ["end-is-one-commit", () => settled((tx) => tx.forget("transfers"))],
  ["end-is-one-commit", () => settled((tx) => tx.forget("history"))],
  ["end-is-one-commit", () => claimed().run(api, (tx) => tx.refund(1))],
  ["money-moves-in-order", () => settled((tx) => {
    const charge = [...tx.changes()].find(({ after, table }) => table === "transfers" && (after as TransferRow).kind === "charge")!
    tx.drop("transfers", charge.key)
    tx.put("transfers", { ...charge.after as TransferRow, seq: 0n })
  })],
  ["accepted-is-kept", () => done().run(api, (tx) => tx.drop("operations", key(1)))],
  ["accepted-is-kept", () => done().run(api, (tx) => tx.drop("keys", `${acme}/${hashOf(1)}`))]
]
