/** Makes what the schedule says go wrong, counts what did, and puts everything right again. */
import { Effect, Fiber, Schedule, Semaphore } from "effect"
import * as Fs from "node:fs"
import { indexErrorsIn } from "./errors.ts"
import type { Link } from "./link.ts"
import { type Fault, kindOf, type Timed } from "./schedule.ts"
import type { World } from "./world.ts"

export interface Faults {
  /** Fires each fault at its time, and returns when the last one has begun. */
  readonly run: (schedule: ReadonlyArray<Timed>) => Effect.Effect<void>
  /** Ends every fault that is still going on. */
  readonly heal: Effect.Effect<void>
  /** By kind: how often it was to happen, and how often there was something for it to happen to. */
  readonly counts: () => Readonly<Record<string, Count>>
}

export interface Count {
  readonly planned: number
  readonly fired: number
}

/** How long a fault waits for something to happen to: a process that is up, a database that answers, a message to hold up. */
const patience = { tries: 120, everyMs: 100, forDrawn: 20 }

/** Is told of each time that a fault meets something, and in which process. */
type Hit = (member?: string) => void

const terminate = (share: number) =>
  `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'indelible%'
    and application_name <> 'indelible owner' and pid <> pg_backend_pid() and random() < ${share}`

const away = "alter table if exists memory_vectors rename to memory_vectors_away"
const back = "alter table if exists memory_vectors_away rename to memory_vectors"

const inWords = (fault: Fault, member = "member" in fault ? fault.member : null): string =>
  `${kindOf(fault)}${member === null ? "" : ` (${member})`}`

