/** What is always true of money: of the authorizations of an operation, and of the account of a workspace. */
import { type Invariant, same, unless } from "./Invariant.ts"
import { type Authorization, conserves, emptyBalances, neverNegative, post } from "./Ledger.ts"
import type { OperationKind } from "./Operation.ts"
import { ofOperation, type OperationSlice, type WorkspaceSlice } from "./Snapshot.ts"

/** Edits and deletions are free; every other kind pays. */
const isPaid = (kind: OperationKind): boolean => kind === "memory.infer" || kind === "memory.add"

const movesOf = ({ charged, reserved, state }: Authorization): ReadonlyArray<string> => {
  const rest = reserved - charged
  if (state === "open") return [`reserve ${reserved}`]
  if (state === "refunded") return [`refund ${reserved}`, `reserve ${reserved}`]
  return [`charge ${charged}`, ...(rest > 0n ? [`release ${rest}`] : []), `reserve ${reserved}`]
}

export const authorizationInvariants: ReadonlyArray<Invariant<OperationSlice>> = [
  {
    name: "money-follows-state",
    promise: "A live operation holds one open authorization, a succeeded one is charged, a failed one is refunded.",
    check: ofOperation((operation, { authorizations }) => {
      if (!isPaid(operation.kind)) {
        return unless(authorizations.length === 0 && operation.authorizationNo === null, "it is free, and authorized")
      }
      const numbered = authorizations.toSorted((a, b) => a.no - b.no)
      const latest = numbered.at(-1)
      const due = operation.state === "succeeded" ? "charged" : operation.state === "failed" ? "refunded" : "open"
      return [
        ...unless(numbered.every(({ no }, index) => no === index + 1), "its authorizations are not numbered from 1"),
        ...unless(latest?.no === operation.authorizationNo, `its latest is not ${operation.authorizationNo}`),
        ...unless(latest?.state === due, `${operation.state}, and its authorization is ${latest?.state ?? "missing"}`),
        ...numbered.slice(0, -1).flatMap(({ no, state }) =>
          unless(state === "refunded", `authorization ${no} was followed by another while ${state}`)
        )
      ]
    })
  },
  {
    name: "charged-by-the-price",
    promise: "A success costs what the price that was in force when it was authorized says, and never more than it held.",
    check: ofOperation(({ outcome }, { authorizations }) =>
      authorizations.flatMap(({ charged, no, price, reserved, state }) => {
        const cost = BigInt(outcome === "no_memory" ? price.noMemory : price.stored)
        const due = cost < reserved ? cost : reserved
        return unless(state !== "charged" || charged === due, `authorization ${no} charged ${charged}, and ${due} are due`)
      })
    )
  },
  {
    name: "authorization-ends-once",
    promise: "An authorization is reserved once and ends in at most one charge or refund, of exactly what it held.",
    check: ({ authorizations, transfers }) => [
      ...authorizations.flatMap((authorization) => {
        const { charged, no, reserved, state } = authorization
        const moves = transfers.filter((transfer) => transfer.authorizationNo === no)
          .map(({ amount, kind }) => `${kind} ${amount}`).toSorted()
        return [
          ...unless(same(moves, movesOf(authorization)), `authorization ${no}, ${state}, moved: ${moves.join(", ")}`),
          ...unless(charged >= 0n && charged <= reserved, `authorization ${no} charged ${charged} of ${reserved}`),
          ...unless(state === "charged" || charged === 0n, `authorization ${no} is ${state}, and charged ${charged}`)
        ]
      }),
      ...transfers.flatMap(({ authorizationNo, kind }) =>
        unless(
          authorizations.some(({ no }) => no === authorizationNo),
          `a ${kind} belongs to authorization ${authorizationNo}, which does not exist`
        )
      )
    ]
  }
]

export const accountInvariants: ReadonlyArray<Invariant<WorkspaceSlice>> = [
  {
    name: "never-overdrawn",
    promise: "No balance is ever negative.",
    check: ({ accounts }) => unless(accounts.every(({ balances }) => neverNegative(balances)), "a balance is negative")
  },
  {
    name: "credits-are-conserved",
    promise: "Every credit ever issued is available, reserved or consumed.",
    check: ({ accounts }) => unless(accounts.every(({ balances }) => conserves(balances)), "the balances do not add up")
  },
  {
    name: "balances-equal-transfers",
    promise: "The balances are what the transfers make of nothing.",
    check: ({ accounts, transfers }) => {
      const made = transfers.reduce(post, emptyBalances)
      const stored = accounts[0]?.balances ?? emptyBalances
      return [
        ...unless(accounts.length <= 1, `there are ${accounts.length} accounts`),
        ...(["issued", "available", "reserved", "consumed"] as const).flatMap((account) =>
          unless(stored[account] === made[account], `${account} is ${stored[account]}, not ${made[account]}`)
        )
      ]
    }
  },
  {
    name: "reserved-equals-holds",
    promise: "What is reserved is what the open authorizations hold.",
    check: ({ accounts, authorizations }) => {
      const held = authorizations.reduce((sum, { reserved, state }) => state === "open" ? sum + reserved : sum, 0n)
      const reserved = accounts[0]?.balances.reserved ?? 0n
      return unless(reserved === held, `${reserved} are reserved, and ${held} are held`)
    }
  }
]
