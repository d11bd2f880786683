/**
 * Everything that is committed, arranged as oracles want it: by operation, lane, memory and workspace. A commit moves
 * only what it touches.
 */
import type { Lane, MemoryId, OperationId, WorkspaceId } from "../../domain/Ids.ts"
import type { KeyRow } from "../../services/OperationStore.ts"
import type { Change, Commit, Committed, Rows, TableName } from "../Commit.ts"
import { LaneTrack } from "./LaneTrack.ts"
import { MemoryTrack } from "./MemoryTrack.ts"
import { did, isRenewal, OperationTrack } from "./OperationTrack.ts"
import { WorkspaceTrack } from "./WorkspaceTrack.ts"

/** A key as it is committed, and since when, in virtual time. */
export interface KnownKey {
  readonly row: KeyRow
  readonly at: number
}

/** A row before and after a commit. */
interface Moved<Name extends TableName> {
  readonly before: Rows[Name] | null
  readonly after: Rows[Name] | null
}

export class Tracks {
  readonly operations = new Map<string, OperationTrack>()
  readonly lanes = new Map<string, LaneTrack>()
  readonly memories = new Map<string, MemoryTrack>()
  readonly workspaces = new Map<WorkspaceId, WorkspaceTrack>()
  readonly keys = new Map<string, KnownKey>()
  /** Every row of every table, by what commits said. */
  readonly rows = new Map<TableName, Map<string, Rows[TableName]>>()
  /** The clock of the fair queue, and the largest tag that was ever claimed. */
  clock = 0
  served = 0

  /** The commit in hand, when it came in virtual time, and how many there were up to it. */
  commit!: Commit
  now = 0
  count = 0
  /** The clock before it. */
  clockBefore = 0
  /** Its changes that do not begin where the last ones of their row ended. */
  readonly torn: Array<string> = []
  /** What it touched. */
  readonly touched = {
    operations: [] as Array<OperationTrack>,
    lanes: [] as Array<LaneTrack>,
    memories: [] as Array<MemoryTrack>,
    workspaces: [] as Array<WorkspaceTrack>
  }

  /** Takes in what was there before the first commit: that was not the doing of any. */
  begin(changes: ReadonlyArray<Change>, committed: Committed): void {
    const changed = new Map(changes.map(({ before, key, table }) => [`${table} ${key}`, before]))
    const take = (table: TableName, key: string, after: Rows[TableName]) => {
      const change = { table, key, before: null, after } as Change
      this.mirror(change)
      this.arrange(change)
    }
    for (const table of Object.keys(committed) as ReadonlyArray<TableName>) {
      for (const [key, row] of committed[table]) if (!changed.has(`${table} ${key}`)) take(table, key, row)
    }
    for (const { before, key, table } of changes) if (before !== null) take(table, key, before)
  }

  /** Takes in a commit. What it did stands beside each track until the next one. */
  take(commit: Commit, now: number): void {
    const { lanes, memories, operations, workspaces } = this.touched
    operations.length = lanes.length = memories.length = workspaces.length = this.torn.length = 0
    this.commit = commit
    this.now = now
    this.count++
    this.clockBefore = this.clock
    for (const change of commit.changes) {
      this.mirror(change)
      this.arrange(change)
    }
    for (const track of operations) {
      const { before, operation } = track
      if (operation === null || operation === before) continue
      if (track.entered) this.workspace(operation.workspaceId).entered.push(track)
      if (track.reopened) track.reopenings.push(now)
      if (track.claimed) this.served = Math.max(this.served, operation.fairTag)
      if (!track.renewed) track.versions.push(now, operation)
    }
  }

  /** What the commit in hand did is the past from now on. */
  learn(): void {
    for (const track of this.touched.operations) {
      track.learn(this.now)
      if (track.operation !== track.before) track.clock = this.clock
    }
    for (const track of this.touched.memories) track.learn()
    for (const track of this.touched.workspaces) {
      if (track.before !== (track.accounts[0] ?? null)) track.clock = this.clock
    }
  }

