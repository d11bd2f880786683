/** What all oracles are made of: a named promise about something that was seen. The words are those of the domain. */
import type { WorkspaceId } from "../../domain/Ids.ts"
import type { Invariant, Violation } from "../../domain/Invariant.ts"

/** It holds. */
export const fine: ReadonlyArray<string> = []

/** Something with a name, and the one sentence that says what it promises. */
export interface Named {
  readonly name: string
  readonly promise: string
}

/** Names and promises alone. */
export const named = (oracles: ReadonlyArray<Named>): ReadonlyArray<Named> =>
  oracles.map(({ name, promise }) => ({ name, promise }))

/** Holds what was seen against promises. As `violations` of the domain, but that it makes nothing where nothing is wrong. */
export const hold = <Seen>(
  oracles: ReadonlyArray<Invariant<Seen>>,
  seen: Seen,
  { id, workspaceId }: { readonly workspaceId: WorkspaceId; readonly id: string },
  found: Array<Violation>
): void => {
  for (const { check, name } of oracles) {
    const details = check(seen)
    for (let index = 0; index < details.length; index++) {
      found.push({ invariant: name, workspaceId, id, detail: details[index]! })
    }
  }
}
