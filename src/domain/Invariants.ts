/**
 * The named invariants, by what they need to see. Tests, the simulator after every step, and the audit of a live
 * database run these very checks.
 */
import { type Invariant, violations, type Violation } from "./Invariant.ts"
import type { Memory } from "./Memory.ts"
import { memoryInvariants } from "./MemoryInvariants.ts"
import { accountInvariants, authorizationInvariants } from "./MoneyInvariants.ts"
import type { Operation } from "./Operation.ts"
import { keyInvariants, laneInvariants, operationInvariants } from "./OperationInvariants.ts"
import {
  laneSlices,
  type LaneSlice,
  memorySlices,
  type MemorySlice,
  operationSlices,
  type OperationSlice,
  type Snapshot,
  workspaceSlices,
  type WorkspaceSlice
} from "./Snapshot.ts"
import { memoryTransitions, operationTransitions, type Transition } from "./TransitionInvariants.ts"

/** These need the rows of one operation, and nothing else. */
export const perOperation: ReadonlyArray<Invariant<OperationSlice>> = [
  ...operationInvariants,
  ...authorizationInvariants
]

/** These need the operations of one lane that are not terminal. */
export const perLane: ReadonlyArray<Invariant<LaneSlice>> = laneInvariants

/** These need all the money and keys of one workspace. */
export const perWorkspace: ReadonlyArray<Invariant<WorkspaceSlice>> = [...keyInvariants, ...accountInvariants]

/** These need the rows of one memory. */
export const perMemory: ReadonlyArray<Invariant<MemorySlice>> = memoryInvariants

export const checkOperation = (slice: OperationSlice) => violations(perOperation, slice, slice.ref)
export const checkLane = (slice: LaneSlice) => violations(perLane, slice, { ...slice.ref, id: slice.ref.lane })
export const checkWorkspace = (slice: WorkspaceSlice) =>
  violations(perWorkspace, slice, { workspaceId: slice.workspaceId, id: slice.workspaceId })
export const checkMemory = (slice: MemorySlice) => violations(perMemory, slice, slice.ref)

/** One operation, and one memory, at two moments. */
export const checkOperationTransition = (seen: Transition<Operation>) =>
  violations(operationTransitions, seen, seen.before)
export const checkMemoryTransition = (seen: Transition<Memory>) => violations(memoryTransitions, seen, seen.before)

/** Every invariant, on all of it. */
export const checkSnapshot = (snapshot: Snapshot): ReadonlyArray<Violation> => [
  ...operationSlices(snapshot).flatMap(checkOperation),
  ...laneSlices(snapshot).flatMap(checkLane),
  ...workspaceSlices(snapshot).flatMap(checkWorkspace),
  ...memorySlices(snapshot).flatMap(checkMemory)
]

/** Their names and promises, for reports. */
export const catalogue: ReadonlyArray<{ readonly name: string; readonly promise: string }> = [
  ...perOperation,
  ...perLane,
  ...perWorkspace,
  ...perMemory,
  ...operationTransitions,
  ...memoryTransitions
].map(({ name, promise }) => ({ name, promise }))
