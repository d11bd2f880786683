/** A process of HTTP callers: each keeps one connection, and asks again when it is answered. */
import { Agent, request } from "node:http"
import { said } from "./service.ts"
import { given, say } from "./process.ts"
import { now } from "./trial.ts"

const { callers, count, port, secret, users, warmUp } = given<{
  readonly port: number
  readonly secret: string
  readonly callers: number
  readonly users: number
  readonly warmUp: number
  readonly count: number
}>()

const agent = new Agent({ keepAlive: true, maxSockets: callers })

const post = (n: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const body = JSON.stringify({ messages: [{ role: "user", content: said(n) }], user_id: `user-${n % users}` })
    const outgoing = request({
      host: "127.0.0.1",
      port,
      agent,
      method: "POST",
      path: "/v1/memories",
      headers: {
        authorization: `Bearer ${secret}`,
        "content-type": "application/json",
        "content-length": Buffer.byteLength(body),
        "idempotency-key": `key-${n}`
      }
    }, (answer) => {
      answer.resume()
      answer.on("end", () =>
        answer.statusCode === 202 ? resolve() : reject(new Error(`a command was answered with ${answer.statusCode}`)))
    })
    outgoing.on("error", reject)
    outgoing.end(body)
  })

/** Asks for all of `from` to `to`, one caller taking the next number after the other. */
const askAll = async (from: number, to: number, answered: (ms: number) => void): Promise<void> => {
  let next = from
  const caller = async () => {
    while (next < to) {
      const n = next++
      const begun = now()
      await post(n)
      answered(now() - begun)
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
}

await askAll(0, warmUp, () => {})
const latencies: Array<number> = []
const begun = now()
await askAll(warmUp, warmUp + count, (ms) => latencies.push(ms))
say("done", { tookMs: now() - begun, latencies })
