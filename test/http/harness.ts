/** The real edge on a loopback port, over services that a test scripts, with every log line kept. */
import { Context, Duration, Effect, Layer, Logger, Redacted, References, type Scope } from "effect"
import { SecureRandom } from "effect/crypto"
import { HttpServer } from "effect/http"
import { type IncomingMessage, request as httpRequest } from "node:http"
import { ApiKeyId, MemoryId, OperationId, Sha256Hex, Timestamp, WorkspaceId } from "../../src/domain/Ids.ts"
import type { Memory } from "../../src/domain/Memory.ts"
import { Drain } from "../../src/http/Drain.ts"
import * as NodeServer from "../../src/http/NodeServer.ts"
import * as Server from "../../src/http/Server.ts"
import { type ApiKey, ApiKeys, KeyScope } from "../../src/services/ApiKeys.ts"
import { Commands } from "../../src/services/Commands.ts"
import { type Event, Events } from "../../src/services/Events.ts"
import { Memories } from "../../src/services/Memories.ts"
import { Readiness } from "../../src/services/Readiness.ts"
import { Retries } from "../../src/services/Retries.ts"
import { OutcomeUnknown } from "../../src/services/Transaction.ts"
import { Usage } from "../../src/services/Usage.ts"

export const workspaceId = WorkspaceId.make("acme")
export const operationId = OperationId.make("019b0000-0000-7000-8000-000000000001")
export const memoryId = MemoryId.make("019b0000-0000-8000-8000-00000000000a")
export const createdAt = 1_764_547_200_123

export const allScopes: ReadonlyArray<KeyScope> = KeyScope.literals

export const event: Event = {
  id: operationId,
  type: "memory.infer",
  status: "pending",
  scope: { user_id: "ada" },
  attempts: 0,
  maxAttempts: 5,
  nextAttemptAt: null,
  error: null,
  outcome: null,
  results: [],
  projection: "none",
  usage: { reserved: 2n, charged: 0n, refunded: 0n },
  acceptReserved: 2n,
  createdAt,
  startedAt: null,
  completedAt: null,
  inputRetained: true,
  evidence: {
    commandVersion: 1,
    commandHash: Sha256Hex.make("ab".repeat(32)),
    messages: 1,
    inputBytes: 12,
    model: null,
    planDigest: null,
    offered: 0,
    stored: 0
  }
}

export const finishedEvent: Event = {
  ...event,
  status: "succeeded",
  outcome: "stored",
  results: [{ id: memoryId, change: "add", version: 1, memory: "likes tea" }],
  projection: "pending",
  startedAt: createdAt,
  completedAt: createdAt + 5,
  inputRetained: false
}

export const memory: Memory = {
  workspaceId,
  id: memoryId,
  version: 3,
  text: "likes tea",
  scope: { user_id: "ada" },
  metadata: { topic: "drinks" },
  eventDate: null,
  operationId,
  createdAt: Timestamp.make(createdAt),
  updatedAt: Timestamp.make(createdAt + 1_000),
  deleted: false
}

export const receipt = { eventId: operationId, status: "pending", replayed: false, createdAt, reserved: 2n } as const

/** A secret says which key it is: `all`, or the scopes it holds, or how asking for it ends. */
const authenticate = (secret: Redacted.Redacted): Effect.Effect<ApiKey | null, OutcomeUnknown> => {
  const name = Redacted.value(secret)
  if (name === "storage-down") return Effect.fail(new OutcomeUnknown({ reason: "connection" }))
  const scopes = name === "all" ? allScopes : allScopes.filter((scope) => name.split(",").includes(scope))
  if (scopes.length === 0 && name !== "none") return Effect.succeed(null)
  return Effect.succeed({
    workspaceId,
    id: ApiKeyId.make("abcdefghijkl"),
    label: "test",
    scopes,
    createdAt: Timestamp.make(createdAt),
    revokedAt: null
  })
}

export interface Fakes {
  readonly commands?: Partial<Commands["Service"]>
  readonly events?: Partial<Events["Service"]>
  readonly memories?: Partial<Memories["Service"]>
  readonly retries?: Partial<Retries["Service"]>
  readonly usage?: Partial<Usage["Service"]>
  readonly readiness?: Readiness["Service"]
}

