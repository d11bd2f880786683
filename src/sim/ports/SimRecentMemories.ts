/** The newest memories of a scope: those who ask at the same time in one process are answered by one statement. */
import { Effect } from "effect"
import type { WorkspaceId } from "../../domain/Ids.ts"
import type { Memory } from "../../domain/Memory.ts"
import { type ScopeFilter, scopeKeys } from "../../domain/Scope.ts"
import * as Batcher from "../../services/Batcher.ts"
import type { MemoryStore } from "../../services/MemoryStore.ts"
import type { OutcomeUnknown } from "../../services/Transaction.ts"
import type { SimDatabase } from "../database/SimDatabase.ts"

interface Question {
  readonly workspaceId: WorkspaceId
  readonly scope: ScopeFilter
  readonly limit: number
}

export const make = (database: SimDatabase): MemoryStore["recent"] => {
  const { tables } = database

  const ask = (questions: ReadonlyArray<Question>) =>
    database.ask("memories.recent", (tx) =>
      questions.map(({ limit, scope, workspaceId }) =>
        tables.live.rows(tx, workspaceId)
          .filter((row) => scopeKeys.every((key) => row.scope[key] === scope[key]))
          .toSorted((a, b) => a.id < b.id ? 1 : -1)
          .slice(0, limit)
      ))

  const run = Effect.fnUntraced(function*(questions: ReadonlyArray<Question>) {
    const answers = new Map<Question, ReadonlyArray<Memory>>()
    const alike = Map.groupBy(questions, ({ limit, scope }) =>
      JSON.stringify([limit, scopeKeys.filter((key) => scope[key] !== undefined)]))
    for (const group of alike.values()) {
      const found = yield* ask(group)
      group.forEach((question, index) => answers.set(question, found[index]!))
    }
    return questions.map((question) => answers.get(question)!)
  })

  const submit = database.oncePerProcess(Batcher.makeRoomy<Question, ReadonlyArray<Memory>>({ maxSize: 100, loops: 2, run }))
  return (workspaceId, scope, limit): Effect.Effect<ReadonlyArray<Memory>, OutcomeUnknown> =>
    Effect.flatMap(submit, (ask) => ask({ workspaceId, scope, limit }))
}
