/** What is always true of a row seen twice, however much happened in between. */
import canonicalize from "canonicalize"
import { type Invariant, same, unless } from "./Invariant.ts"
import type { Memory } from "./Memory.ts"
import { isTerminal, type Operation } from "./Operation.ts"
import { scopeKeys } from "./Scope.ts"

/** One row at two moments. */
export interface Transition<Row> {
  readonly before: Row
  readonly after: Row
}

const isReopened = ({ after, before }: Transition<Operation>): boolean =>
  before.state === "failed" && (after.authorizationNo ?? 0) > (before.authorizationNo ?? 0)

export const operationTransitions: ReadonlyArray<Invariant<Transition<Operation>>> = [
  {
    name: "terminal-is-absorbing",
    promise: "A terminal operation never changes, but for a failed one that a manual retry authorized anew.",
    check: ({ after, before }) =>
      unless(
        !isTerminal(before.state) || isReopened({ before, after }) || canonicalize(before) === canonicalize(after),
        `it was ${before.state}, and changed to ${after.state}`
      )
  },
  {
    name: "epoch-never-returns",
    promise: "The epoch of an operation, the number of its authorization and its place in its lane never decrease.",
    check: ({ after, before }) => [
      ...unless(after.epoch >= before.epoch, `its epoch went from ${before.epoch} to ${after.epoch}`),
      ...unless(
        (after.authorizationNo ?? 0) >= (before.authorizationNo ?? 0),
        `its authorization went from ${before.authorizationNo} to ${after.authorizationNo}`
      ),
      ...unless(after.seq >= before.seq, `its place went from ${before.seq} to ${after.seq}`)
    ]
  },
  {
    name: "one-holder-per-epoch",
    promise: "Within one epoch an operation has one holder, and a claim is what begins another.",
    check: ({ after, before }) => {
      if (after.epoch !== before.epoch || after.state !== "running") return []
      return [
        ...unless(before.state === "running", `it went from ${before.state} to running without a claim`),
        ...unless(before.leaseOwner === after.leaseOwner, "its holder changed without a claim")
      ]
    }
  },
  {
    name: "attempts-are-counted-by-claims",
    promise: "Attempts grow by claims alone.",
    check: ({ after, before }) =>
      unless(
        after.attempts - before.attempts <= after.epoch - before.epoch,
        `${before.attempts} attempts became ${after.attempts} in ${after.epoch - before.epoch} claims`
      )
  },
  {
    name: "identity-is-fixed",
    promise: "What an operation is, whose it is and what it was asked never change.",
    check: ({ after, before }) =>
      unless(same(identity(before), identity(after)), "it became another operation")
  }
]

const identity = ({ createdAt, evidence, id, kind, lane, scope, workspaceId }: Operation): ReadonlyArray<string> => [
  workspaceId,
  id,
  kind,
  lane,
  ...scopeKeys.map((key) => scope[key] ?? ""),
  evidence.commandHash,
  `${evidence.commandVersion} ${createdAt}`
]

export const memoryTransitions: ReadonlyArray<Invariant<Transition<Memory>>> = [
  {
    name: "version-never-returns",
    promise: "The version of a memory never decreases, and a memory that is unchanged has its version unchanged.",
    check: ({ after, before }) => [
      ...unless(after.version >= before.version, `its version went from ${before.version} to ${after.version}`),
      ...unless(
        after.version !== before.version || canonicalize(before) === canonicalize(after),
        `version ${after.version} changed in place`
      )
    ]
  },
  {
    name: "deletion-is-final",
    promise: "A deleted memory never returns.",
    check: ({ after, before }) => unless(!before.deleted || after.deleted, `it is back, at version ${after.version}`)
  }
]
