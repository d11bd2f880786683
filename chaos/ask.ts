/** One request over real HTTP, and what it became in the history: an answer, or that there was none. */
import type { Answer, Asked, Result, SeenEvent, State, Told } from "./history/told.ts"

export interface Request {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE"
  readonly path: string
  readonly key?: string | undefined
  readonly body?: object | undefined
  readonly headers?: Record<string, string> | undefined
  readonly asked: Asked
}

export interface Caller {
  readonly client: string
  readonly workspace: string
  readonly secret: string
  /** Every entry, in the order of the answers. */
  readonly history: Array<Told>
}

/** Asks, waits no longer than this, and writes down what was told. Never fails. */
export const ask = async (caller: Caller, baseUrl: string, request: Request, timeoutMs: number): Promise<Told> => {
  const { client, history, secret, workspace } = caller
  const askedAt = performance.now()
  const answer = await answerOf(baseUrl, secret, request, timeoutMs)
  const told: Told = { client, workspace, askedAt, answeredAt: performance.now(), asked: request.asked, answer }
  history.push(told)
  return told
}

const answerOf = async (baseUrl: string, secret: string, request: Request, timeoutMs: number): Promise<Answer> => {
  try {
    const response = await fetch(`${baseUrl}${request.path}`, {
      method: request.method,
      headers: {
        authorization: `Bearer ${secret}`,
        ...(request.body === undefined ? {} : { "content-type": "application/json" }),
        ...(request.key === undefined ? {} : { "idempotency-key": request.key }),
        ...request.headers
      },
      ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
      signal: AbortSignal.timeout(timeoutMs)
    })
    return read(response.status, JSON.parse(await response.text()), request.asked)
  } catch (cause) {
    return { _tag: "Unknown", why: cause instanceof Error && cause.name === "TimeoutError" ? "timeout" : "connection" }
  }
}

/** What a body means. The shapes are those of the contract; what has another is told as it is, and a rule will object. */
const read = (status: number, body: any, asked: Asked): Answer => {
  if (status === 503) return { _tag: "Unknown", why: String(body.code) }
  if (status >= 400) return { _tag: "Refused", status, code: String(body.code), eventId: body.event_id ?? null }
  switch (asked._tag) {
    case "Write":
      return {
        _tag: "Acknowledged",
        eventId: body.event_id,
        state: body.status,
        results: body.results === undefined ? null : body.results.map(resultOf)
      }
    case "Usage":
      return { _tag: "Usage", ...body }
    case "Memory":
      return { _tag: "Memory", id: body.id, version: body.version }
    default:
      return { _tag: "Event", event: eventOf(body) }
  }
}

const resultOf = ({ change, id, version }: Result): Result => ({ id, change, version })

export const eventOf = (body: any): SeenEvent => ({
  id: body.id,
  state: body.status as State,
  failure: body.error?.class ?? null,
  results: body.results.map(resultOf),
  usage: { reserved: body.usage.reserved, charged: body.usage.charged, refunded: body.usage.refunded }
})
