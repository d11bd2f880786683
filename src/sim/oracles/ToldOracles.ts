/**
 * What clients were told is consistent with what was committed: each answer was true at some moment between its question
 * and itself, and what it promised is kept. An answer that never came says nothing.
 */
import type { Invariant } from "../../domain/Invariant.ts"
import { refKey } from "../../domain/Ids.ts"
import { isTerminal, type Operation } from "../../domain/Operation.ts"
import type { Event } from "../../services/Events.ts"
import { alike, madeAsAsked } from "./AskedOracles.ts"
import { isConflict, keyOf, meaningOf, operationOf, replayedOf } from "./Book.ts"
import { eventIn, eventOracles } from "./EventOracles.ts"
import type { Hearing } from "./Hearing.ts"
import { fine } from "./Oracle.ts"
import type { Usage } from "./OperationTrack.ts"
import { readOracles } from "./ReadOracles.ts"

type ToldOracle = Invariant<Hearing>

const toldOfIsThere: ToldOracle = {
  name: "told-of-is-there",
  promise: "An operation that somebody was told of exists, and is found by everybody from then on.",
  check: ({ told, track }) => {
    const { answer, askedAt } = told
    if (answer._tag === "Refused") {
      const gone = answer.refusal._tag === "NotFound" && answer.refusal.what === "event"
      return gone && track !== null && !track.versions.missing(askedAt) ? ["it was not found, and was there all the time"] : fine
    }
    const names = answer._tag === "Receipt" || answer._tag === "Completed" || answer._tag === "Event"
    return names && (track === null || track.operation === null) ? ["it does not exist"] : fine
  }
}

const keyMeansOneCommand: ToldOracle = {
  name: "key-means-one-command",
  promise: "A key answers for the one command that claimed it, with its one operation; to any other it is a conflict.",
  check: ({ told, tracks }) => {
    const { answer, question, workspaceId } = told
    const keyHash = keyOf(told)
    if (keyHash === null || !("commandHash" in question)) return fine
    const known = tracks.keys.get(`${workspaceId}/${keyHash}`)
    if (answer._tag === "Refused" && answer.refusal._tag === "IdempotencyConflict") {
      if (known === undefined) return ["a conflict with a key that nobody has claimed"]
      if (known.row.commandHash === question.commandHash) return ["a conflict with the very same command"]
      return answer.refusal.operationId === known.row.operationId ? fine : ["the conflict names another operation"]
    }
    if (answer._tag !== "Receipt" && answer._tag !== "Completed") return fine
    // A manual retry that finds its operation live claims nothing.
    if (known === undefined) return question._tag === "Retry" ? fine : ["its key was never claimed"]
    if (known.row.commandHash !== question.commandHash) return ["its key belongs to another command"]
    return known.row.operationId === operationOf(told) ? fine : ["its key belongs to another operation"]
  }
}

const keyMeansWhatWasSaid: ToldOracle = {
  name: "key-means-what-was-said",
  promise: "To a key, two requests that mean the same are the same, and two that do not are not, however they are spelled.",
  check: ({ book, told }) => {
    const meaning = meaningOf(told)
    const keyHash = keyOf(told)
    const notes = keyHash === null ? undefined : book.keys.get(`${told.workspaceId}/${keyHash}`)
    if (meaning === null || notes === undefined) return fine
    if (isConflict(told)) return notes.meant.has(meaning) ? ["a conflict with what the key has been answered for"] : fine
    if (replayedOf(told) === null) return fine
    if (notes.conflicts.has(meaning)) return ["answered, and a conflict before"]
    return notes.meant.size === 0 || notes.meant.has(meaning) ? fine : ["answered as something else was"]
  }
}

