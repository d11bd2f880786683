/** A sequence on the simulated database: its engine and its tables, with the statements of sequences as ports write theirs. */
import { Effect } from "effect"
import type { DatabaseError } from "../../src/sim/database/DatabaseError.ts"
import { Engine } from "../../src/sim/database/Engine.ts"
import { Index } from "../../src/sim/database/Index.ts"
import { removeLocked } from "../../src/sim/database/Deletion.ts"
import { matching, type Slot, Table, takeFree } from "../../src/sim/database/Table.ts"
import { Lock } from "../../src/sim/database/Lock.ts"
import { type Steps, Tx } from "../../src/sim/database/Tx.ts"
import { Kernel } from "../../src/sim/Kernel.ts"
import { isCircular, type Told } from "../history.ts"
import { type Luck, picks, type Settled, type Side } from "../kind.ts"
import { enough, homes, type Sequence, type Statement, type Step, things } from "./sequence.ts"

interface Thing {
  readonly id: string
  readonly code: string | null
  readonly n: number
  readonly at: number
  readonly home: string | null
}

interface Home {
  readonly id: string
}

/** As long as everybody who waits needs to have looked for a circle, in milliseconds. */
const lookedMs = 1_001
/** As long as nobody waits. */
const patienceMs = 10_001

export const make = ({ name }: Sequence, luck: Luck): Side<Step> => new Model(name, luck)

class Model implements Side<Step> {
  readonly rows: Effect.Effect<string>
  readonly notes: Array<string> = []
  private readonly kernel: Kernel
  private readonly engine: Engine
  private readonly pauses: ReadonlySet<number>
  private readonly tables = new Toys((note) => this.notes.push(note))
  private readonly open = new Map<number, Tx>()
  private told: Array<Told> = []
  private statements = 0

  constructor(seed: string, { draw, pauses }: Luck) {
    this.kernel = new Kernel({ seed: `${seed}/${draw}` })
    this.engine = new Engine(this.kernel, picks(seed, draw))
    this.pauses = pauses
    this.rows = Effect.sync(() => {
      const tx = this.begin("rows")
      const rows = JSON.stringify([this.tables.read(tx), [...this.tables.homes.committed.keys()].toSorted()])
      this.engine.rollBack(tx)
      return rows
    })
  }

  step(step: Step, at: number): Effect.Effect<Settled> {
    return Effect.sync(() => {
      this.told = []
      if (this.pauses.has(at)) this.pass(lookedMs)
      this.start(step)
      if (step.hurried === true && this.engine.waits.length > 0) this.pass(patienceMs)
      while (isCircular(this.waits)) this.pass(lookedMs)
      return { told: this.told, waits: this.waits }
    })
  }

  private get waits() {
    return this.engine.waits.map(({ by, behind }) => ({ on: Number(by.by), for: behind.map((tx) => Number(tx.by)) }))
  }

  private start({ act, on }: Step): void {
    const known = this.open.get(on)
    if (act.do === "cancel") return this.engine.cancel(known!)
    if (act.do === "commit" || act.do === "rollback") {
      this.open.delete(on)
      if (act.do === "commit" && !known!.failed) this.engine.commit(known!, this.kernel.now)
      else this.engine.rollBack(known!)
      return void this.told.push({ on, what: "ended" })
    }
    const tx = known ?? this.begin(String(on))
    this.open.set(on, tx)
    this.pass(1)
    tx.next(this.kernel.now, this.kernel.now, this.kernel.key.of(this.statements++))
    this.engine.execute(tx, { waits: true, body: (tx) => this.tables.run(tx, act) }, (error, value) => {
      this.told.push({ on, what: error === null ? JSON.stringify(value) : wordsOf(error) })
      this.engine.idle(tx)
    })
  }

  private begin(by: string): Tx {
    this.pass(1)
    const tx = new Tx(by, this.kernel.now, this.kernel.now, this.kernel.key)
    this.engine.begin(tx)
    return tx
  }

  private pass(ms: number): void {
    let over = false
    this.kernel.after(ms, "pause", () => over = true)
    this.kernel.run({ until: () => over })
  }
}

const wordsOf = ({ constraint, sqlState }: DatabaseError): string => `${sqlState} ${constraint}`.trim()

class Toys {
  private readonly note: (note: string) => void
  private readonly byCode = new Index<Thing>("things_code", ({ code }) => code)
  readonly homes: Table<Home>
  readonly things: Table<Thing>
  private readonly names = new Map<string, Lock>()

  constructor(note: (note: string) => void) {
    this.note = note
    this.homes = new Table<Home>({ name: "homes" as never, keyOf: ({ id }) => id })
    this.things = new Table<Thing>({
      name: "things" as never,
      keyOf: ({ id }) => id,
      unique: [this.byCode],
      references: [{ name: "things_home_fkey", table: this.homes, keyOf: ({ home }) => home }]
    })
    for (const id of homes) this.homes.begin({ id })
    for (const thing of things) this.things.begin({ ...thing, at: 0 })
  }

  read(tx: Tx) {
    return this.there(tx, () => true).map((slot) => {
      const { at: _, ...row } = slot.seen(tx)!
      return row
    })
  }

