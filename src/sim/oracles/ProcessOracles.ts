/** Processes: what a dead one may still do, and when a live one may ask the model. */
import { Duration } from "effect"
import type { Invariant, Violation } from "../../domain/Invariant.ts"
import type { OperationRef } from "../../domain/Ids.ts"
import { refKey } from "../../domain/Ids.ts"
import type { SettingsShape } from "../../services/Settings.ts"
import { fine } from "./Oracle.ts"
import type { OperationTrack } from "./OperationTrack.ts"
import type { Tracks } from "./Tracks.ts"

/** When each process that is dead died, and when each that stood still went on, in virtual time. */
export class Fates {
  readonly deaths = new Map<string, number>()
  readonly wakings = new Map<string, number>()

  readonly oracle: Invariant<Tracks> = {
    name: "the-dead-write-nothing",
    promise: "A process that died changes nothing any more, but by what it had sent before.",
    check: ({ commit }) => {
      const died = this.deaths.get(commit.by)
      if (died === undefined || commit.sentAt <= died) return fine
      return [`${commit.by} died at ${died} ms and sent this at ${commit.sentAt} ms`]
    }
  }
}

/** A question to the model about an operation, at the moment when it leaves. */
interface Asking {
  readonly track: OperationTrack | undefined
  readonly by: string
  /** How many questions about it this process has asked, this one included. */
  readonly asked: number
  /** For how long its lease has been over, in milliseconds, the time in which its process stood still aside. */
  readonly late: number
}

const claimedBeforeAsked: Invariant<Asking> = {
  name: "claimed-before-asked",
  promise: "A process asks the model about an operation once at most for each time that it claimed it without a plan.",
  check: ({ asked, by, track }) => {
    const allowed = track?.claims.filter((claim) => claim.by === by && !claim.planned).length ?? 0
    return asked <= allowed ? fine : [`${by} asked ${asked} times, and claimed it ${allowed} times without a plan`]
  }
}

const notAskedWhenLost = (graceMs: number): Invariant<Asking> => ({
  name: "not-asked-when-lost",
  promise: "No process asks the model about an operation whose lease it lost longer ago than its clock can be wrong.",
  check: ({ by, late }) => late <= graceMs ? fine : [`${by} asked ${late} ms after its lease was over`]
})

/**
 * How much slower than the database's a machine's clock may run before a worker that fences itself by it is late: what
 * the margin of the fence is for, and half of a lease on top.
 */
const graceOf = ({ fenceMargin, lease }: SettingsShape): number =>
  Duration.toMillis(fenceMargin) + Duration.toMillis(lease) / 2

export const askingOracles = (settings: SettingsShape): ReadonlyArray<Invariant<Asking>> => [
  claimedBeforeAsked,
  notAskedWhenLost(graceOf(settings))
]

/** Who has asked the model what. The provider's world reports it. */
export class Askings {
  private readonly asked = new Map<string, number>()
  private readonly oracles: ReadonlyArray<Invariant<Asking>>
  private readonly tracks: Tracks
  private readonly fates: Fates

  constructor(settings: SettingsShape, tracks: Tracks, fates: Fates) {
    this.oracles = askingOracles(settings)
    this.tracks = tracks
    this.fates = fates
  }

  /** `now` in virtual time, and by the database clock. */
  ask(ref: OperationRef, by: string, now: { readonly virtual: number; readonly database: number }): ReadonlyArray<Violation> {
    const track = this.tracks.operations.get(refKey(ref))
    const key = `${by} ${refKey(ref)}`
    const asked = (this.asked.get(key) ?? 0) + 1
    this.asked.set(key, asked)
    const until = track?.claims.findLast((claim) => claim.by === by)?.until ?? Infinity
    const awake = now.virtual - (this.fates.wakings.get(by) ?? -Infinity)
    const asking: Asking = { track, by, asked, late: Math.min(awake, now.database - until) }
    return this.oracles.flatMap(({ check, name }) =>
      check(asking).map((detail) => ({ invariant: name, workspaceId: ref.workspaceId, id: ref.id, detail })))
  }
}
