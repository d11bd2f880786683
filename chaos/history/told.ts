/** What a client asked, and what it was told: one entry for each request, also for one that nobody answered. */
import type { Sha256Hex } from "../../src/domain/Ids.ts"

export interface Told {
  readonly client: string
  readonly workspace: string
  /** When the request left and when the answer came, or the client gave up: milliseconds of the client's own clock. */
  readonly askedAt: number
  readonly answeredAt: number
  readonly asked: Asked
  readonly answer: Answer
}

export interface Write {
  readonly _tag: "Write"
  readonly kind: "infer" | "add" | "update" | "delete" | "retry"
  readonly keyHash: Sha256Hex | null
  /** Names the command: writes with the same intent ask for the same thing, and those with different ones do not. */
  readonly intent: string
  /** What it may lead to in a memory. */
  readonly text: string | null
  /** The memory that it changes. */
  readonly memoryId: string | null
  /** The event that it runs again. */
  readonly eventId: string | null
}

export type Asked =
  | Write
  | { readonly _tag: "Cancel"; readonly eventId: string }
  | { readonly _tag: "Event"; readonly eventId: string }
  | { readonly _tag: "Memory"; readonly memoryId: string }
  | { readonly _tag: "Usage" }

export type State = "pending" | "running" | "succeeded" | "failed"

export interface Result {
  readonly id: string | null
  readonly change: string
  readonly version: number | null
}

export interface SeenEvent {
  readonly id: string
  readonly state: State
  readonly failure: string | null
  readonly results: ReadonlyArray<Result>
  readonly usage: { readonly reserved: number; readonly charged: number; readonly refunded: number }
}

export type Answer =
  /** 202, 201 or 200: the command is committed. `results` is of a write that is finished. */
  | {
    readonly _tag: "Acknowledged"
    readonly eventId: string
    readonly state: State
    readonly results: ReadonlyArray<Result> | null
  }
  | { readonly _tag: "Event"; readonly event: SeenEvent }
  | { readonly _tag: "Memory"; readonly id: string; readonly version: number }
  | {
    readonly _tag: "Usage"
    readonly available: number
    readonly reserved: number
    readonly consumed: number
    readonly issued: number
  }
  /** A definite no, by the code of its problem. A conflict names the event that holds the key. */
  | { readonly _tag: "Refused"; readonly status: number; readonly code: string; readonly eventId: string | null }
  /** No answer in time, a broken connection, or 503: what happened is anybody's guess. */
  | { readonly _tag: "Unknown"; readonly why: string }

/** An operation as the database has it in the end. */
export interface EndedOperation {
  readonly workspace: string
  readonly id: string
  readonly kind: "memory.infer" | "memory.add" | "memory.update" | "memory.delete"
  readonly state: State
  readonly failure: string | null
  readonly results: ReadonlyArray<Result>
}

/** What the database ended up with. */
export interface Ended {
  readonly operations: ReadonlyArray<EndedOperation>
  readonly keys: ReadonlyArray<{ readonly workspace: string; readonly keyHash: Sha256Hex; readonly operationId: string }>
  readonly memories: ReadonlyArray<{
    readonly workspace: string
    readonly id: string
    readonly version: number
    readonly text: string | null
    readonly deleted: boolean
  }>
}

/** What no history of a sound service has. `about` is a key, an event, a memory or a client: never a text. */
export interface Breach {
  readonly rule: string
  readonly workspace: string
  readonly about: string
  readonly detail: string
}

/** A request that surely had its answer before the other was asked. */
export const before = (first: Told, second: Told): boolean => first.answeredAt <= second.askedAt

/** The event that an entry told something of. */
export const eventOf = ({ answer, asked }: Told): string | null =>
  answer._tag === "Acknowledged"
    ? answer.eventId
    : answer._tag === "Event"
    ? answer.event.id
    : asked._tag === "Event" || asked._tag === "Cancel"
    ? asked.eventId
    : null
