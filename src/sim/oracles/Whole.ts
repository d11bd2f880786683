/** Everything at once: that commits told all there is, and that nothing was overlooked on the way. */
import { WorkspaceId } from "../../domain/Ids.ts"
import type { Violation } from "../../domain/Invariant.ts"
import type { Snapshot } from "../../domain/Snapshot.ts"
import type { Committed, Rows, TableName } from "../Commit.ts"
import type { Named } from "./Oracle.ts"
import type { Tracks } from "./Tracks.ts"

export const toldInFull: Named = {
  name: "commits-tell-everything",
  promise: "Every change is told by a commit, and begins where the last one of its row ended."
}

export const foundOnTheWay: Named = {
  name: "found-on-the-way",
  promise: "What is found step by step is what is found in the whole."
}

/** Whatever belongs to no workspace. */
export const nowhere = WorkspaceId.make("world")

export const snapshotOf = (committed: Committed): Snapshot => ({
  operations: [...committed.operations.values()],
  keys: [...committed.keys.values()],
  authorizations: [...committed.authorizations.values()],
  transfers: [...committed.transfers.values()],
  accounts: [...committed.accounts.values()],
  memories: [...committed.memories.values()],
  history: [...committed.history.values()],
  projections: [...committed.projections.values()],
  plans: [...committed.plans.values()],
  inputs: [...committed.inputs.values()],
  vectors: [...committed.vectors.values()].filter(({ deleted }) => !deleted)
})

/** Rows that are committed and were never told, or the other way round. */
export const untold = ({ rows }: Tracks, committed: Committed): ReadonlyArray<string> =>
  (Object.keys(committed) as ReadonlyArray<TableName>).flatMap((name) => {
    const there = committed[name] as ReadonlyMap<string, Rows[TableName]>
    const told = rows.get(name)
    const same = there.size === (told?.size ?? 0) && [...there].every(([key, row]) => told!.get(key) === row)
    return same ? [] : [`${name}: ${there.size} rows are there, and ${told?.size ?? 0} were told, or others`]
  })

const isSame = (a: Violation, b: Violation): boolean =>
  a.invariant === b.invariant && a.id === b.id && a.workspaceId === b.workspaceId

/** What only one of two looks has seen, as violations of their own. */
export const disagreements = (
  onTheWay: ReadonlyArray<Violation>,
  inTheWhole: ReadonlyArray<Violation>
): ReadonlyArray<Violation> => {
  const alone = (one: ReadonlyArray<Violation>, other: ReadonlyArray<Violation>, where: string) =>
    one.filter((violation) => !other.some((another) => isSame(violation, another)))
      .map(({ id, invariant, workspaceId }) =>
        ({ invariant: foundOnTheWay.name, workspaceId, id, detail: `${invariant} is broken, and only seen ${where}` }))
  return [...alone(onTheWay, inTheWhole, "step by step"), ...alone(inTheWhole, onTheWay, "in the whole")]
}
