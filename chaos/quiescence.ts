/** Whether the service has come to rest, by asking it: nothing pending, nothing running, nothing to be projected. */
import { Effect, Schedule } from "effect"
import { type Caller, eventOf } from "./ask.ts"
import type { Told } from "./history/told.ts"
import type { Tenant, World } from "./world.ts"

/** What is not at rest. */
export interface Unrest {
  readonly workspace: string
  readonly id: string
  readonly state: string
  readonly projection: string
}

interface EventBody {
  readonly id: string
  readonly status: string
  readonly projection: string
}

/** All that the API lists under this path, page by page; null without an answer. */
const listed = async (baseUrl: string, secret: string, path: string): Promise<ReadonlyArray<EventBody> | null> => {
  const all: Array<EventBody> = []
  let cursor: string | null = ""
  try {
    while (cursor !== null) {
      const page: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`
      const response: Response = await fetch(`${baseUrl}${path}${page}`, {
        headers: { authorization: `Bearer ${secret}` },
        signal: AbortSignal.timeout(5_000)
      })
      if (response.status !== 200) return null
      const body = await response.json() as { data: ReadonlyArray<EventBody>; next_cursor: string | null }
      all.push(...body.data)
      cursor = body.next_cursor
    }
    return all
  } catch {
    return null
  }
}

const everyEvent = (world: World, tenant: Tenant, from: number) =>
  Effect.promise(() => {
    const urls = [...world.members.values()].filter(({ role }) => role === "api").map(({ baseUrl }) => baseUrl)
    return listed(urls[from % urls.length]!, tenant.secret, "/v1/events?limit=100")
  })

const isAtRest = ({ projection, status }: EventBody): boolean =>
  (status === "succeeded" || status === "failed") && (projection === "none" || projection === "ready")

/** Asks until everything is at rest or the time is over. Every process must have come up by itself before that counts. */
export const reached = (world: World, within: number): Effect.Effect<ReadonlyArray<Unrest> | "no answer"> => {
  let rounds = 0
  const look = Effect.gen(function*() {
    rounds++
    if (![...world.members.values()].every((member) => member.isUp())) return "no answer" as const
    const unrest: Array<Unrest> = []
    for (const tenant of world.tenants) {
      const events = yield* everyEvent(world, tenant, rounds)
      if (events === null) return "no answer" as const
      unrest.push(...events.filter((event) => !isAtRest(event)).map(({ id, projection, status }) => ({
        workspace: tenant.workspace,
        id,
        state: status,
        projection
      })))
    }
    return unrest
  })
  const until = performance.now() + within
  return look.pipe(
    Effect.repeat({
      while: (unrest) => (unrest === "no answer" || unrest.length > 0) && performance.now() < until,
      schedule: Schedule.spaced("250 millis")
    })
  )
}

/** Reads every event once more as a client would, so that the end is part of the history. */
export const readAll = Effect.fnUntraced(function*(world: World, history: Array<Told>) {
  for (const tenant of world.tenants) {
    const caller: Caller = { client: "the end", workspace: tenant.workspace, secret: tenant.secret, history }
    const askedAt = performance.now()
    const events = yield* everyEvent(world, tenant, 0)
    for (const event of events ?? []) {
      history.push({
        client: caller.client,
        workspace: caller.workspace,
        askedAt,
        answeredAt: performance.now(),
        asked: { _tag: "Event", eventId: event.id },
        answer: { _tag: "Event", event: eventOf(event) }
      })
    }
  }
})
