/** A world that has a database and nothing else, and processes that each do one thing to it. */
import { assert } from "@effect/vitest"
import { Cause, Context, Duration, Effect, Exit } from "effect"
import { WorkspaceId } from "../../src/domain/Ids.ts"
import * as Money from "../../src/domain/Ledger.ts"
import type { Operation } from "../../src/domain/Operation.ts"
import { ApiKeys } from "../../src/services/ApiKeys.ts"
import { Ledger } from "../../src/services/Ledger.ts"
import { Store } from "../../src/services/Store.ts"
import { OutcomeUnknown, Transaction } from "../../src/services/Transaction.ts"
import { VectorIndex } from "../../src/services/VectorIndex.ts"
import type { Commit } from "../../src/sim/Commit.ts"
import { SimDatabase, type SimDatabaseOptions } from "../../src/sim/database/SimDatabase.ts"
import { type Fault, type FaultKind, keyOf, planned, type Point } from "../../src/sim/Faults.ts"
import { HostClock } from "../../src/sim/HostClock.ts"
import { Kernel } from "../../src/sim/Kernel.ts"
import { type Process, spawn } from "../../src/sim/Process.ts"
import { bare, done } from "../services/operations.ts"

export const workspaceId = WorkspaceId.make("sim")
export const connection = new OutcomeUnknown({ reason: "connection" })
export const contention = new OutcomeUnknown({ reason: "contention" })

const price: Money.Price = { policy: "infer-add", stored: 2, noMemory: 2 }

/** An authorization of this amount, open, and its transfer. */
export const grantOf = ({ id, workspaceId }: Operation, reserved: bigint, no = 1) =>
  Money.reserve({ workspaceId, operationId: id, no, reserved, price })

/** What there is before anybody does anything. */
export interface Before {
  readonly credits?: bigint
  readonly operations?: ReadonlyArray<Operation>
}

type Options = Pick<SimDatabaseOptions, "connections" | "leaseConnections"> & Before & {
  readonly seed?: number
  /** How far the clock of the database is ahead. */
  readonly aheadMs?: number
  readonly faults?: ReadonlyArray<Fault>
}

/** A process that does one thing. */
export type Doing<A, E> = Process & { readonly exit: Exit.Exit<A, E> | null }

export type World = ReturnType<typeof makeWorld>

export const makeWorld = ({ aheadMs = 0, credits = 100n, faults = [], operations = [], seed = 1, ...pools }: Options = {}) => {
  const kernel = new Kernel({ seed, budget: Infinity })
  const plan = planned(faults)
  const points: Array<Point> = []
  const strikes = {
    healed: false,
    strike: (point: Point, kinds: ReadonlyArray<FaultKind>) => {
      points.push(point)
      return plan.strike(point, kinds, kernel.now)?.kind ?? null
    },
    detail: (point: Point, kind: FaultKind) => keyOf(kernel.key, point, kind)
  }
  const clock = new HostClock(kernel, { offsetMs: aheadMs })
  const database = new SimDatabase({ kernel, strikes, clock, ...pools })
  const context = database.ports()
  const commits: Array<Commit> = []
  database.onCommit((commit) => commits.push(commit))
  const ports = {
    operations: Context.get(context, Store).operations,
    memories: Context.get(context, Store).memories,
    ledger: Context.get(context, Ledger),
    keys: Context.get(context, ApiKeys),
    index: Context.get(context, VectorIndex),
    transaction: Context.get(context, Transaction).run
  }

  /** Starts a process that does this, `at` milliseconds after the beginning. */
  const start = <A, E>(name: string, at: number, effect: Effect.Effect<A, E>): Doing<A, E> =>
    spawn(kernel, { name, main: () => Effect.delay(effect, at) }) as Doing<A, E>

  /** Lets everything happen that is to happen. */
  const settle = () => void kernel.run()

  const prepare = Effect.gen(function*() {
    yield* ports.keys.makeWorkspace(workspaceId)
    if (credits > 0n) yield* ports.ledger.grant(workspaceId, credits, "initial")
    if (operations.length > 0) yield* ports.operations.insert(operations.map((operation) => bare(operation)))
  })
  const first = start("prepare", 0, prepare)
  kernel.run({ until: () => first.exit !== null })
  if (first.exit === null || Exit.isFailure(first.exit)) throw new Error("nothing could be prepared", { cause: first.exit })
  commits.length = 0
  points.length = 0

  return { ...ports, kernel, database, commits, points, unused: plan.unused, start, settle, began: kernel.now }
}

/** Operations that nobody works on, for whoever needs something to spend on. */
export const spender = (): Operation => done(workspaceId)

/** Locks the account and stands still with it for so long. */
export const holding = ({ ledger, transaction }: Pick<World, "ledger" | "transaction">, ms: number) =>
  transaction(Effect.andThen(ledger.lock([workspaceId]), Effect.sleep(ms)))

/** How long an effect takes, in virtual milliseconds. */
export const lasting = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.map(Effect.timed(Effect.exit(effect)), ([duration, exit]) => ({ ms: Duration.toMillis(duration), exit }))

/** What a process came to. It must have come to an end. */
export const outcome = <A, E>({ exit, id }: { readonly id: string; readonly exit: Exit.Exit<A, E> | null }): A => {
  assert.isNotNull(exit, `${id} has not ended`)
  if (Exit.isFailure(exit)) throw new Error(`${id} has failed`, { cause: exit.cause })
  return exit.value
}

/** What an effect was told instead of an answer. */
export const told = <A, E>(exit: Exit.Exit<A, E>): unknown => Exit.isFailure(exit) ? Cause.squash(exit.cause) : "nothing"
