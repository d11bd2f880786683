/**
 * Accepts inferred adds in group commits. A batch locks its lanes, then its accounts, and only then looks at keys: so
 * two callers with one key can never both be first, and nothing is reserved for a replay, a conflict or an empty purse.
 */
import { Effect, Result } from "effect"
import { type AddCommand, commandHash, commandVersion } from "../domain/Command.ts"
import { startTags } from "../domain/Fairness.ts"
import { type LaneRef, type OperationId, type Sha256Hex, Timestamp, type WorkspaceId } from "../domain/Ids.ts"
import * as Money from "../domain/Ledger.ts"
import type { Evidence, Operation } from "../domain/Operation.ts"
import { IdempotencyConflict, InsufficientCredit } from "../domain/Refusal.ts"
import { laneOf } from "../domain/Scope.ts"
import type { Ledger } from "./Ledger.ts"
import type { KeyRow, NewOperation, OperationStore } from "./OperationStore.ts"
import type { OutcomeUnknown, Transaction } from "./Transaction.ts"

/** A command on its way in. Its operation id is chosen before the first try, so that a repeat is the same operation. */
export interface Candidate {
  readonly workspaceId: WorkspaceId
  readonly operationId: OperationId
  readonly keyHash: Sha256Hex
  readonly command: AddCommand
  readonly evidence: Evidence
  readonly price: Money.Price
}

/** `Accepted` for the first use of a key; `Replayed` names the operation that the key made. */
export type Accepted =
  | { readonly _tag: "Accepted"; readonly operation: Operation; readonly reserved: bigint }
  | { readonly _tag: "Replayed"; readonly operationId: OperationId }

export type Answer = Result.Result<Accepted, IdempotencyConflict | InsufficientCredit>

/** Whether a stored key names this command. A hash that this release cannot compute anew never matches. */
export const sameCommand = (stored: KeyRow, command: Parameters<typeof commandHash>[0]): boolean =>
  commandHash(command, stored.commandVersion) === stored.commandHash

/** What a repeat of a key gets: the original operation, or the conflict. */
export const replay = (
  stored: KeyRow,
  command: Parameters<typeof commandHash>[0]
): Result.Result<OperationId, IdempotencyConflict> =>
  sameCommand(stored, command)
    ? Result.succeed(stored.operationId)
    : Result.fail(new IdempotencyConflict({ operationId: stored.operationId }))

const keyOf = (row: { readonly workspaceId: WorkspaceId; readonly keyHash: Sha256Hex }) =>
  `${row.workspaceId}/${row.keyHash}`

const laneKey = (lane: LaneRef) => `${lane.workspaceId}/${lane.lane}`

const reservation = (price: Money.Price): bigint => BigInt(Math.max(price.stored, price.noMemory))

/** What one batch decides, before anything is written. */
interface Ruling {
  readonly answers: ReadonlyArray<Answer>
  readonly rows: ReadonlyArray<NewOperation>
  readonly authorizations: ReadonlyArray<Money.Authorization>
  readonly transfers: ReadonlyArray<Money.Transfer>
  readonly fairTimes: ReadonlyArray<{ readonly workspaceId: WorkspaceId; readonly fairTime: number }>
}

interface Facts {
  readonly keys: ReadonlyArray<KeyRow>
  readonly accounts: ReadonlyArray<{ readonly workspaceId: WorkspaceId; readonly balances: Money.Balances; readonly fairTime: number }>
  readonly occupied: ReadonlyArray<LaneRef>
  readonly clock: number
  readonly now: number
}

