/** Port operations on the simulated database: each connection is a process of its own, in a world where nothing goes wrong. */
import { Context, Effect, Layer } from "effect"
import { SimDatabase } from "../../src/sim/database/SimDatabase.ts"
import { Kernel } from "../../src/sim/Kernel.ts"
import { launch, type Server } from "../../src/sim/Server.ts"
import type { Strikes } from "../../src/sim/Strikes.ts"
import { isCircular, type Told } from "../history.ts"
import { type Luck, picks, type Side, type Wait } from "../kind.ts"
import { type Hands, make as makeHands } from "./hands.ts"
import { Clerk, Office } from "./office.ts"
import * as Plain from "./plain.ts"
import { credits, type Program, type Sequence, type Step, workspaces } from "./sequence.ts"
import { workspaceId } from "./names.ts"
import { tables } from "./tables.ts"

/** As long as everybody who waits needs to have looked for a circle, in milliseconds. */
const lookedMs = 1_001

const calm: Strikes = {
  strike: () => null,
  detail: (point) => {
    throw new Error(`nothing struck at ${point.label}`)
  },
  healed: true
}

export const make = ({ connections, name }: Sequence, luck: Luck): Side<Step> => new Model(name, connections, luck)

class Working extends Context.Service<Working, Hands>()("indelible/differential/Working") {}

class Model extends Office {
  readonly rows: Effect.Effect<string>
  readonly notes: ReadonlyArray<string>
  protected readonly settled: Effect.Effect<ReadonlyArray<Wait>>
  private readonly kernel: Kernel
  private readonly database: SimDatabase
  private readonly processes: ReadonlyArray<Server<Working>>
  private readonly pauses: ReadonlySet<number>

  constructor(seed: string, connections: number, { draw, pauses }: Luck) {
    const kernel = new Kernel({ seed: `${seed}/${draw}`, budget: Infinity })
    const database = new SimDatabase({ kernel, strikes: calm, connections: 1, leaseConnections: 1, pick: picks(seed, draw) })
    const told: Array<Told> = []
    const notes: Array<string> = []
    const processes: Array<Server<Working>> = []
    super(
      Array.from({ length: connections }, (_, on) =>
        new Clerk({
          on,
          now: () => database.now,
          tell: (one) => {
            told.push(one)
            if (hasPassedOver(database, one)) notes.push("SKIP LOCKED has passed over all rows")
          },
          wake: (fiber, resume) => {
            const process = processes[on]!
            kernel.post(process, "signal", "turn", () => process.resumeWith(fiber, resume))
          }
        })),
      told
    )
    this.notes = notes
    this.kernel = kernel
    this.database = database
    this.pauses = pauses
    open(database)
    const ports = Layer.succeedContext(database.ports())
    for (const clerk of this.clerks) {
      const hands = Layer.effect(Working, Effect.provideContext(makeHands(clerk), clerk.context)).pipe(Layer.provide(ports))
      processes.push(launch(kernel, { name: String(clerk.on), layer: () => hands }))
    }
    this.processes = processes
    this.run(() => processes.every(({ up }) => up))
    this.settled = Effect.sync(() => {
      this.settle()
      while (isCircular(this.waits)) {
        this.pass(lookedMs)
        this.settle()
      }
      return this.waits
    })
    this.rows = Effect.sync(() =>
      tables.map((name) => `${name} ${Plain.plain([...database.committed[name].values()], database.now, false)}`).join("\n"))
  }

  protected override before(at: number): void {
    if (this.pauses.has(at)) this.pass(lookedMs)
  }

  protected begin(clerk: Clerk, act: Program): Effect.Effect<void> {
    return Effect.sync(() => {
      const program = Effect.flatMap(Working, (hands) => clerk.program(hands, act))
      clerk.running = true
      this.processes[clerk.on]!.serve(act.do, program, () => {})
    })
  }

  private get waits(): ReadonlyArray<Wait> {
    const number = (process: string) => this.processes.findIndex(({ id }) => id === process)
    return this.database.waits.map(({ behind, by }) => ({ on: number(by), for: behind.map(number) }))
  }

  private settle(): void {
    this.run(() => {
      const busy = this.clerks.filter((clerk) => clerk.busy)
      if (busy.length === 0) return true
      const { waits } = this.database
      return busy.every(({ on }) => waits.some(({ by }) => by === this.processes[on]!.id))
    })
  }

  private run(until: () => boolean): void {
    const { _tag } = this.kernel.run({ until })
    if (_tag !== "Reached") throw new Error(`the model does not come to rest: ${_tag}`)
  }

  private pass(forMs: number): void {
    this.kernel.run({ forMs })
  }
}

/** What is there before anybody does anything. */
const open = ({ tables: { accounts, workspaces: rows } }: SimDatabase): void => {
  for (const name of workspaces) {
    const id = workspaceId(name)
    rows.begin({ id })
    accounts.begin({ workspaceId: id, balances: { available: credits, reserved: 0n, consumed: 0n, issued: credits }, fairTime: 0 })
  }
}

/** Whether nothing was claimed although there is something, for somebody has it. */
const hasPassedOver = (database: SimDatabase, { what }: Told): boolean =>
  /^operations\.claimable: .*"operations":\[\]/.test(what) &&
  [...database.committed.operations.values()].some((row) => row.ready && row.state === "pending" && database.isLocked(row))
