/** A history and an end, sorted so that rules find what belongs together. */
import type { Ended, EndedOperation, Told, Write } from "./told.ts"

/** A write, and what was told of it. */
export interface Written extends Told {
  readonly asked: Write
}

export interface Book {
  readonly told: ReadonlyArray<Told>
  readonly ended: Ended
  /** Writes under one key of one workspace, whatever they asked for. */
  readonly byKey: ReadonlyMap<string, ReadonlyArray<Written>>
  readonly writes: ReadonlyArray<Written>
  /** The operation that holds a key in the end. */
  readonly holders: ReadonlyMap<string, string>
  readonly operations: ReadonlyMap<string, EndedOperation>
  readonly memories: ReadonlyMap<string, Ended["memories"][number]>
}

export const nameOf = (workspace: string, id: string): string => `${workspace}/${id}`

export const bookOf = (told: ReadonlyArray<Told>, ended: Ended): Book => {
  const writes = told.filter((one): one is Written => one.asked._tag === "Write")
  return {
    told,
    ended,
    writes,
    byKey: Map.groupBy(
      writes.filter(({ asked }) => asked.keyHash !== null),
      ({ asked, workspace }) => nameOf(workspace, asked.keyHash!)
    ),
    holders: new Map(ended.keys.map(({ keyHash, operationId, workspace }) => [nameOf(workspace, keyHash), operationId])),
    operations: new Map(ended.operations.map((operation) => [nameOf(operation.workspace, operation.id), operation])),
    memories: new Map(ended.memories.map((memory) => [nameOf(memory.workspace, memory.id), memory]))
  }
}

/** A promise about what clients were told, beside what the database ended up with. */
export interface Rule {
  readonly name: string
  readonly promise: string
  readonly check: (book: Book) => ReadonlyArray<Finding>
}

export interface Finding {
  readonly workspace: string
  readonly about: string
  readonly detail: string
}

/** A finding, unless the condition holds. */
export const unless = (holds: boolean, workspace: string, about: string, detail: string): ReadonlyArray<Finding> =>
  holds ? [] : [{ workspace, about, detail }]