const replaysComeFirst: ToldOracle = {
  name: "replays-come-first",
  promise: "Whoever repeats what has been done gets what was done, whatever has become of versions, states and credit.",
  check: ({ told, tracks }) => {
    const { answer, askedAt, question, workspaceId } = told
    const keyHash = keyOf(told)
    if (answer._tag !== "Refused" || isConflict(told) || keyHash === null || !("commandHash" in question)) return fine
    const known = tracks.keys.get(`${workspaceId}/${keyHash}`)
    if (known === undefined || known.at >= askedAt || known.row.commandHash !== question.commandHash) return fine
    return [`refused as ${answer.refusal._tag}, and its key was claimed by this command before`]
  }
}

const toldWhatWas: ToldOracle = {
  name: "told-what-was",
  promise: "The status that an answer gives was the status of the operation at some moment since it was asked for.",
  check: ({ told, track }) => {
    const { answer, answeredAt, askedAt } = told
    if (track === null) return fine
    if (answer._tag === "Receipt") {
      const { createdAt, status } = answer.receipt
      const was = track.versions.some(askedAt, answeredAt, (row) => row.state === status && row.createdAt === createdAt)
      return was ? fine : [`told ${status}, created at ${createdAt}, which it was not`]
    }
    const event = eventIn(told)
    if (event === null || track.versions.some(askedAt, answeredAt, (row) => isEventOf(event, row))) return fine
    return [`told ${event.status}, attempt ${event.attempts}, ${event.error?.class ?? "no error"}, which it was not`]
  }
}

/** Whether an event says of its operation what the row says. */
const isEventOf = (event: Event, row: Operation): boolean =>
  event.status === row.state && event.type === row.kind && event.attempts === row.attempts &&
  (event.error?.class ?? null) === row.failure && event.outcome === row.outcome &&
  event.nextAttemptAt === row.nextAttemptAt && event.createdAt === row.createdAt && event.startedAt === row.startedAt &&
  event.completedAt === row.completedAt && event.results.length === row.results.length &&
  event.results.every(({ change, id, version }, place) => {
    const result = row.results[place]!
    return result.id === id && result.change === change && result.version === version
  }) &&
  alike(event.scope, row.scope) && alike(event.evidence, row.evidence)

const toldTheMoney: ToldOracle = {
  name: "told-the-money",
  promise: "What an answer says of the money is what the authorizations of the operation come to.",
  check: ({ told, track }) => {
    const { answer, answeredAt, askedAt } = told
    if (track === null) return fine
    const isAccept = told.question._tag === "Infer"
    // A repeated retry is told what is held.
    if (answer._tag === "Receipt" && (isAccept || replayedOf(told) === false)) {
      const { reserved } = answer.receipt
      const held = track.authorizations.some((row) => row.reserved === reserved && (!isAccept || row.no === 1))
      return held ? fine : [`told that ${reserved} are reserved`]
    }
    const came = (test: (usage: Usage) => boolean) => track.usages.some(askedAt, answeredAt, test)
    if (answer._tag === "Receipt") {
      const { reserved: held } = answer.receipt
      return came((usage) => usage.reserved - usage.charged - usage.refunded === held) ? fine : [`told that ${held} are held`]
    }
    const event = eventIn(told)
    if (event === null) return fine
    const { charged, refunded, reserved } = event.usage
    const problems: Array<string> = []
    const isFree = track.authorizations.length === 0 && reserved + charged + refunded === 0n
    if (!isFree && !came((usage) => usage.reserved === reserved && usage.charged === charged && usage.refunded === refunded)) {
      problems.push(`told of ${charged} charged and ${refunded} refunded of ${reserved}, which it never came to`)
    }
    const first = track.authorizations.find(({ no }) => no === 1)?.reserved ?? 0n
    if (event.acceptReserved !== first) problems.push(`told that its accept reserved ${event.acceptReserved}`)
    // A retry in the meantime opens another authorization.
    if (track.reopenings.some((at) => at >= askedAt && at <= answeredAt)) return problems
    if (reserved < charged + refunded) problems.push(`told of ${charged} charged and ${refunded} refunded of ${reserved}`)
    if (event.status === "succeeded" && reserved !== charged + refunded) problems.push("told that a success still holds credit")
    if (event.status === "failed" && (charged !== 0n || reserved !== refunded)) {
      problems.push(`told that a failure costs ${reserved - refunded}`)
    }
    return problems
  }
}