  *run(tx: Tx, act: Statement): Steps<unknown> {
    const { things } = this
    switch (act.do) {
      case "insert":
        return yield* counted(things.insert(tx, fresh(tx, act.id, act.code, act.home)))
      case "offer": {
        const arbiter = { any: null, id: "things_pkey", code: "things_code" }[act.arbiter]
        const slot = yield* this.offering(things.insertUnlessTaken(tx, fresh(tx, act.id, act.code, null), arbiter))
        return slot === null ? 0 : 1
      }
      case "upsert":
        return yield* this.upsert(tx, act.id)
      case "count":
        return yield* this.change(tx, act.id, isLow, (row) => ({ ...row, n: row.n + 1, at: tx.startedAt }))
      case "recode":
        return yield* this.change(tx, act.id, () => true, (row) => ({ ...row, code: act.code }))
      case "delete":
        return yield* removeLocked(tx, things, this.there(tx, ({ id }) => named(act.ids, id)))
      case "lock":
        return yield* this.lock(tx, act)
      case "skip":
        return this.skip(tx, act)
      case "read":
        return this.read(tx)
      case "name":
        for (const name of act.names.toSorted()) yield* tx.lock(this.nameOf(name))
        return act.names.length
      case "times":
        return [tx.startedAt < tx.statementAt]
      case "home":
        return yield* counted(this.homes.insert(tx, { id: act.home }))
      case "family":
        // What stands in WITH comes after what it stands before.
        yield* this.homes.insert(tx, { id: act.home })
        return yield* counted(things.insert(tx, fresh(tx, act.id, null, act.home)))
    }
  }

  private *upsert(tx: Tx, id: string): Steps<number | null> {
    while (true) {
      const slotOfOurs = yield* this.offering(this.things.insertUnlessTaken(tx, fresh(tx, id, null, null), "things_pkey"))
      if (slotOfOurs !== null) return 0
      const slot = this.things.slots.get(id)!
      yield* tx.claim(slot)
      const row = slot.seen(tx)
      if (row === null) continue
      if (!isLow(row)) return null
      this.things.set(tx, slot, { ...row, n: row.n + 1, at: tx.startedAt })
      return row.n + 1
    }
  }

  private *change(tx: Tx, id: string, like: (row: Thing) => boolean, to: (row: Thing) => Thing): Steps<number | null> {
    const slot = this.there(tx, (row) => row.id === id && like(row))[0]
    if (slot === undefined) return null
    yield* tx.claim(slot)
    const row = slot.seen(tx)
    if (row === null || !like(row)) {
      this.note(lookedAgain)
      return null
    }
    const changed = to(row)
    yield* this.things.update(tx, slot, changed)
    return changed.n
  }

  private *lock(tx: Tx, { ids, mode }: Extract<Statement, { readonly do: "lock" }>): Steps<unknown> {
    const found: Array<Pick<Thing, "id" | "n">> = []
    for (const slot of this.there(tx, (row) => named(ids, row.id) && isLow(row))) {
      yield* tx.lock(slot, mode)
      const row = slot.seen(tx)
      if (row !== null && isLow(row)) found.push({ id: row.id, n: row.n })
      else this.note(lookedAgain)
    }
    return found
  }

  private skip(tx: Tx, { due, limit }: Extract<Statement, { readonly do: "skip" }>): ReadonlyArray<string> {
    const low = this.there(tx, isLow)
    const wanted = low.filter((slot) => !due || slot.seen(tx)!.at <= tx.startedAt)
    if (wanted.length < low.length) this.note("now() is before a row that is there")
    const taken = takeFree(tx, wanted, limit).map(({ id }) => id)
    if (wanted.slice(0, taken.length).some(({ key }) => !taken.includes(key)) || taken.length < Math.min(limit, wanted.length)) {
      this.note("SKIP LOCKED has passed over a row")
    }
    return taken
  }

  /** Hears whether an insert with ON CONFLICT has to wait for another one. */
  private *offering<A>(steps: Steps<A>): Steps<A> {
    let step = steps.next()
    if (step.done !== true) this.note("ON CONFLICT has waited for what was in flight")
    while (step.done !== true) {
      yield step.value
      step = steps.next()
    }
    return step.value
  }

  private there(tx: Tx, like: (row: Thing) => boolean): ReadonlyArray<Slot<Thing>> {
    return matching([...this.things.slots.values()], tx, like).toSorted((a, b) => a.key < b.key ? -1 : 1)
  }

  private nameOf(name: string): Lock {
    const known = this.names.get(name) ?? new Lock()
    this.names.set(name, known)
    return known
  }
}

const fresh = (tx: Tx, id: string, code: string | null, home: string | null): Thing =>
  ({ id, code, n: 0, at: tx.startedAt, home })

const lookedAgain = "a second look has found another row than the first"

const isLow = ({ n }: Thing): boolean => n < enough

const named = (ids: ReadonlyArray<string>, id: string): boolean => ids.includes(id)

function* counted(steps: Steps<unknown>): Steps<number> {
  yield* steps
  return 1
}