  operation(workspaceId: WorkspaceId, id: OperationId): OperationTrack {
    const key = `${workspaceId}/${id}`
    let track = this.operations.get(key)
    if (track === undefined) this.operations.set(key, track = new OperationTrack(workspaceId, id))
    if (track.touched !== this.count) {
      track.touched = this.count
      track.commit = this.commit
      track.before = track.operation
      track.did = 0
      track.written = track.announced = null
      this.touched.operations.push(track)
    }
    return track
  }

  private lane(workspaceId: WorkspaceId, lane: Lane): LaneTrack {
    const key = `${workspaceId}/${lane}`
    let track = this.lanes.get(key)
    if (track === undefined) this.lanes.set(key, track = new LaneTrack(workspaceId, lane))
    if (track.touched !== this.count) {
      track.touched = this.count
      this.touched.lanes.push(track)
    }
    return track
  }

  private memory(workspaceId: WorkspaceId, id: MemoryId): MemoryTrack {
    const key = `${workspaceId}/${id}`
    let track = this.memories.get(key)
    if (track === undefined) this.memories.set(key, track = new MemoryTrack(workspaceId, id))
    if (track.touched !== this.count) {
      track.touched = this.count
      track.before = track.memory
      track.begun.length = track.finished.length = 0
      track.vectorBefore = track.vectorAfter = null
      this.touched.memories.push(track)
    }
    return track
  }

  private workspace(workspaceId: WorkspaceId): WorkspaceTrack {
    let track = this.workspaces.get(workspaceId)
    if (track === undefined) this.workspaces.set(workspaceId, track = new WorkspaceTrack(workspaceId))
    if (track.touched !== this.count) {
      track.touched = this.count
      track.before = track.accounts[0] ?? null
      track.entered.length = 0
      this.touched.workspaces.push(track)
    }
    return track
  }

  private mirror({ after, before, key, table }: Change): void {
    let rows = this.rows.get(table)
    if (rows === undefined) this.rows.set(table, rows = new Map())
    if ((rows.get(key) ?? null) !== before) this.torn.push(`${table} ${key}`)
    if (after === null) rows.delete(key)
    else rows.set(key, after)
  }

  private arrange(change: Change): void {
    switch (change.table) {
      case "operations":
        return this.moveOperation(change)
      case "keys":
        return this.moveKey(change)
      case "inputs":
        return this.moveInput(change)
      case "plans":
        return this.movePlan(change)
      case "outbox":
        return this.moveOutbox(change)
      case "authorizations":
        return this.moveAuthorization(change)
      case "transfers":
        return this.moveTransfer(change)
      case "accounts":
        return this.moveAccount(change)
      case "memories":
        return this.moveMemory(change)
      case "history":
        return this.moveHistory(change)
      case "projections":
        return this.moveProjection(change)
      case "vectors":
        return this.moveVector(change)
      case "fairClock":
        this.clock = change.after?.value ?? 0
    }
  }

  private moveOperation({ after, before }: Moved<"operations">): void {
    const row = after ?? before!
    const track = this.operation(row.workspaceId, row.id)
    track.operation = after
    if (before !== null && after !== null && track.lane !== null && isRenewal(before, after)) {
      return track.lane.replace(before, after)
    }
    if (before !== null && before.lane !== row.lane) this.lane(row.workspaceId, before.lane).replace(before, null)
    track.lane = this.lane(row.workspaceId, row.lane)
    track.lane.replace(before, after)
  }

  private moveKey({ after, before }: Moved<"keys">): void {
    if (before !== null) {
      const track = this.operation(before.workspaceId, before.operationId)
      replace(track.keys, before, null)
      track.did |= did.unkeyed
      this.keys.delete(`${before.workspaceId}/${before.keyHash}`)
    }
    if (after !== null) {
      const track = this.operation(after.workspaceId, after.operationId)
      replace(track.keys, null, after)
      track.did |= did.keyed
      this.keys.set(`${after.workspaceId}/${after.keyHash}`, { row: after, at: this.now })
    }
    this.workspace((after ?? before!).workspaceId).key(before, after)
  }

