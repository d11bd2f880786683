/**
 * The fair queue, as start-time fair queueing promises it: tags no later than they must be, a clock that follows what is
 * served, and nobody overtaken by those behind him for longer than it takes to be seen.
 */
import type { Invariant } from "../../domain/Invariant.ts"
import { refKey } from "../../domain/Ids.ts"
import type { Operation } from "../../domain/Operation.ts"
import { fine } from "./Oracle.ts"
import type { OperationTrack } from "./OperationTrack.ts"
import type { Tracks } from "./Tracks.ts"
import type { WorkspaceTrack } from "./WorkspaceTrack.ts"

/**
 * How many claims of one process may pass by an operation that is next. One was under way when it became claimable;
 * others happen while a rival has it locked, for as long as a claim takes.
 */
export const overtakingMax = 3

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

const clockFollowsTheServed: Invariant<Tracks> = {
  name: "clock-follows-the-served",
  promise: "The clock of the fair queue is the largest tag that was ever claimed, from the commit of the claim on.",
  check: ({ clock, served }) => clock === served ? fine : [`the clock shows ${clock}, and tag ${served} was claimed`]
}

/** Since the world healed: who passed by whom, and how often. */
export class Overtaking {
  private healed = false
  private readonly passed = new Map<string, number>()

  heal(): void {
    this.healed = true
  }

  readonly oracle: Invariant<Tracks> = {
    name: "nobody-is-overtaken",
    promise: `In a healed world no process claims fresh work more than ${overtakingMax} times past a fresh operation of another workspace that is before it in the fair order.`,
    check: (tracks) => {
      if (!this.healed) return fine
      const claims = tracks.touched.operations.filter((track) => track.claimed && isFresh(track.before!))
      if (claims.length === 0) return fine
      const problems: Array<string> = []
      for (const { operation } of tracks.operations.values()) {
        if (operation === null || !isFresh(operation) || !claims.some((claim) => isPast(claim, operation))) continue
        const key = `${tracks.commit.by} ${refKey(operation)}`
        const count = (this.passed.get(key) ?? 0) + 1
        this.passed.set(key, count)
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

export const tagOracles = (tracks: Tracks): ReadonlyArray<Invariant<WorkspaceTrack>> => [tagsAreFair(tracks)]
export const clockOracles: ReadonlyArray<Invariant<Tracks>> = [clockFollowsTheServed]
