/** One run: start, let clients and faults loose, heal, wait for rest, and hold the end against every rule there is. */
import { Effect, type Scope } from "effect"
import * as Fs from "node:fs"
import * as Path from "node:path"
import * as Client from "./client.ts"
import * as Ended from "./ended.ts"
import * as Faults from "./faults.ts"
import { errorsIn } from "./errors.ts"
import { breaches } from "./history/check.ts"
import { journalBreaches, type Seen, seenIn } from "./history/entry.ts"
import type { Breach, Told } from "./history/told.ts"
import * as Journal from "./journal.ts"
import type { Place } from "./place.ts"
import * as Quiescence from "./quiescence.ts"
import { schedule } from "./schedule.ts"
import * as World from "./world.ts"

export interface Asked {
  readonly seed: string
  readonly forMs: number
  readonly clients: number
  /** How long the service may take to come to rest after the last fault, in milliseconds. */
  readonly restMs: number
  /** Is told what the run is about to do. */
  readonly say: (line: string) => Effect.Effect<void>
}

export interface Outcome {
  readonly faults: Readonly<Record<string, Faults.Count>>
  readonly provider: Readonly<Record<string, number>>
  /** Requests by what they were told. */
  readonly told: Readonly<Record<string, number>>
  /** Operations by kind, state and failure. */
  readonly operations: Readonly<Record<string, number>>
  readonly starts: number
  /** Every process of the service that ever was. */
  readonly pids: ReadonlyArray<number>
  readonly droppedNotifications: number
  /** How long it took until everything was at rest, in milliseconds. */
  readonly restMs: number
  readonly unrest: ReadonlyArray<Quiescence.Unrest> | "no answer"
  readonly audit: Ended.Audited
  readonly breaches: ReadonlyArray<Breach>
  /** What the database saw of the operations. */
  readonly journal: Seen
  /** What a process wrote of an operation that was not its own. */
  readonly trespasses: ReadonlyArray<Breach>
  /** Processes that ended by themselves, or did not end when they were asked to. */
  readonly mishaps: ReadonlyArray<string>
  /** Files in which a text was found that is a client's own. */
  readonly leaks: ReadonlyArray<string>
  /** Errors that the service logged because of a fault, by message. */
  readonly errors: Readonly<Record<string, number>>
  /** Errors that no fault explains. */
  readonly defects: ReadonlyArray<string>
  readonly holds: boolean
}

/** How long the service may take to start, in milliseconds. */
const startWithin = 60_000

export const run = Effect.fnUntraced(function*(place: Place, asked: Asked): Effect.fn.Return<Outcome, never, Scope.Scope> {
  const { clients, forMs, say, seed } = asked
  const canary = `canary-${seed}`
  const history: Array<Told> = []
  yield* say("starting Postgres, the model's side, and 5 processes of the service")
  const world = yield* World.make(seed, place)
  const started = yield* Quiescence.reached(world, startWithin)
  if (started === "no answer") return yield* Effect.die(new Error("the service did not start: see its logs"))

  yield* say(`${clients} clients and every fault, for ${forMs / 1_000} s`)
  const faults = Faults.make(world, (line) => Fs.appendFileSync(Path.join(place.path, "faults.log"), `${line}\n`))
  const until = performance.now() + forMs
  const callers = Array.from({ length: clients }, (_, index) => {
    const { secret, workspace } = world.tenants[index % 3 === 2 ? 1 : 0]
    const apis = [...world.members.values()].filter(({ role }) => role === "api").map(({ baseUrl }) => baseUrl)
    return Client.live({ seed, index, workspace, secret, apis, canary, history, isOver: () => performance.now() > until })
  })
  yield* faults.run(schedule(seed, forMs, { apis: World.apis, workers: World.workers, leaseMs: World.leaseMs }))
  yield* Effect.promise(() => Promise.all(callers))

  yield* say("healing, and waiting for rest")
  yield* faults.heal
  const healed = performance.now()
  const unrest = yield* Quiescence.reached(world, asked.restMs)
  const restMs = performance.now() - healed
  yield* Quiescence.readAll(world, history)

  yield* say("auditing")
  const audit = yield* Ended.audit(world.database.url())
  const ended = yield* Ended.read(world.database.url())
  const journal = yield* Journal.read(world.database)
  Fs.writeFileSync(Path.join(place.path, "history.json"), JSON.stringify({ history, ended, journal }, null, 1))
  const members = [...world.members.values()]
  const logged = members.flatMap(({ log, name }) => errorsIn(name, Fs.readFileSync(log, "utf8")))
  const found = {
    unrest,
    audit,
    breaches: breaches(history, ended),
    trespasses: journalBreaches(journal),
    mishaps: members.flatMap(({ isUp, mishaps, name }) => isUp() ? mishaps : [...mishaps, `${name} did not come up again`]),
    leaks: members.filter(({ log }) => Fs.readFileSync(log, "utf8").includes(canary)).map(({ name }) => `${name}.log`),
    defects: logged.filter(({ isExplained }) => !isExplained).map(({ line }) => line)
  }
  return {
    ...found,
    journal: seenIn(journal),
    faults: faults.counts(),
    provider: world.provider.did(),
    told: tally(history.map(wordsOf)),
    operations: tally(ended.operations.map(({ failure, kind, state }) => [kind, state, failure ?? ""].join(" ").trim())),
    starts: members.reduce((sum, member) => sum + member.starts(), 0),
    pids: place.noted(),
    droppedNotifications: [...world.links.values()].reduce((sum, link) => sum + link.dropped(), 0),
    restMs,
    errors: tally(logged.filter(({ isExplained }) => isExplained).map(({ message }) => message)),
    holds: audit.code === 0 &&
      [unrest, found.breaches, found.trespasses, found.mishaps, found.leaks, found.defects].every(({ length }) => length === 0)
  }
})

const wordsOf = ({ answer, asked }: Told): string => {
  const what = asked._tag === "Write" ? asked.kind : asked._tag.toLowerCase()
  switch (answer._tag) {
    case "Acknowledged":
      return `${what}: acknowledged`
    case "Refused":
      return `${what}: ${answer.status} ${answer.code}`
    case "Unknown":
      return `${what}: unknown (${answer.why})`
    default:
      return `${what}: answered`
  }
}

const tally = (words: ReadonlyArray<string>): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const word of words.toSorted()) counts[word] = (counts[word] ?? 0) + 1
  return counts
}
