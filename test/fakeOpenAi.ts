/**
 * A server on 127.0.0.1 that speaks the OpenAI format over real sockets, and misbehaves on command. Each request meets
 * the behaviour that the script chooses for it; until told otherwise, all are answered honestly.
 */
import { Effect, type Scope } from "effect"
import { once } from "node:events"
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { json } from "node:stream/consumers"

export interface Received {
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: any
  /** Resolves when the exchange is over: answered to the end, or broken off by either side. */
  readonly over: Promise<"answered" | "broken">
}

/** What becomes of one request. */
export type Behaviour = (response: ServerResponse, received: Received) => void

export interface FakeOpenAi {
  /** Up to and including `/v1`. */
  readonly baseUrl: string
  /** Chooses a behaviour for each request, counted from 1. Replaced at will. */
  script: (received: Received, count: number) => Behaviour
  /** Everything that came in, oldest first. */
  readonly received: ReadonlyArray<Received>
  /** Resolves with request number `count`, as soon as it has come in. */
  readonly arrival: (count: number) => Promise<Received>
}

/** Runs until its scope closes, and takes every connection down with it. */
export const serve: Effect.Effect<FakeOpenAi, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(Effect.promise(() => open()), ({ server }) =>
    Effect.promise(() =>
      new Promise((resolve) => {
        server.close(resolve)
        server.closeAllConnections()
      })
    )),
  ({ fake }) => fake
)

const open = async () => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const received: Array<Received> = []
  const waits = new Map<number, PromiseWithResolvers<Received>>()
  const waitFor = (count: number) => {
    const wait = waits.get(count) ?? Promise.withResolvers<Received>()
    waits.set(count, wait)
    return wait
  }
  const fake: FakeOpenAi = {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    script: () => honest(),
    received,
    arrival: (count) => waitFor(count).promise
  }
  server.on("request", async (request: IncomingMessage, response: ServerResponse) => {
    const over = Promise.withResolvers<"answered" | "broken">()
    response.on("close", () => over.resolve(response.writableFinished ? "answered" : "broken"))
    const body = await json(request).catch(() => null)
    const one: Received = { url: request.url ?? "", headers: request.headers, body, over: over.promise }
    const count = received.push(one)
    waitFor(count).resolve(one)
    fake.script(one, count)(response, one)
  })
  return { fake, server }
}

/** A script that meets the requests with these behaviours, one each, and goes on honestly. */
export const inTurn = (...behaviours: ReadonlyArray<Behaviour>): FakeOpenAi["script"] => (_received, count) =>
  behaviours[count - 1] ?? honest()

/** Any status and body. What is not a string is sent as JSON. */
export const answer =
  (status: number, body: unknown, headers: Record<string, string> = {}): Behaviour => (response) => {
    const text = typeof body === "string" ? body : JSON.stringify(body)
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(text)
  }

/** A chat completion with one choice. */
export const choice = (
  message: unknown,
  finishReason: string | null = "stop",
  headers: Record<string, string> = {}
): Behaviour =>
  answer(200, { object: "chat.completion", choices: [{ index: 0, finish_reason: finishReason, message }] }, headers)

/** A chat completion whose text is this. What is not a string is said as JSON. */
export const says = (content: unknown): Behaviour =>
  choice({ role: "assistant", content: typeof content === "string" ? content : JSON.stringify(content), refusal: null })

export const facts = (
  ...items: ReadonlyArray<{ readonly change: string; readonly text: string | null; readonly target: unknown }>
): Behaviour => says({ facts: items })

/** An answer to embeddings with these vectors, in this order. */
export const vectors = (
  rows: ReadonlyArray<{ readonly index: number; readonly embedding: ReadonlyArray<number> }>
): Behaviour =>
  answer(200, { object: "list", data: rows.map((row) => ({ object: "embedding", ...row })) })

/** Each user message is one new fact; each text has a vector that depends on its letters only. */
export const honest = (dimension = 8): Behaviour => (response, received) => {
  const behaviour = received.url.includes("/embeddings")
    ? vectors([...received.body.input].map((text, index) => ({ index, embedding: letters(text, dimension) })))
    : facts(...saidBy("user", received).map((text) => ({ change: "add", text, target: null })))
  behaviour(response, received)
}

const letters = (text: string, dimension: number): ReadonlyArray<number> => {
  const vector = Array.from({ length: dimension }, () => 0.5)
  for (const letter of text) vector[(letter.codePointAt(0) ?? 0) % dimension]! += 1
  return vector
}

/** What a role said in the conversation that a prompt quotes. */
export const saidBy = (role: string, { body }: Received): ReadonlyArray<string> => {
  const prompt: string = body.messages.at(-1).content
  const [, conversation = ""] = /<conversation>\n([^]*)\n<\/conversation>/.exec(prompt) ?? []
  const lines = conversation.split("\n")
  return lines.map((line) => JSON.parse(line)).filter((message) => message.role === role).map(({ content }) => content)
}

/** Takes the request and says nothing, ever. */
export const hang: Behaviour = () => {}

/** Breaks the connection without a word. */
export const reset: Behaviour = (response) => {
  response.socket?.resetAndDestroy()
}

/** Announces a body, sends a part of it, and breaks the connection. */
export const resetMidBody = (status = 200): Behaviour => (response) => {
  response.writeHead(status, { "content-type": "application/json", "content-length": "10000" })
  response.write("{\"choices\":[", () => response.socket?.resetAndDestroy())
}

/** Starts to answer, and then says nothing more. */
export const stall: Behaviour = (response) => {
  response.writeHead(200, { "content-type": "application/json" })
  response.write("{\"choices\":[")
}

/** A body without end, as fast as it is read. */
export const flood: Behaviour = (response) => {
  const chunk = " ".repeat(65_536)
  const pour = () => {
    while (!response.destroyed && response.write(chunk));
  }
  response.writeHead(200, { "content-type": "application/json" }).on("drain", pour)
  pour()
}