export interface Request {
  readonly method?: string
  readonly path: string
  /** The bearer key; null sends none. */
  readonly key?: string | null
  readonly headers?: Record<string, string | ReadonlyArray<string>>
  /** An array is sent in chunks, without a length. Objects are sent as JSON. */
  readonly body?: string | Uint8Array | object | ReadonlyArray<Uint8Array>
}

export interface Answer {
  readonly status: number
  readonly headers: Record<string, string>
  readonly text: string
  readonly json: any
}

export interface LogLine {
  readonly message: unknown
  readonly level: string
  readonly annotations: Record<string, unknown>
}

export interface Served {
  readonly send: (request: Request) => Effect.Effect<Answer>
  readonly port: number
  readonly logs: Array<LogLine>
  readonly drain: Drain["Service"]
}

const ready: Readiness["Service"] = { check: Effect.succeed({ ready: true, checks: { storage: "ok" } }) }

/** Starts the edge over these fakes; whatever a test does not script is a defect when it is called. */
export const serve = Effect.fnUntraced(function*(
  fakes: Fakes = {},
  options?: Pick<NodeServer.Options, "timeouts" | "inFlightTimeout"> & Partial<Server.Options>
): Effect.fn.Return<Served, never, Scope.Scope> {
  const logs: Array<LogLine> = []
  const logger = Logger.make((line) => {
    logs.push({
      message: Array.isArray(line.message) && line.message.length === 1 ? line.message[0] : line.message,
      level: line.logLevel,
      annotations: { ...line.fiber.getRef(References.CurrentLogAnnotations) }
    })
  })
  const services = Layer.mergeAll(
    Layer.mock(ApiKeys, { authenticate }),
    Layer.mock(Commands, fakes.commands ?? {}),
    Layer.mock(Events, fakes.events ?? {}),
    Layer.mock(Memories, fakes.memories ?? {}),
    Layer.mock(Retries, fakes.retries ?? {}),
    Layer.mock(Usage, fakes.usage ?? {}),
    Layer.succeed(Readiness, Readiness.of(fakes.readiness ?? ready))
  )
  const { shutdownGrace = Duration.zero, ...node } = options ?? {}
  const context = yield* Layer.build(Server.layer({ shutdownGrace }).pipe(
    Layer.provide(services),
    Layer.provideMerge(NodeServer.layer({ port: 0, host: "127.0.0.1", ...node })),
    Layer.provide(SecureRandom.layerWebCrypto),
    Layer.provide(Logger.layer([logger]))
  )).pipe(Effect.orDie)
  const { address } = Context.get(context, HttpServer.HttpServer)
  const port = address._tag === "UnixPathAddress" ? 0 : address.port
  return { send: (request) => send(port, request), port, logs, drain: Context.get(context, Drain) }
})

const isChunks = (body: Request["body"]): body is ReadonlyArray<Uint8Array> => Array.isArray(body)

const bytesOf = (body: Exclude<Request["body"], undefined | ReadonlyArray<Uint8Array>>): string | Uint8Array =>
  typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body)

const send = (
  port: number,
  { body, headers = {}, key = "all", method = "GET", path }: Request
): Effect.Effect<Answer> =>
  Effect.callback<Answer>((resume) => {
    const chunked = isChunks(body)
    const content = body === undefined || chunked ? undefined : bytesOf(body)
    const outgoing = httpRequest({
      host: "127.0.0.1",
      port,
      method,
      path,
      agent: false,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(content === undefined ? {} : { "content-length": String(Buffer.byteLength(content)) }),
        ...headers
      } as Record<string, string>
    }, (incoming) => {
      const parts: Array<Buffer> = []
      incoming.on("data", (part: Buffer) => parts.push(part))
      incoming.on("end", () => resume(Effect.succeed(answerOf(incoming, Buffer.concat(parts).toString("utf8")))))
    })
    outgoing.on("error", (error) => resume(Effect.die(error)))
    if (chunked) for (const chunk of body) outgoing.write(chunk)
    outgoing.end(content)
    return Effect.sync(() => outgoing.destroy())
  })

const answerOf = (incoming: IncomingMessage, text: string): Answer => ({
  status: incoming.statusCode ?? 0,
  headers: incoming.headers as Record<string, string>,
  text,
  json: text !== "" && /json/.test(incoming.headers["content-type"] ?? "") ? JSON.parse(text) : undefined
})
