/**
 * Where a campaign has to have been, or its silence proves nothing: named states, each of which enough runs must pass
 * through.
 */

/** Every state, in one sentence. Names are those of reports and quotas. */
export const reachedStates = {
  "takeover": "a lease runs out, and another claim takes the operation over",
  "own lease taken over": "a process takes over an operation that it held itself and had lost",
  "three holders": "an operation is claimed for the third time",
  "takeover of a claim that nobody heard of": "a claim is committed, its acknowledgement lost, and its lease runs out",
  "late renewal": "a lease that had run out is renewed before anybody took it over",
  "dead with a plan": "a worker dies between the frozen plan and the commit",
  "dead without a plan": "a worker dies while it has claimed an operation that has no plan yet",
  "plan of the dead used": "a plan frozen by a worker that is dead is what the next one commits",
  "plan of an earlier claim used": "a claim finds a plan, and commits it without asking the model again",
  "settled beside a live holder": "an operation is settled while an earlier holder of it is still alive",
  "answer for a lost lease": "the model answers a worker that has lost the operation to another claim",
  "late success after refund refused": "the model answers for an operation that was cancelled and refunded meanwhile, in vain",
  "success after a failure": "an operation succeeds after an attempt of it had failed",
  "429 keeps the attempt": "a rate limit postpones an operation and gives its attempt back",
  "provider trouble is waited out": "a timeout or an unavailable model postpones an operation",
  "invalid output ends it": "the model answers in a form that cannot be used, too often",
  "refused by the model": "the model declines, and the operation ends in a refund",
  "attempts exhausted at claim": "whoever would claim an operation finds its attempts spent, and ends it",
  "nothing to remember": "an operation succeeds, and nothing was worth remembering",
  "shutdown gives a lease back": "a worker that is stopped gives an attempt back",
  "cancelled before any claim": "an operation is cancelled that nobody had begun",
  "cancelled while running": "an operation is cancelled that a worker holds",
  "cancel meets commit": "a cancel is asked for, and the operation succeeds before it is answered",
  "manual retry": "a failed operation is authorized anew and runs again",
  "manual retry with a frozen plan": "a failed operation that had a plan is retried, and keeps it",
  "manual retry stands in line": "a failed operation is retried behind others of its lane",
  "retry refused, the input is gone": "a failed operation cannot be retried, because its input was removed",
  "failed input removed": "the input of a failed operation is purged, or its retention is over",
  "handed over after a failure": "an operation fails, and the next of its lane is ready in the same commit",
  "several accepted in one commit": "a group commit accepts more than one operation",
  "several settled in one commit": "one commit ends more than one operation",
  "update skipped because its target moved": "a plan meets a memory that has changed since, and leaves it alone",
  "change skipped because its target is gone": "a plan meets a memory that was deleted since",
  "changed by a plan": "a plan updates or deletes a memory",
  "edited while it waits": "a memory gets its next version while the last one waits to be projected",
  "deleted while it waits": "a memory is deleted while a version of it waits to be projected",
  "projection older than the record skipped": "a projection ends without a vector, because a newer version replaced it",
  "projection tried again": "a projection is claimed for the second time",
  "replay of a key while the first accept is uncommitted": "a repeat asks before the first accept is committed, and gets its operation",
  "several with one key": "three requests with one key get the same operation",
  "conflict": "a key is used for another command, and refused",
  "402 then the same key accepted": "a command is refused for want of credit, and accepted with the same key later",
  "unknown, then found": "a caller is left in doubt, and a later request with its key finds the operation",
  "lost acknowledgement then retry finds it done": "the commit of an accept goes unheard, and its caller gets the operation all the same",
  "settled and never heard of": "the commit that ends an operation goes unheard",
  "commit of the dead": "what a process had sent before it died is committed after it"
} as const

export type ReachedState = keyof typeof reachedStates

/** Of 1,000 runs of the swarm, how many must pass through a state. */
export const quotas: Readonly<Record<ReachedState, number>> = Object.fromEntries(
  Object.keys(reachedStates).map((name) => [name, 1])
) as Record<ReachedState, number>
