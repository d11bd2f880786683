/** Makes what the schedule says go wrong, counts what did, and puts everything right again. */
import { Effect, Fiber, Schedule } from "effect"
import type { Cut, Link } from "./link.ts"
import { type Fault, kindOf, type Timed } from "./schedule.ts"
import type { World } from "./world.ts"

export interface Faults {
  /** Fires each fault at its time, and returns when the last one has begun. */
  readonly run: (schedule: ReadonlyArray<Timed>) => Effect.Effect<void>
  /** Ends every fault that is still going on. */
  readonly heal: Effect.Effect<void>
  /** By kind: how often it was to happen, and how often there was something for it to happen to. */
  readonly counts: () => Readonly<Record<string, { readonly planned: number; readonly fired: number }>>
}

/** Says that a fault has met something. */
type Hit = Effect.Effect<void>

const terminate = (share: number) =>
  `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'indelible%'
    and application_name <> 'indelible owner' and pid <> pg_backend_pid() and random() < ${share}`

const away = "alter table if exists memory_vectors rename to memory_vectors_away"
const back = "alter table if exists memory_vectors_away rename to memory_vectors"

export const make = (world: World): Faults => {
  const { database, links, members, provider } = world
  const counts: Record<string, { planned: number; fired: number }> = {}
  const going = new Set<Fiber.Fiber<void>>()
  let topUps = 0

  const linkOf = (name: string): Link => links.get(name)!
  const everyLink = (run: (link: Link) => void) => [...links.values()].forEach(run)
  /** One API is spared while the other is down or starting: with nobody to ask, nothing happens that could go wrong. */
  const isLastApi = (name: string) =>
    members.get(name)!.role === "api" &&
    ![...members.values()].some((other) => other.role === "api" && other.name !== name && other.isUp())
  const during = (hit: Hit, begin: () => unknown, ms: number, end: () => unknown) =>
    Effect.sync(begin).pipe(Effect.andThen(hit), Effect.andThen(Effect.sleep(ms)), Effect.andThen(Effect.sync(end)))
  /** An operator's statements, which fail while the database is down: then there is nothing to break. */
  const operate = (...statements: ReadonlyArray<string>) =>
    database.operate(statements).pipe(Effect.catchCause(() => Effect.succeed(null)))

  /** Makes it happen until it is over, and says so once it has met something. A cut is counted by the one who cuts. */
  const strike = (fault: Fault, hit: Hit): Effect.Effect<unknown> => {
    switch (fault._tag) {
      case "Kill":
      case "Stop":
        return Effect.suspend(() => {
          const signal = fault._tag === "Kill" ? "SIGKILL" : "SIGTERM"
          if (isLastApi(fault.member)) return Effect.void
          return members.get(fault.member)!.down(signal, fault.downMs) ? hit : Effect.void
        })
      case "Pause":
        return Effect.suspend(() => {
          const member = members.get(fault.member)!
          if (isLastApi(fault.member)) return Effect.void
          return member.signal("SIGSTOP") ? during(hit, () => {}, fault.ms, () => member.signal("SIGCONT")) : Effect.void
        })
      case "Cut":
        return Effect.sync(() => linkOf(fault.member).cut(fault.where, fault.count))
      case "Delay": {
        const link = linkOf(fault.member)
        return during(hit, () => link.delay(fault.delayMs), fault.ms, () => link.delay(0))
      }
      case "BlackHole": {
        const link = linkOf(fault.member)
        return during(hit, () => link.hold(), fault.ms, () => link.release(fault.end))
      }
      case "Deafen":
        return during(hit, () => everyLink((link) => link.deafen(true)), fault.ms, () => everyLink((link) => link.deafen(false)))
      case "Terminate":
        return Effect.flatMap(operate(terminate(fault.share)), (rows) => rows !== null && rows.length > 0 ? hit : Effect.void)
      case "Crash":
        return Effect.uninterruptible(Effect.flatMap(database.crash, (was) =>
          was ? hit.pipe(Effect.andThen(Effect.sleep(fault.downMs)), Effect.andThen(database.start)) : Effect.void))
      case "Provider":
        return during(hit, () => provider.mood(fault.mood), fault.ms, () => provider.mood("by-seed"))
      case "IndexDown":
        return Effect.flatMap(operate("set lock_timeout = '1s'", away), (done) =>
          done === null ? Effect.void : during(hit, () => {}, fault.ms, () => {}).pipe(Effect.andThen(putBack)))
      case "TopUp":
        return Effect.flatMap(world.topUp(fault.credits, `top-up-${++topUps}`), (done) => done ? hit : Effect.void)
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
      count.planned++
      const hit = Effect.sync(() => {
        count.fired++
      })
      const fiber = yield* Effect.forkDetach(Effect.asVoid(strike(fault, hit)))
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

  return { run, heal, counts: () => withCuts(counts, links) }
}

/** Adds what the proxies cut, by the kind of process. */
const withCuts = (counts: ReturnType<Faults["counts"]>, links: World["links"]): ReturnType<Faults["counts"]> => {
  const all: Record<string, { planned: number; fired: number }> = {}
  for (const [kind, { fired, planned }] of Object.entries(counts)) all[kind] = { planned, fired }
  for (const [name, { cuts }] of links) {
    for (const where of Object.keys(cuts) as Array<Cut>) {
      const kind = `${name.replace(/-?\d+$/, "")} cut ${where}`
      if (kind in all) all[kind]!.fired += cuts[where]
    }
  }
  return all
}
