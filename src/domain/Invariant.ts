/** A promise about committed rows that can be checked. A detail holds ids, numbers and states, never a text. */
import type { WorkspaceId } from "./Ids.ts"

export interface Invariant<Slice> {
  readonly name: string
  /** The promise, in one sentence. */
  readonly promise: string
  /** What breaks it, one detail each; empty when it holds. */
  readonly check: (slice: Slice) => ReadonlyArray<string>
}

export interface Violation {
  readonly invariant: string
  readonly workspaceId: WorkspaceId
  /** The operation, memory, lane or workspace. */
  readonly id: string
  readonly detail: string
}

/** The detail, unless the condition holds. */
export const unless = (holds: boolean, detail: string): ReadonlyArray<string> => holds ? [] : [detail]

/** The same items in the same order. */
export const same = (left: ReadonlyArray<string>, right: ReadonlyArray<string>): boolean =>
  left.length === right.length && left.every((item, index) => item === right[index])

/** Holds a slice against invariants. `id` names it. */
export const violations = <Slice>(
  invariants: ReadonlyArray<Invariant<Slice>>,
  slice: Slice,
  { id, workspaceId }: { readonly workspaceId: WorkspaceId; readonly id: string }
): ReadonlyArray<Violation> =>
  invariants.flatMap(({ check, name }) => check(slice).map((detail) => ({ invariant: name, workspaceId, id, detail })))
