/** SIGKILL and SIGTERM of the service that `npm start` runs, with a database of its own. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Fs from "node:fs"
import * as Path from "node:path"
import * as FakeOpenAi from "../fakeOpenAi.ts"
import { call, finished, folder, run, start } from "./process.ts"

const environment = Effect.gen(function*() {
  const fake = yield* FakeOpenAi.serve
  const env = {
    DATA_DIR: yield* folder,
    PROVIDER: "openai",
    OPENAI_BASE_URL: fake.baseUrl,
    OPENAI_MODEL: "fake",
    OPENAI_EMBEDDING_MODEL: "fake",
    OPENAI_EMBEDDING_DIMENSIONS: "8",
    LEASE_SECONDS: "3",
    DRAIN_SECONDS: "1"
  }
  return { env, fake }
})

const body = { messages: [{ role: "user", content: "I play the cello" }], user_id: "ana" }

/** Hangs on the first extraction, and answers honestly ever after. */
const hangFirst = (): FakeOpenAi.FakeOpenAi["script"] => {
  let hung = false
  return (received) => {
    if (hung || received.url.includes("/embeddings")) return FakeOpenAi.honest()
    hung = true
    return FakeOpenAi.hang
  }
}

const extraction = (fake: FakeOpenAi.FakeOpenAi) =>
  Effect.sync(() => fake.received.some(({ url }) => url.includes("/chat/"))).pipe(
    Effect.delay("10 millis"),
    Effect.repeat({ until: (asked) => asked })
  )