/** `note` is told of each fault as it begins, and as it meets something. */
export const make = (world: World, note: (line: string) => void): Faults => {
  const { database, links, members, provider } = world
  const counts: Record<string, { planned: number; fired: number }> = {}
  const going = new Set<Fiber.Fiber<void>>()
  /** The model's side is in one mood at a time, and each in turn. */
  const inTurn = Semaphore.makeUnsafe(1).withPermits(1)
  let topUps = 0

  const linkOf = (name: string): Link => links.get(name)!
  const peersOf = (name: string): ReadonlyArray<string> => {
    const { role } = members.get(name)!
    return [...members.values()].flatMap((other) => other.role === role ? [other.name] : [])
  }
  const everyLink = (run: (link: Link) => void) => [...links.values()].forEach(run)
  const dropped = () => [...links.values()].reduce((sum, link) => sum + link.dropped(), 0)
  const indexErrors = () =>
    [...members.values()].reduce((sum, { log }) => sum + indexErrorsIn(Fs.readFileSync(log, "utf8")), 0)
  /** One API is spared while the other is down or starting: with nobody to ask, nothing happens that could go wrong. */
  const isLastApi = (name: string) =>
    members.get(name)!.role === "api" &&
    ![...members.values()].some((other) => other.role === "api" && other.name !== name && other.isUp())
  const canBeStruck = (name: string) => members.get(name)!.isUp() && !isLastApi(name)
  const end = (name: string, signal: "SIGKILL" | "SIGTERM", downMs: number) =>
    canBeStruck(name) && members.get(name)!.down(signal, downMs)

  /** Tries until there was something to meet. False when there was nothing for too long. */
  const persist = Effect.fnUntraced(function*(attempt: Effect.Effect<boolean>, tries = patience.tries) {
    for (let left = tries; left > 0; left--) {
      if (yield* attempt) return true
      yield* Effect.sleep(patience.everyMs)
    }
    return false
  })
  /** The process that was drawn, or another one of its role when that one is down for long. */
  const standIn = Effect.fnUntraced(function*(name: string) {
    const oneOf = (names: ReadonlyArray<string>) => names.find((one) => members.get(one)!.isUp())
    if (yield* persist(Effect.sync(() => oneOf([name]) !== undefined), patience.forDrawn)) return name
    yield* persist(Effect.sync(() => oneOf(peersOf(name)) !== undefined))
    return oneOf(peersOf(name)) ?? name
  })
  /** Cuts where the drawn process comes to that point, and where others of its role do when it meets too few for long. */
  const cut = Effect.fnUntraced(function*(fault: Extract<Fault, { _tag: "Cut" | "Die" }>, count: number, struck: (name: string) => boolean) {
    let left = count
    const isOver = () => left === 0
    const ofMoney = fault._tag === "Die" || fault.ofMoney
    const arm = (name: string, count: number) => {
      // Where it has to live, it is cut off all the same, and dies at the next such moment.
      const fired = () => struck(name) ? left-- : arm(name, 1)
      linkOf(name).cut(fault.where, { count, ofMoney, fired, isOver })
    }
    arm(fault.member, left)
    if (yield* persist(Effect.sync(isOver), patience.forDrawn)) return
    for (const name of peersOf(fault.member)) if (name !== fault.member) arm(name, left)
  })
  /** Goes on for a while, and for longer until what it does to others was done to somebody. False when it was to nobody. */
  const during = Effect.fnUntraced(function*(
    ms: number,
    { begin, done, over }: { readonly begin: () => void; readonly done: () => number; readonly over: () => void }
  ) {
    const before = done()
    begin()
    yield* Effect.sleep(ms)
    const met = yield* persist(Effect.sync(() => done() > before))
    over()
    return met
  })
  /** An operator's statements, which fail while the database is down: then there is nothing to break. */
  const operate = (...statements: ReadonlyArray<string>) =>
    database.operate(statements).pipe(Effect.catchCause(() => Effect.succeed(null)))

  /** Makes it happen until it is over. Says whether it has met something; one that waits for its moment calls `hit` then. */
  const strike = (fault: Fault, hit: Hit): Effect.Effect<boolean> => {
    switch (fault._tag) {
      case "Kill":
        return persist(Effect.sync(() => end(fault.member, "SIGKILL", fault.downMs)))
      case "Stop":
        return persist(Effect.sync(() => end(fault.member, "SIGTERM", fault.downMs)))
      case "Die":
        return Effect.as(
          cut(fault, 1, (name) => {
            const dies = end(name, "SIGKILL", fault.downMs)
            if (dies) hit(name)
            return dies
          }),
          false
        )
      case "Pause":
        return Effect.gen(function*() {
          const member = members.get(fault.member)!
          if (!(yield* persist(Effect.sync(() => canBeStruck(fault.member) && member.signal("SIGSTOP"))))) return false
          yield* Effect.sleep(fault.ms)
          member.signal("SIGCONT")
          return true
        })
      case "Cut":
        return Effect.as(
          cut(fault, fault.count, (name) => {
            hit(name)
            return true
          }),
          false
        )
      case "Delay": {
        const { delay, late } = linkOf(fault.member)
        return during(fault.ms, { begin: () => delay(fault.delayMs), done: late, over: () => delay(0) })
      }
      case "BlackHole": {
        const { hold, late, release } = linkOf(fault.member)
        return during(fault.ms, { begin: hold, done: late, over: () => release(fault.end) })
      }
      case "Overtake":
        return inTurn(Effect.gen(function*() {
          // With something to write in hand, or nothing that it sends could come too late.
          const thinks = Effect.sync(() => provider.thinksFor() !== null)
          provider.mood({ overtaken: [fault.member] })
          if (!(yield* persist(thinks, patience.forDrawn))) provider.mood({ overtaken: peersOf(fault.member) })
          yield* persist(thinks)
          const name = provider.thinksFor()
          if (name !== null) {
            const { hold, late, release } = linkOf(name)
            yield* Effect.sleep(fault.gatherMs)
            if (yield* during(fault.ms, { begin: hold, done: late, over: () => release("deliver") })) hit(name)
          }
          provider.mood("by-seed")
          return false
        }))
      case "Deafen": {
        const deafen = (deaf: boolean) => everyLink((link) => link.deafen(deaf))
        return during(fault.ms, { begin: () => deafen(true), done: dropped, over: () => deafen(false) })
      }
      case "Terminate":
        return persist(Effect.map(operate(terminate(fault.share)), (rows) => rows !== null && rows.length > 0))
      case "Crash":
        return Effect.uninterruptible(Effect.gen(function*() {
          if (!(yield* persist(database.crash))) return false
          yield* Effect.sleep(fault.downMs)
          yield* database.start
          return true
        }))
      case "Provider":
        return inTurn(during(fault.ms, {
          begin: () => provider.mood(fault.mood),
          done: provider.byMood,
          over: () => provider.mood("by-seed")
        }))
      case "IndexDown":
        return Effect.gen(function*() {
          if (!(yield* persist(Effect.map(operate("set lock_timeout = '1s'", away), (rows) => rows !== null)))) return false
          const met = yield* during(fault.ms, { begin: () => {}, done: indexErrors, over: () => {} })
          yield* putBack
          return met
        })
      case "TopUp":
        return persist(world.topUp(fault.credits, `top-up-${++topUps}`))
    }
  }

  const putBack = Effect.suspend(() => database.operate(["set lock_timeout = '5s'", back])).pipe(
    Effect.retry({ schedule: Schedule.spaced("200 millis"), times: 50 }),
    Effect.catchCause(() => Effect.void)
  )

  const run = Effect.fnUntraced(function*(schedule: ReadonlyArray<Timed>) {
    const begun = performance.now()
    for (const { atMs, fault } of schedule) {
      yield* Effect.sleep(Math.max(0, atMs - (performance.now() - begun)))
      const count = counts[kindOf(fault)] ??= { planned: 0, fired: 0 }
      const tell = (line: string) => note(`${((performance.now() - begun) / 1_000).toFixed(1)} s  ${line}`)
      count.planned++
      tell(inWords(fault))
      const strikeOne = Effect.gen(function*() {
        const struck = "member" in fault ? { ...fault, member: yield* standIn(fault.member) } : fault
        const hit: Hit = (member) => {
          count.fired++
          tell(`  ${inWords(struck, member)} has met something`)
        }
        if (yield* strike(struck, hit)) hit()
      })
      const fiber = yield* Effect.forkDetach(strikeOne)
      going.add(fiber)
      fiber.addObserver(() => going.delete(fiber))
    }
  })

  const heal = Effect.gen(function*() {
    yield* Fiber.interruptAll([...going])
    provider.mood("honest")
    everyLink((link) => link.heal())
    for (const member of members.values()) member.signal("SIGCONT")
    yield* database.start
    yield* putBack
  })

  return { run, heal, counts: () => counts }
}