  private moveInput({ after, before }: Moved<"inputs">): void {
    const { id, workspaceId } = after ?? before!
    const track = this.operation(workspaceId, id)
    track.hasInput = after !== null
    track.input ??= after?.input ?? null
    track.did |= after === null ? did.tookInput : did.gaveInput
    track.inputGoneAt = after === null ? this.now : null
  }

  private movePlan({ after, before }: Moved<"plans">): void {
    const { id, workspaceId } = after ?? before!
    const track = this.operation(workspaceId, id)
    track.hasPlan = after !== null
    track.did |= after === null ? did.thawed : did.froze
    track.written = after?.plan ?? null
  }

  private moveOutbox({ after, before }: Moved<"outbox">): void {
    if (after === null || before !== null) return
    const track = this.operation(after.workspaceId, after.id)
    track.did |= did.announced
    track.announced = after.state
  }

  private moveAuthorization({ after, before }: Moved<"authorizations">): void {
    const { operationId, workspaceId } = after ?? before!
    const track = this.operation(workspaceId, operationId)
    replace(track.authorizations, before, after)
    track.did |= before === null ? did.authorized : did.rewrote
    this.workspace(workspaceId).authorization(before, after)
  }

  private moveTransfer({ after, before }: Moved<"transfers">): void {
    const { operationId, workspaceId } = after ?? before!
    this.workspace(workspaceId).transfer(before, after)
    if (operationId === null) return
    const track = this.operation(workspaceId, operationId)
    replace(track.transfers, before, after)
    if (before !== null) track.did |= did.rewrote
    if (after?.kind === "reserve") track.did |= did.reserved
    else if (after?.kind === "charge") track.did |= did.charged
    else if (after?.kind === "refund") track.did |= did.refunded
    else track.did |= did.rewrote
  }

  private moveAccount({ after, before }: Moved<"accounts">): void {
    const track = this.workspace((after ?? before!).workspaceId)
    replace(track.accounts, before, after)
    if (after !== null) track.versions.push(this.now, after)
  }

  private moveMemory({ after, before }: Moved<"memories">): void {
    const { id, workspaceId } = after ?? before!
    const track = this.memory(workspaceId, id)
    track.memory = after
    if (after !== null) track.versions.push(this.now, after)
  }

  private moveHistory({ after, before }: Moved<"history">): void {
    const { memoryId, operationId, workspaceId } = after ?? before!
    replace(this.memory(workspaceId, memoryId).history, before, after)
    const maker = this.operation(workspaceId, operationId)
    replace(maker.history, before, after)
    maker.did |= before === null ? did.recorded : did.rewrote
  }

  private moveProjection({ after, before }: Moved<"projections">): void {
    if (before !== null && after !== null) return
    const { id, operationId, version, workspaceId } = after ?? before!
    const track = this.memory(workspaceId, id)
    replace(track.projections, before === null ? null : version, after === null ? null : version)
    ;(before === null ? track.begun : track.finished).push(version)
    this.operation(workspaceId, operationId).waiting += before === null ? 1 : -1
  }

  private moveVector({ after, before }: Moved<"vectors">): void {
    const { id, workspaceId } = after ?? before!
    const track = this.memory(workspaceId, id)
    replace(track.vectors, versionOf(before), versionOf(after))
    track.vectorBefore = before
    track.vectorAfter = after
  }
}

/** A tombstone in the index holds no version. */
const versionOf = (row: Rows["vectors"] | null): number | null => row === null || row.deleted ? null : row.version

const replace = <Row>(rows: Array<Row>, before: Row | null, after: Row | null): void => {
  const place = before === null ? -1 : rows.indexOf(before)
  if (place >= 0 && after !== null) rows[place] = after
  else if (place >= 0) rows.splice(place, 1)
  else if (after !== null) rows.push(after)
}
