/**
 * The fair queue, as start-time fair queueing promises it: tags no later than they must be, a clock that follows what is
 * served, and nobody overtaken by those behind him for longer than it takes to be seen.
 */
import type { Invariant } from "../../domain/Invariant.ts"
import { type OperationRef, refKey } from "../../domain/Ids.ts"
import type { Operation } from "../../domain/Operation.ts"
import { fine } from "./Oracle.ts"
import type { OperationTrack } from "./OperationTrack.ts"
import type { Tracks } from "./Tracks.ts"
import type { WorkspaceTrack } from "./WorkspaceTrack.ts"

/**
 * How many claims of one process may pass by an operation that is next, and free. One was under way when it became
 * claimable; and it may have been locked when a claim looked, by somebody who let go of it before the claim was committed.
 */
export const overtakingMax = 3

/** Whether somebody has the row of an operation locked now; null when the world does not say. */
export type Locked = ((ref: OperationRef) => boolean) | null

const tagsAreFair = (tracks: Tracks): Invariant<WorkspaceTrack> => ({
  name: "tags-are-fair",
  promise: "A workspace's operations are tagged one after another, from the fair clock or its own time, whichever is later.",
  check: ({ accounts, before, clock, entered }) => {
    if (entered.length === 0) return fine
    const own = before?.fairTime ?? 0
    const tags = entered.map(({ operation }) => operation!.fairTag).toSorted((a, b) => a - b)
    const first = tags[0]!
    const problems: Array<string> = []
    // The clock was read after the account was locked, and before this commit.
    if (first < Math.max(clock, own)) problems.push(`tag ${first} is before the clock, ${clock}, or its own time, ${own}`)
    if (first > Math.max(tracks.clock, own)) {
      problems.push(`tag ${first} is after the clock, ${tracks.clock}, and its own time, ${own}`)
    }
    if (tags.some((tag, place) => tag !== first + place)) problems.push(`its tags are ${tags.join(", ")}`)
    const time = accounts[0]?.fairTime
    if (time !== tags.at(-1)! + 1) problems.push(`its time is ${time} after tag ${tags.at(-1)}`)
    return problems
  }
})

const handedAnew = (tracks: Tracks): Invariant<OperationTrack> => ({
  name: "handed-anew",
  promise: "Whoever is handed a lane queues behind what was served by then, one after another, and no earlier than before.",
  check: (track) => {
    if (!track.handed) return fine
    const [was, is] = [track.before!.fairTag, track.operation!.fairTag]
    if (is < was) return [`it had tag ${was} and was handed its lane with ${is}`]
    const { lane, workspaceId } = track.operation!
    const others = tracks.touched.operations.filter((other) => other.ref.workspaceId === workspaceId)
    const latest = tracks.clock + others.filter(({ handed }) => handed).length
    const problems = is > Math.max(was, latest) ? [`tag ${is} is after ${was} and after all of this commit, ${latest}`] : []
    // The clock was read after the head was locked, which nobody has changed since the commit before.
    const heads = others.filter(({ before, ended }) => ended && before !== null && before.ready && before.lane === lane)
    for (const { clock } of heads) if (is <= clock) problems.push(`tag ${is} is not after the clock, ${clock}`)
    return problems
  }
})

const clockFollowsTheServed: Invariant<Tracks> = {
  name: "clock-follows-the-served",
  promise: "The clock of the fair queue is the largest tag that was ever claimed, from the commit of the claim on.",
  check: ({ clock, served }) => clock === served ? fine : [`the clock shows ${clock}, and tag ${served} was claimed`]
}

/** Who passed by whom, and how often. */
const nobodyIsOvertaken = (locked: Locked): Invariant<Tracks> => {
  const passed = new Map<string, number>()
  return {
    name: "nobody-is-overtaken",
    promise:
      `No process claims fresh work more than ${overtakingMax} times past a free operation of another workspace that is before it in the fair order.`,
    check: (tracks) => {
      if (locked === null) return fine
      const claims = tracks.touched.operations.filter((track) => track.claimed && isFresh(track.before!))
      if (claims.length === 0) return fine
      const problems: Array<string> = []
      for (const { operation } of tracks.operations.values()) {
        if (operation === null || !isFresh(operation) || !claims.some((claim) => isPast(claim, operation))) continue
        if (locked(operation)) continue
        const key = `${tracks.commit.by} ${refKey(operation)}`
        const count = (passed.get(key) ?? 0) + 1
        passed.set(key, count)
        if (count > overtakingMax) problems.push(`${operation.id} was passed by ${count} claims of ${tracks.commit.by}`)
      }
      return problems
    }
  }
}

/** To be claimed in fair order: retries have an order of their own. */
const isFresh = ({ nextAttemptAt, ready, state }: Operation): boolean =>
  state === "pending" && ready && nextAttemptAt === null

const isPast = ({ before }: OperationTrack, waiting: Operation): boolean =>
  before!.workspaceId !== waiting.workspaceId &&
  (before!.fairTag > waiting.fairTag || (before!.fairTag === waiting.fairTag && before!.seq > waiting.seq))

export const handOverOracles = (tracks: Tracks): ReadonlyArray<Invariant<OperationTrack>> => [handedAnew(tracks)]
export const tagOracles = (tracks: Tracks): ReadonlyArray<Invariant<WorkspaceTrack>> => [tagsAreFair(tracks)]
export const queueOracles = (locked: Locked): ReadonlyArray<Invariant<Tracks>> => [
  clockFollowsTheServed,
  nobodyIsOvertaken(locked)
]
