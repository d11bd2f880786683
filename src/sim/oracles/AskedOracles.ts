/** What was made is what was asked for: of the text, whose it is, and what was said beside it, nothing is lost or added. */
import canonicalize from "canonicalize"
import type { AddCommand, DeleteCommand, UpdateCommand } from "../../domain/Command.ts"
import { type MemoryId, refKey } from "../../domain/Ids.ts"
import type { Invariant } from "../../domain/Invariant.ts"
import type { Memory } from "../../domain/Memory.ts"
import { scopeKeys } from "../../domain/Scope.ts"
import type { Event } from "../../services/Events.ts"
import type { Hearing } from "./Hearing.ts"
import { fine } from "./Oracle.ts"

/** Whether two values are the same JSON. */
export const alike = (one: unknown, other: unknown): boolean => one === other || canonicalize(one) === canonicalize(other)

/** A version of a memory, if that was ever committed. */
type VersionOf = (id: MemoryId, version: number) => Memory | undefined

export const madeAsAsked: Invariant<Hearing> = {
  name: "made-as-asked",
  promise: "What is made of a command, or kept of it until it is done, is what its caller said: texts, scope, metadata and dates.",
  check: ({ told, track, tracks }) => {
    const { answer, question, workspaceId } = told
    if (!("command" in question) || question.command === undefined || track === null) return fine
    const { command } = question
    if (answer._tag === "Receipt" && command.kind === "memory.infer") {
      const { kind: _, scope, ...input } = command
      const problems: Array<string> = []
      if (!alike(track.input, input)) problems.push("its input is not what was said")
      if (!alike(track.operation?.scope, scope)) problems.push("it is of another scope")
      return problems
    }
    if (answer._tag !== "Completed" || answer.completed.already === true) return fine
    const versionOf: VersionOf = (id, version) =>
      tracks.memories.get(refKey({ workspaceId, id }))?.versions.find((row) => row.version === version)
    return made(command, answer.completed.event, versionOf)
  }
}

const made = (command: AddCommand | UpdateCommand | DeleteCommand, { results }: Event, versionOf: VersionOf): ReadonlyArray<string> => {
  const versions = results.map(({ id, version }) => id === null || version === null ? undefined : versionOf(id, version))
  if ("messages" in command) return added(command, versions)
  if (command.kind === "memory.delete") {
    // It may repeat a deletion that was one of several things that somebody else did.
    const place = results.findIndex(({ change, id }) => change === "delete" && id === command.memoryId)
    const gone = versions[place]
    return gone?.deleted === true && alike(gone.metadata, {}) ? fine : ["something is left of it"]
  }
  const [now] = versions
  if (now === undefined || versions.length !== 1 || now.id !== command.memoryId) return ["it made something else"]
  const before = versionOf(now.id, now.version - 1)
  if (before === undefined) return ["it changed what was not there"]
  const said = { ...before, text: command.text ?? before.text, metadata: command.metadata ?? before.metadata }
  return differences(said, now)
}

/** One memory for each message that is not blank. */
const added = ({ eventDate, messages, metadata, scope }: AddCommand, versions: ReadonlyArray<Memory | undefined>) => {
  const texts = messages.map(({ content }) => content).filter((text) => text.trim() !== "")
  if (texts.length !== versions.length) return [`${texts.length} texts became ${versions.length} memories`]
  return versions.flatMap((now, place) =>
    now === undefined ? ["it made nothing"] : differences({ text: texts[place]!, scope, metadata, eventDate }, now))
}

const parts = ["text", "metadata", "eventDate"] as const

/** In what a memory is not what was said, by names. */
export const differences = (said: Pick<Memory, (typeof parts)[number] | "scope">, now: Memory): ReadonlyArray<string> => [
  ...parts.flatMap((part) => alike(said[part], now[part]) ? fine : [`its ${part} is not what was said`]),
  ...scopeKeys.flatMap((key) => said.scope[key] === now.scope[key] ? fine : [`its ${key} is not what was said`])
]
