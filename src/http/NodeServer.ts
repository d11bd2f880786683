/**
 * The HttpServer on node:http: bounded in how long a request may take to arrive, and with a problem document even for
 * what never becomes a request.
 */
import { NodeHttpServer } from "@effect/platform-node"
import { Duration, Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { createServer, type Server, type ServerOptions, type ServerResponse } from "node:http"
import type { Socket } from "node:net"
import {
  headersTimeoutMs,
  inFlightTimeoutMs,
  keepAliveTimeoutMs,
  lingerMs,
  requestTimeoutMs,
  timeoutCheckMs
} from "./Limits.ts"

interface Refused {
  readonly status: number
  readonly reason: string
  readonly code: string
  readonly detail: string
}

const refusals: Record<string, Refused> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    reason: "Request Header Fields Too Large",
    code: "headers_too_large",
    detail: "The headers are larger than a request may have."
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    reason: "Request Timeout",
    code: "request_timeout",
    detail: "The request took too long to arrive. Repeat it, with the same Idempotency-Key if it writes."
  }
}

const malformed: Refused = {
  status: 400,
  reason: "Bad Request",
  code: "malformed_http",
  detail: "This is not a request of HTTP/1.1."
}

/** The answer to bytes that are no request, as bytes. */
const answer = (error: NodeJS.ErrnoException, request_id: string): string => {
  const { code, detail, reason, status } = refusals[error.code ?? ""] ?? malformed
  const body = JSON.stringify({
    type: `urn:indelible:problem:${code}`,
    title: reason,
    status,
    code,
    retryable: status === 408,
    detail,
    request_id
  })
  return [
    `HTTP/1.1 ${status} ${reason}`,
    "Content-Type: application/problem+json",
    `Content-Length: ${body.length}`,
    `X-Request-Id: ${request_id}`,
    "Cache-Control: no-store",
    "Connection: close",
    "",
    body
  ].join("\r\n")
}

/** The answer under way on this connection: by the property that node's own handler looks at. */
const answerUnderWay = (
  socket: Socket & { readonly _httpMessage?: ServerResponse | null }
): ServerResponse | undefined => socket._httpMessage ?? undefined

/** Says why, and closes: at once for whoever listens, and soon for whoever does not. */
const refuse = (socket: Socket, text: string): void => {
  socket.end(text)
  socket.setTimeout(lingerMs, () => socket.destroy())
}

const onClientError = (error: NodeJS.ErrnoException, socket: Socket, requestId: () => string): void => {
  const underWay = answerUnderWay(socket)
  const say = () => refuse(socket, answer(error, requestId()))
  // An earlier request, which is complete, is answered first. One that is not is the one that went wrong.
  if (socket.writable && underWay?.req.complete === true) underWay.once("finish", say)
  else if (socket.writable && underWay?.headersSent !== true) say()
  else socket.destroy()
}

export interface Options {
  readonly host: string
  /** 0 takes any that is free. */
  readonly port: number
  /** For tests: how long requests in flight may go on when no more are taken. */
  readonly inFlightTimeout?: Duration.Duration
  /** For tests: how long a request may take to arrive, and how often that is looked at. */
  readonly timeouts?: Pick<ServerOptions, "connectionsCheckingInterval" | "headersTimeout" | "requestTimeout">
}

const timeouts = {
  headersTimeout: headersTimeoutMs,
  requestTimeout: requestTimeoutMs,
  keepAliveTimeout: keepAliveTimeoutMs,
  connectionsCheckingInterval: timeoutCheckMs
}

/** Listens on `host` and `port`. When the scope closes, requests in flight are waited for, within bounds. */
export const layer = ({ host, inFlightTimeout, port, timeouts: given }: Options) =>
  Layer.unwrap(Effect.gen(function*() {
    const { uuidV7 } = yield* SecureRandom.SecureRandom
    // What is missing, or asked for in vain, is answered by the edge, and not by node without a word.
    const server = createServer({ ...timeouts, ...given, requireHostHeader: false })
    server.on("checkExpectation", (request, response) => server.emit("request", request, response))
    server.on("clientError", (error, socket) =>
      onClientError(error, socket as Socket, () => Effect.runSync(uuidV7())))
    const gracefulShutdownTimeout = inFlightTimeout ?? Duration.millis(inFlightTimeoutMs)
    return Layer.effectDiscard(Effect.addFinalizer(() => hangUp(server))).pipe(
      Layer.provideMerge(NodeHttpServer.layer(() => server, { host, port, gracefulShutdownTimeout }))
    )
  }))

/**
 * Closes what is still open once every request had its time: a server that closes looks at no time limit any more, and
 * would wait for ever for the rest of a request. Whoever is being answered has a moment to read.
 */
const hangUp = Effect.fnUntraced(function*(server: Server) {
  const open = yield* Effect.callback<number>((resume) => {
    server.getConnections((_, open) => resume(Effect.succeed(open)))
  })
  if (open === 0) return
  yield* Effect.sleep(Duration.millis(lingerMs))
  yield* Effect.sync(() => {
    server.closeAllConnections()
  })
})
