/**
 * Runs transactions of a simulated world on a real Postgres that has one session. Whoever has the session keeps it until
 * its transaction ends; the others wait, as for a lock on everything.
 */
import { Result } from "effect"
import type { Commit } from "../Commit.ts"
import { Engine, type Statement } from "../database/Engine.ts"
import { Lock } from "../database/Lock.ts"
import type { Tx } from "../database/Tx.ts"
import type { Kernel } from "../Kernel.ts"
import type { Mirror } from "./Mirror.ts"
import type { Answer, Pglite } from "./Pglite.ts"

export interface SqlEngineOptions {
  readonly kernel: Kernel
  readonly server: Pglite
  readonly mirror: Mirror
  /** Milliseconds of the database clock. */
  readonly clock: () => number
}

export class SqlEngine extends Engine {
  private readonly options: SqlEngineOptions
  private readonly session = new Lock()
  private readonly hearers: Array<(commit: Commit) => void> = []
  /** Whose BEGIN the server has seen. */
  private begun: Tx | null = null

  constructor(options: SqlEngineOptions) {
    super(options.kernel)
    this.options = options
  }

  override onCommit(listener: (commit: Commit) => void): void {
    this.hearers.push(listener)
  }

  /** A statement that is a transaction of its own, or of one that is open. An error of the server is its answer. */
  ask(sql: string, params: ReadonlyArray<unknown>, alone: boolean): Statement<Answer> {
    const engine = this
    return {
      waits: true,
      body: function*(tx) {
        yield* tx.lock(engine.session)
        return engine.perform(tx, sql, params, alone)
      }
    }
  }

  override commit(tx: Tx, at: number): void {
    if (tx.failed || tx.over) return super.rollBack(tx)
    if (this.session.holder === tx) this.makeDurable(tx, at)
    super.commit(tx, at)
  }

  override rollBack(tx: Tx): void {
    this.forget(tx)
    super.rollBack(tx)
  }

  override refuse(tx: Tx): void {
    this.forget(tx)
    super.refuse(tx)
  }

  private perform(tx: Tx, sql: string, params: ReadonlyArray<unknown>, alone: boolean): Answer {
    const { clock, server } = this.options
    if (!alone && this.begun !== tx) {
      server.must("begin", [], tx.startedAt)
      this.begun = tx
    }
    const answer = server.query(sql, params, clock())
    if (Result.isFailure(answer)) this.refuse(tx)
    return answer
  }

  /** Everything that it has done is durable, and told. */
  private makeDurable(tx: Tx, at: number): void {
    const { mirror, server } = this.options
    if (this.begun === tx) {
      server.must("commit", [], at)
      this.begun = null
    }
    const changes = mirror.changes()
    if (changes.length === 0) return
    for (const hear of this.hearers) hear({ at, by: tx.by, sentAt: tx.sentAt, changes })
  }

  private forget(tx: Tx): void {
    if (this.begun !== tx) return
    this.options.server.must("rollback")
    this.begun = null
  }
}
