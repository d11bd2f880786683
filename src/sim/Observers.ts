/** Those who watch a world: the oracles, a verdict on what programs and the world itself do, and a count of what is open. */
import type { ExtractionRequest } from "../services/Provider.ts"
import type { Violation } from "../domain/Invariant.ts"
import type { OperationRef } from "../domain/Ids.ts"
import { Backlog } from "./Backlog.ts"
import type { Commit } from "./Commit.ts"
import type { Database } from "./Database.ts"
import type { Fault } from "./Faults.ts"
import type { Kernel } from "./Kernel.ts"
import { Oracles } from "./oracles/Oracles.ts"
import { madeUp, vectorOf } from "./ports/SimProvider.ts"
import type { Process } from "./Process.ts"
import type { SimSettings } from "./SimSettings.ts"
import type { Told } from "./Told.ts"
import { Verdicts } from "./Verdicts.ts"
import { canary } from "./Workload.ts"

export interface ObserversOptions {
  readonly kernel: Kernel
  readonly database: Database
  readonly settings: SimSettings
  readonly blind: ReadonlyArray<string>
  /** The operation that a question to the model is about, as far as it is accepted. */
  readonly operationOf: (request: ExtractionRequest) => OperationRef | null
}

export class Observers {
  readonly oracles: Oracles
  readonly verdicts: Verdicts
  readonly backlog = new Backlog()
  private readonly options: ObserversOptions

  constructor(options: ObserversOptions) {
    this.options = options
    const { blind, database, kernel, settings } = options
    this.verdicts = new Verdicts(blind)
    this.oracles = new Oracles({
      settings,
      blind,
      canaries: [canary],
      neverStored: [madeUp],
      vectorOf,
      now: () => kernel.now,
      databaseNow: () => database.now,
      locked: (ref) => database.isLocked(ref)
    })
    database.onCommit((commit) => this.committed(commit))
  }

  /** Something is wrong: nothing that follows says more. */
  get broken(): boolean {
    return this.oracles.violations.length > 0 || this.verdicts.violations.length > 0
  }

  get violations(): ReadonlyArray<Violation> {
    return [...this.verdicts.violations, ...this.oracles.violations]
  }

  struck(fault: Fault): void {
    this.oracles.struck(fault)
  }

  told(told: Told): void {
    this.oracles.told(told)
  }

  died({ id, state }: Process): void {
    this.oracles.died(id, this.options.kernel.now)
    if (state === "exited") this.oracles.left(id)
  }

  resumed({ id }: Process): void {
    this.oracles.resumed(id, this.options.kernel.now)
  }

  broke(id: string, why: string): void {
    this.verdicts.add("no-defects", id, why)
  }

  logged(id: string, level: string, line: string): void {
    this.verdicts.overhear(id, level, line)
    this.oracles.overheard("the log", line)
  }

  notified(payload: string): void {
    this.oracles.overheard("the queue", payload)
  }

  asked(request: ExtractionRequest, process: Process): void {
    const ref = this.options.operationOf(request)
    if (ref === null) return this.broke(process.id, "the model was asked about what nobody has said")
    this.oracles.extracting(ref, process.id, request)
  }

  answered(request: ExtractionRequest, process: Process, facts: number): void {
    const ref = this.options.operationOf(request)
    if (ref !== null) this.oracles.extracted(ref, process.id, facts)
  }

  over(request: ExtractionRequest, process: Process, waitMs: number | null): void {
    const ref = this.options.operationOf(request)
    if (ref !== null) this.oracles.extractionOver(ref, process.id, waitMs)
  }

  private committed(commit: Commit): void {
    this.backlog.take(commit)
    this.oracles.commit(commit, this.options.database.committed)
  }
}
