/**
 * Where a campaign has to have been, or its silence proves nothing: named states, each of which enough runs must pass
 * through.
 */

/** Each state in one sentence, and how many of 1,000 runs of the swarm must reach it: an eighth of those that did. */
const table = {
  "takeover": ["a lease runs out, and another claim takes the operation over", 85],
  "own lease taken over": ["a process takes over an operation that it held itself and had lost", 15],
  "three holders": ["an operation is claimed for the third time", 45],
  "takeover of a claim that nobody heard of": ["a claim is committed, its acknowledgement lost, and its lease runs out", 15],
  "late renewal": ["a lease that had run out is renewed before anybody took it over", 2],
  "dead with a plan": ["a worker dies between the frozen plan and the commit", 35],
  "dead without a plan": ["a worker dies while it has claimed an operation that has no plan yet", 65],
  "plan of the dead used": ["a plan frozen by a worker that is dead is what the next one commits", 30],
  "plan of an earlier claim used": ["a claim finds a plan, and commits it without asking the model again", 35],
  "settled beside a live holder": ["an operation is settled while an earlier holder of it is still alive", 30],
  "answer for a lost lease": ["the model answers a worker that has lost the operation to another claim", 3],
  "late success after refund refused": ["the model answers for an operation that was cancelled and refunded meanwhile, in vain", 8],
  "success after a failure": ["an operation succeeds after an attempt of it had failed", 30],
  "429 keeps the attempt": ["a rate limit postpones an operation and gives its attempt back", 15],
  "provider trouble is waited out": ["a timeout or an unavailable model postpones an operation", 30],
  "invalid output ends it": ["the model answers in a form that cannot be used, too often", 4],
  "refused by the model": ["the model declines, and the operation ends in a refund", 7],
  "attempts exhausted at claim": ["whoever would claim an operation finds its attempts spent, and ends it", 20],
  "nothing to remember": ["an operation succeeds, and nothing was worth remembering", 60],
  "shutdown gives a lease back": ["a worker that is stopped gives an attempt back", 3],
  "cancelled before any claim": ["an operation is cancelled that nobody had begun", 30],
  "cancelled while running": ["an operation is cancelled that a worker holds", 20],
  "cancel meets commit": ["a cancel is asked for, and the operation succeeds before it is answered", 0.8],
  "manual retry": ["a failed operation is authorized anew and runs again", 20],
  "manual retry with a frozen plan": ["a failed operation that had a plan is retried, and keeps it", 0.3],
  "manual retry stands in line": ["a failed operation is retried behind others of its lane", 10],
  "retry refused, the input is gone": ["a failed operation cannot be retried, because its input was removed", 0.5],
  "failed input removed": ["the input of a failed operation is purged, or its retention is over", 6],
  "handed over after a failure": ["an operation fails, and the next of its lane is ready in the same commit", 25],
  "several accepted in one commit": ["a group commit accepts more than one operation", 35],
  "several settled in one commit": ["one commit ends more than one operation", 5],
  "update skipped because its target moved": ["a plan meets a memory that has changed since, and leaves it alone", 2],
  "change skipped because its target is gone": ["a plan meets a memory that was deleted since", 2],
  "changed by a plan": ["a plan updates or deletes a memory", 105],
  "edited while it waits": ["a memory gets its next version while the last one waits to be projected", 50],
  "deleted while it waits": ["a memory is deleted while a version of it waits to be projected", 30],
  "projection older than the record skipped": ["a projection ends without a vector, because a newer version replaced it", 55],
  "projection tried again": ["a projection is claimed for the second time", 65],
  "replay of a key while the first accept is uncommitted": ["a repeat asks before the first accept is committed, and gets its operation", 30],
  "several with one key": ["three requests with one key get the same operation", 7],
  "conflict": ["a key is used for another command, and refused", 10],
  "402 then the same key accepted": ["a command is refused for want of credit, and accepted with the same key later", 2],
  "unknown, then found": ["a caller is left in doubt, and a later request with its key finds the operation", 105],
  "lost acknowledgement then retry finds it done": ["the commit of an accept goes unheard, and its caller gets the operation all the same", 35],
  "settled and never heard of": ["the commit that ends an operation goes unheard", 20],
  "commit of the dead": ["what a process had sent before it died is committed after it", 6]
} as const

export type ReachedState = keyof typeof table

const names = Object.keys(table) as ReadonlyArray<ReachedState>

const column = <Place extends 0 | 1>(place: Place) =>
  Object.fromEntries(names.map((name) => [name, table[name][place]])) as Record<ReachedState, (typeof table)[ReachedState][Place]>

/** Names are those of reports, scenarios and quotas. */
export const reachedStates: Readonly<Record<ReachedState, string>> = column(0)

export const quotas: Readonly<Record<ReachedState, number>> = column(1)