const firstIsTheFirst: ToldOracle = {
  name: "first-is-the-first",
  promise: "Only the request that made something is told that it was the first, and only one is.",
  check: ({ book, told, track }) => {
    const { answeredAt, askedAt, question, workspaceId } = told
    if (track === null || replayedOf(told) !== false) return fine
    const notes = book.operations.get(refKey(track.ref))
    if (question._tag === "Retry") {
      const lately = track.reopenings.filter((at) => at >= askedAt && at <= answeredAt).length
      if (lately === 0) return [`told that it retried in ${workspaceId}, and nobody did`]
      return (notes?.retries ?? 0) < track.reopenings.length ? fine : ["two were told that they retried it, and one did"]
    }
    const began = track.versions.beganAt ?? Infinity
    if (began < askedAt || began > answeredAt) return [`told at ${answeredAt} ms that it is new, and it is of ${began} ms`]
    return (notes?.firsts ?? 0) === 0 ? fine : ["two were told that they made it"]
  }
}

const creditWasShort: ToldOracle = {
  name: "credit-was-short",
  promise: "Credit is said to be short only when it was, at some moment since.",
  check: ({ told, tracks }) => {
    const { answer, answeredAt, askedAt, workspaceId } = told
    if (answer._tag !== "Refused" || answer.refusal._tag !== "InsufficientCredit") return fine
    const { required } = answer.refusal
    const account = tracks.workspaces.get(workspaceId)
    const short = account === undefined || account.versions.missing(askedAt) ||
      account.versions.some(askedAt, answeredAt, ({ balances }) => balances.available < required)
    return short ? fine : [`${required} were available all the time`]
  }
}

const ifMatchIsKept: ToldOracle = {
  name: "if-match-is-kept",
  promise: "An edit or a deletion that names a version is made on that version or not at all.",
  check: ({ told }) => {
    const { answer, question } = told
    if (answer._tag !== "Completed" || replayedOf(told) !== false) return fine
    if (!("expectedVersion" in question) || question.expectedVersion === null) return fine
    const made = answer.completed.event.results[0]?.version
    return made === question.expectedVersion + 1 ? fine : [`asked for on ${question.expectedVersion}, and made ${made}`]
  }
}

const doneIsDone: ToldOracle = {
  name: "done-is-done",
  promise: "Whoever was told that an operation is cancelled, its input purged, or what was asked for done already, was told so when it was.",
  check: ({ told, track }) => {
    const { answer, answeredAt, askedAt, question } = told
    if (track === null) return fine
    if (answer._tag === "Receipt" && answer.receipt.already === true) {
      const live = question._tag === "Retry" && track.versions.some(askedAt, answeredAt, ({ state }) => !isTerminal(state))
      return live ? fine : ["told that it runs already"]
    }
    if (answer._tag === "Completed" && answer.completed.already === true) {
      const { results } = answer.completed.event
      const gone = question._tag === "Delete" && results.some(({ change, id }) => change === "delete" && id === question.memoryId)
      return gone ? fine : ["told that it is deleted already"]
    }
    if (answer._tag !== "Event") return fine
    if (question._tag === "Cancel") {
      const was = track.versions.some(askedAt, answeredAt, (row) => row.state === "failed" && row.failure === "cancelled")
      return was ? fine : ["told that it was cancelled"]
    }
    if (question._tag !== "Purge") return fine
    return track.hasInput || track.hasPlan ? ["told that its input is purged, and something of it is kept"] : fine
  }
}

export const toldOracles: ReadonlyArray<ToldOracle> = [
  toldOfIsThere,
  keyMeansOneCommand,
  keyMeansWhatWasSaid,
  replaysComeFirst,
  toldWhatWas,
  toldTheMoney,
  firstIsTheFirst,
  creditWasShort,
  ifMatchIsKept,
  doneIsDone,
  madeAsAsked,
  ...eventOracles,
  ...readOracles
]