/** Decides a batch in the order of its candidates: a later one sees the keys, the credit and the lanes of earlier ones. */
export const rule = (candidates: ReadonlyArray<Candidate>, facts: Facts): Ruling => {
  const keys = new Map(facts.keys.map((row) => [keyOf(row), row]))
  const accounts = new Map(facts.accounts.map((account) => [account.workspaceId, account]))
  const occupied = new Set(facts.occupied.map(laneKey))
  const rows: Array<NewOperation> = []
  const grants: Array<ReturnType<typeof Money.reserve>> = []
  const answers = candidates.map((candidate): Answer => {
    const stored = keys.get(keyOf(candidate))
    if (stored !== undefined) {
      return Result.map(replay(stored, candidate.command), (operationId) => ({ _tag: "Replayed", operationId }))
    }
    const account = accounts.get(candidate.workspaceId)
    const amount = reservation(candidate.price)
    if (account === undefined || !Money.canReserve(account.balances, amount)) {
      const available = account?.balances.available ?? 0n
      return Result.fail(new InsufficientCredit({ required: amount, available }))
    }
    const { tags, workspaceTime } = startTags(facts.clock, account.fairTime, 1)
    const lane = { workspaceId: candidate.workspaceId, lane: laneOf(candidate.command.scope) }
    const ready = !occupied.has(laneKey(lane))
    occupied.add(laneKey(lane))
    const grant = Money.reserve({
      workspaceId: candidate.workspaceId,
      operationId: candidate.operationId,
      no: 1,
      reserved: amount,
      price: candidate.price
    })
    grants.push(grant)
    accounts.set(candidate.workspaceId, {
      ...account,
      fairTime: workspaceTime,
      balances: grant.transfers.reduce(Money.post, account.balances)
    })
    const row = newOperation(candidate, { lane: lane.lane, ready, fairTag: tags[0]!, now: facts.now })
    rows.push(row)
    if (row.key !== null) keys.set(keyOf(row.key), row.key)
    return Result.succeed({ _tag: "Accepted", operation: row.operation, reserved: amount })
  })
  const touched = new Set(rows.map((row) => row.operation.workspaceId))
  return {
    answers,
    rows,
    authorizations: grants.map((grant) => grant.authorization),
    transfers: grants.flatMap((grant) => grant.transfers),
    fairTimes: [...touched].map((workspaceId) => ({ workspaceId, fairTime: accounts.get(workspaceId)!.fairTime }))
  }
}

const newOperation = (
  { workspaceId, operationId, keyHash, command, evidence }: Candidate,
  place: { readonly lane: LaneRef["lane"]; readonly ready: boolean; readonly fairTag: number; readonly now: number }
): NewOperation => ({
  operation: {
    ...blankOperation(place.now),
    workspaceId,
    id: operationId,
    kind: command.kind,
    scope: command.scope,
    lane: place.lane,
    ready: place.ready,
    fairTag: place.fairTag,
    authorizationNo: 1,
    evidence
  },
  key: { workspaceId, keyHash, commandVersion, commandHash: evidence.commandHash, operationId },
  input: {
    messages: command.messages,
    metadata: command.metadata,
    eventDate: command.eventDate,
    instructions: command.instructions
  }
})

/** A pending operation that nobody has worked on. The store gives it its `seq`. */
export const blankOperation = (now: number) => ({
  state: "pending" as const,
  seq: 0,
  ready: false,
  fairTag: 0,
  nextAttemptAt: null,
  epoch: 0,
  attempts: 0,
  invalidOutputs: 0,
  windowStartedAt: Timestamp.make(now),
  leaseOwner: null,
  leaseExpiresAt: null,
  authorizationNo: null,
  failure: null,
  outcome: null,
  results: [],
  createdAt: Timestamp.make(now),
  startedAt: null,
  completedAt: null
})

/** Accepts a batch in one transaction; answers in order. */
export const acceptBatch = (
  ports: {
    readonly operations: OperationStore
    readonly ledger: Ledger["Service"]
    readonly transaction: Transaction["Service"]
  },
  candidates: ReadonlyArray<Candidate>
): Effect.Effect<ReadonlyArray<Answer>, OutcomeUnknown> => {
  const { operations, ledger, transaction } = ports
  const lanes = candidates.map(({ workspaceId, command }) => ({ workspaceId, lane: laneOf(command.scope) }))
  return transaction.run(Effect.gen(function*() {
    yield* operations.lockLanes(lanes)
    const accounts = yield* ledger.lock(candidates.map((candidate) => candidate.workspaceId))
    const keys = yield* operations.findKeys(candidates)
    const occupied = yield* operations.occupiedLanes(lanes)
    const ruling = rule(candidates, { keys, accounts, occupied, ...(yield* operations.fairClock) })
    if (ruling.rows.length > 0) {
      yield* operations.insert(ruling.rows)
      yield* ledger.setFairTimes(ruling.fairTimes)
      yield* ledger.post(ruling.authorizations, ruling.transfers)
    }
    return ruling.answers
  }))
}