/** What a service logged after it had said `after`, but for the lines of requests. */
const told = (output: string, after: string): Array<string> => {
  const messages = [...output.matchAll(/"message":\[?"([^"]+)"/g)].map(([, message]) => message!)
  return messages.slice(messages.indexOf(after) + 1).filter((message) => message !== "request")
}

describe("the process ends", () => {
  it.live("SIGKILL in the middle of an extraction, start again: the operation finishes, once", () =>
    Effect.gen(function*() {
      const { env, fake } = yield* environment
      fake.script = hangFirst()
      const first = yield* start(env)
      const accepted = yield* call(first, "POST", "/v1/memories", { key: "killed", body })
      yield* extraction(fake)
      yield* first.kill

      const second = yield* start(env)
      const event = yield* finished(second, accepted.body.event_id)
      assert.deepInclude(event, { status: "succeeded", outcome: "stored", attempts: 2 })
      assert.deepStrictEqual(event.usage, { reserved: 2, charged: 2, refunded: 0 })
      const memories = yield* call(second, "GET", "/v1/memories?user_id=ana")
      assert.deepStrictEqual(memories.body.data.map(({ memory }: { memory: string }) => memory), ["I play the cello"])
      const { consumed, reserved } = (yield* call(second, "GET", "/v1/usage")).body
      assert.deepStrictEqual({ consumed, reserved }, { consumed: 2, reserved: 0 })
      const replay = yield* call(second, "POST", "/v1/memories", { key: "killed", body })
      assert.deepInclude(replay.body, { event_id: accepted.body.event_id, replayed: true })
      assert.strictEqual(yield* second.terminate, 0)
    }).pipe(Effect.scoped))

  it.live("SIGTERM in the middle of an extraction gives the attempt back, and the next start finishes it", () =>
    Effect.gen(function*() {
      const { env, fake } = yield* environment
      fake.script = hangFirst()
      const first = yield* start(env)
      const accepted = yield* call(first, "POST", "/v1/memories", { key: "stopped", body })
      yield* extraction(fake)
      assert.strictEqual(yield* first.terminate, 0)
      assert.sameMembers(told(first.output(), "Serving"), [
        "Shutting down: not ready any more, still answering",
        "Taking no more connections",
        "Requests are drained",
        "Draining attempts",
        "Attempts are drained",
        "Stopped"
      ])
      assert.include(first.output(), "\"given_back\":1")

      const second = yield* start(env)
      const event = yield* finished(second, accepted.body.event_id)
      assert.deepInclude(event, { status: "succeeded", attempts: 1 })
    }).pipe(Effect.scoped))
})

describe("the start", () => {
  it.live("without any configuration it makes what it needs below the folder it is started in, and finds it again", () =>
    Effect.gen(function*() {
      const place = yield* folder
      const first = yield* start({ INDELIBLE_API_KEY: "" }, "all", place)
      const [, key] = /shown this once and kept in data\/api-key: (\S+)/.exec(first.output()) ?? []
      const headers = { authorization: `Bearer ${key}` }
      assert.strictEqual((yield* call(first, "GET", "/v1/usage", { headers })).body.available, 1_000_000)
      assert.strictEqual(yield* first.terminate, 0)
      const second = yield* start({ INDELIBLE_API_KEY: "" }, "all", place)
      assert.include(second.output(), "is in data/api-key")
      assert.notInclude(second.output(), key!)
      assert.strictEqual((yield* call(second, "GET", "/v1/usage", { headers })).body.issued, 1_000_000)
      assert.strictEqual(Fs.readFileSync(Path.join(place, "data/api-key"), "utf8"), `${key}\n`)
    }).pipe(Effect.scoped))

  it.live("a .env in the folder that it is started in speaks where the environment is silent", () =>
    Effect.gen(function*() {
      const place = yield* folder
      const file = Path.join(place, ".env")
      Fs.writeFileSync(file, "# a comment\nLEASE_SECONDS=none\nMAX_ATTEMPTS='many'\nexport BACKOFF_BASE_MS=\"some\"\n")
      const whole = yield* run([], {}, place)
      assert.match(whole.output, /^indelible: LEASE_SECONDS [^;]+; MAX_ATTEMPTS [^;]+; BACKOFF_BASE_MS [^;]+\n$/)
      assert.strictEqual(whole.code, 1)
      // What is set wins, and so does what is set to nothing.
      const rest = yield* run(["admin", "key", "list", "default"], { LEASE_SECONDS: "30", MAX_ATTEMPTS: "" }, place)
      assert.match(rest.output, /^indelible admin: BACKOFF_BASE_MS [^;]+\n$/)
      Fs.writeFileSync(file, "\ufeffMAX_ATTEMPTS=many\r\nLEASE_SECONDS=none\r\n")
      const marked = yield* run([], {}, place)
      assert.match(marked.output, /^indelible: LEASE_SECONDS [^;]+; MAX_ATTEMPTS [^;]+$/)
      Fs.rmSync(file)
      Fs.mkdirSync(file)
      const { code, output } = yield* run(["audit"], {}, place)
      assert.match(output, /^indelible: \.env cannot be read: .+\n$/)
      assert.strictEqual(code, 3)
    }).pipe(Effect.scoped))

  it.live("a data directory that cannot be used stops it with one line that says why, and what to do", () =>
    Effect.gen(function*() {
      // Where Node's own way of making it and what is above it would never come back.
      const { code, output } = yield* run([], { DATA_DIR: "/proc/nope/data" })
      assert.match(
        output,
        /^indelible: DATA_DIR \/proc\/nope\/data cannot be used: .+ \(.+\)\. Set DATA_DIR to a directory that .+\.\n$/
      )
      assert.strictEqual(code, 1)
    }))

  it.live("a wrong value stops it with one line that names the variable and not the value", () =>
    Effect.gen(function*() {
      for (
        const [env, line] of [
          [{ PORT: "secret-port" }, "indelible: PORT must be a whole number from 0 to 65535\n"],
          [{ PROVIDER: "magic" }, "indelible: PROVIDER must be one of local, openai\n"],
          [{ DATABASE_URL: "mysql://u:p@h/d" }, "indelible: DATABASE_URL must be a URL that starts with postgres:// or postgresql://\n"],
          [{ PROVIDER: "openai" }, "indelible: PROVIDER=openai needs OPENAI_MODEL and OPENAI_EMBEDDING_MODEL\n"],
          [
            { DATABASE_URL: "postgres://u:secret@127.0.0.1:9/d" },
            "indelible: the database did not answer; is DATABASE_URL right, and the server up?\n"
          ]
        ] as const
      ) {
        const { code, output } = yield* run([], env)
        assert.strictEqual(output, line)
        assert.strictEqual(code, 1)
      }
      for (const role of ["api", "worker"]) {
        const { code, output } = yield* run(["--role", role], {})
        assert.match(output, new RegExp(`^indelible: --role ${role} needs DATABASE_URL: .+\n$`))
        assert.strictEqual(code, 1)
      }
    }))
})
