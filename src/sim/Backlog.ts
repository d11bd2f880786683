/** How much is not done yet, counted commit by commit: operations, projections, authorizations. */
import { isTerminal } from "../domain/Operation.ts"
import type { Commit } from "./Commit.ts"

export class Backlog {
  private open = 0

  get empty(): boolean {
    return this.open === 0
  }

  take({ changes }: Commit): void {
    for (const change of changes) {
      switch (change.table) {
        case "operations":
          this.count(change, ({ state }) => !isTerminal(state))
          break
        case "authorizations":
          this.count(change, ({ state }) => state === "open")
          break
        case "projections":
          this.count(change, () => true)
      }
    }
  }

  private count<Row>({ after, before }: { readonly before: Row | null; readonly after: Row | null }, waits: (row: Row) => boolean): void {
    if (before !== null && waits(before)) this.open--
    if (after !== null && waits(after)) this.open++
  }
}
