/**
 * What happened in a run, for people and for comparisons. The rolling hash covers who did what when, and never a fiber
 * id, a stack or a log line.
 */

/** The steps of the loop: a process's task, timer, answer or signal; a request that arrives; an event of the world. */
export type StepKind = "task" | "timer" | "arrive" | "reply" | "signal" | "event"

/** What is done to a process, what it says, and what a port wants to be remembered. */
export type MarkKind = "spawn" | "exit" | "crash" | "terminate" | "pause" | "resume" | "clock" | "log" | "note"

export interface TraceEvent {
  /** Steps before it, which is also the number of the step that it is a part of. */
  readonly step: number
  /** Milliseconds of virtual time. */
  readonly at: number
  readonly actor: string
  readonly kind: StepKind | MarkKind
  readonly label: string
  readonly detail: string
  /** The rolling hash after it. */
  readonly hash: string
}

export type Recorder = (event: TraceEvent) => void

export const stepKinds: ReadonlyArray<StepKind> = ["task", "timer", "arrive", "reply", "signal", "event"]

/** A hash of everything it was fed, in order. 64 bits, in two halves that do not know each other. */
export class RollingHash {
  private high = 0x9e3779b9 | 0
  private low = 0x243f6a88 | 0

  word(value: number): void {
    this.high = Math.imul(this.high ^ value, 0x5bd1e995) ^ (this.high >>> 15)
    this.low = Math.imul(this.low ^ value, 0x1b873593) + ((this.low << 13) | (this.low >>> 19)) | 0
  }

  text(text: string): void {
    for (let index = 0; index < text.length; index++) this.word(text.charCodeAt(index))
    this.word(~text.length)
  }

  get hex(): string {
    return hex(this.high) + hex(this.low)
  }
}

const hex = (word: number): string => (word >>> 0).toString(16).padStart(8, "0")

export interface Keeping {
  readonly events: () => ReadonlyArray<TraceEvent>
  readonly record: Recorder
}

/** Keeps the last `limit` events: enough to see how a run ended, bounded however long it was. */
export const keeping = (limit = 1_000_000): Keeping => {
  const events: Array<TraceEvent> = []
  return {
    events: () => events.slice(-limit),
    record: (event) => {
      events.push(event)
      if (events.length >= 2 * limit) events.splice(0, limit)
    }
  }
}

/** The first place where two traces of one seed part, or null: what a failed determinism check shows. */
export const firstDifference = (
  one: ReadonlyArray<TraceEvent>,
  other: ReadonlyArray<TraceEvent>
): { readonly index: number; readonly one: TraceEvent | undefined; readonly other: TraceEvent | undefined } | null => {
  for (let index = 0; index < Math.max(one.length, other.length); index++) {
    if (one[index]?.hash !== other[index]?.hash) return { index, one: one[index], other: other[index] }
  }
  return null
}

/** One line of a text timeline. */
export const line = ({ actor, at, detail, kind, label, step }: TraceEvent): string => {
  const place = `${at.toFixed(3).padStart(12)} ${String(step).padStart(7)} ${actor.padEnd(14)}`
  return [place, kind.padEnd(9), label, detail].join(" ").trimEnd()
}
