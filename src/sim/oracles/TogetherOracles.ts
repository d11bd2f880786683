/** What commits together: acceptance with its key and its reserve, an end with its money, its records and its news. */
import type { Invariant } from "../../domain/Invariant.ts"
import type { OperationKind } from "../../domain/Operation.ts"
import { fine } from "./Oracle.ts"
import { did, type OperationTrack } from "./OperationTrack.ts"

type OperationOracle = Invariant<OperationTrack>

const isPaid = (kind: OperationKind): boolean => kind === "memory.infer" || kind === "memory.add"

/** What is missing of these, and which of those are there that should not be. */
const compare = (done: number, due: number, of: ReadonlyArray<readonly [bit: number, name: string]>, when: string) => {
  const problems: Array<string> = []
  for (const [bit, name] of of) {
    const [is, should] = [(done & bit) !== 0, (due & bit) !== 0]
    if (is && !should) problems.push(`${name} in a commit in which it was not ${when}`)
    if (should && !is) problems.push(`${when} without ${name}`)
  }
  return problems
}

const acceptParts = [[did.authorized, "an authorization"], [did.reserved, "a reserve"], [did.gaveInput, "an input"]] as const

const acceptIsOneCommit: OperationOracle = {
  name: "accept-is-one-commit",
  promise: "An operation is accepted, or retried by hand, in the commit that reserves for it and keeps its input and its key.",
  check: (track) => {
    const { before, keys, operation, reopened } = track
    if (operation === null || track.did === 0 && operation === before) return fine
    const born = before === null
    let due = 0
    if ((born || reopened) && isPaid(operation.kind)) due |= did.authorized | did.reserved
    if (born && operation.kind === "memory.infer") due |= did.gaveInput
    const problems = compare(track.did, due, acceptParts, "accepted")
    if (born && operation.kind === "memory.infer" && keys.length !== 1) problems.push(`accepted with ${keys.length} keys`)
    // Whatever has deleted a memory gets the keys of those who want that too.
    const mayBeKeyed = born || reopened || operation.state === "succeeded"
    if ((track.did & did.keyed) !== 0 && !mayBeKeyed) problems.push("a key in a commit in which it was not accepted")
    if (reopened && !track.hasInput) problems.push("retried, and its input is gone")
    return problems
  }
}

const endParts = [
  [did.charged, "a charge"],
  [did.refunded, "a refund"],
  [did.announced, "an announcement"]
] as const

const endIsOneCommit: OperationOracle = {
  name: "end-is-one-commit",
  promise: "An operation ends in the commit that charges or refunds it, stores its versions and announces its end.",
  check: (track) => {
    const { ended, operation } = track
    if (operation === null || (track.did === 0 && !ended)) return fine
    let due = 0
    if (ended) due |= did.announced
    if (ended && isPaid(operation.kind)) due |= operation.state === "succeeded" ? did.charged : did.refunded
    if (ended && operation.outcome === "stored") due |= did.recorded
    const problems = compare(track.did, due, [...endParts, [did.recorded, "a version"]], "ended")
    if (ended && track.announced !== null && track.announced !== operation.state) {
      problems.push(`${operation.state}, and announced as ${track.announced}`)
    }
    return problems
  }
}

const moneyMovesInOrder: OperationOracle = {
  name: "money-moves-in-order",
  promise: "The ledger tells of each authorization how it was reserved, and after that how it ended.",
  check: ({ did: done, transfers }) => {
    if ((done & (did.charged | did.refunded)) === 0) return fine
    const begun = new Set<number | null>()
    return transfers.toSorted((a, b) => a.seq < b.seq ? -1 : 1).flatMap(({ authorizationNo, kind }) => {
      if (kind === "reserve") begun.add(authorizationNo)
      return begun.has(authorizationNo) ? fine : [`a ${kind} of authorization ${authorizationNo} came before its reserve`]
    })
  }
}

const acceptedIsKept: OperationOracle = {
  name: "accepted-is-kept",
  promise: "An operation, and each of its keys, stays for good.",
  check: (track) => {
    const problems: Array<string> = []
    if (track.before !== null && track.operation === null) problems.push("it was removed")
    if ((track.did & did.unkeyed) !== 0) problems.push("a key of it was removed or changed")
    return problems
  }
}

export const togetherOracles: ReadonlyArray<OperationOracle> = [acceptIsOneCommit, endIsOneCommit, moneyMovesInOrder, acceptedIsKept]
