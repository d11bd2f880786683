/** What the environment says is one thing: settings that contradict each other are refused, and defaults give way. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { parseEnv } from "node:util"
import * as Configuration from "../../src/adapters/Configuration.ts"

const load = (env: Record<string, string>) => Configuration.load(env)

const openAi = { PROVIDER: "openai", OPENAI_MODEL: "m", OPENAI_EMBEDDING_MODEL: "text-embedding-3-small" }

/** What the worker and the provider get, in seconds, milliseconds and attempts. */
const bounds = Effect.fnUntraced(function*(env: Record<string, string>) {
  const { openAi, settings: { attemptBound, lease, retry } } = yield* load(env)
  return {
    lease: Duration.toSeconds(lease),
    bound: Duration.toSeconds(attemptBound),
    timeout: openAi === null ? null : Duration.toSeconds(openAi.timeout),
    base: retry.backoffBaseMs,
    cap: retry.backoffCapMs,
    age: retry.rateLimitMaxAgeMs,
    attempts: retry.maxAttempts,
    invalid: retry.invalidOutputAttempts
  }
})

const defaults = {
  lease: 30,
  bound: 600,
  timeout: null as number | null,
  base: 1_000,
  cap: 60_000,
  age: 3_600_000,
  attempts: 5,
  invalid: 2
}

describe("settings that contradict each other", () => {
  for (
    const [lesser, greater, env] of [
      ["LEASE_SECONDS", "ATTEMPT_BOUND_SECONDS", { LEASE_SECONDS: "61", ATTEMPT_BOUND_SECONDS: "60" }],
      ["OPENAI_TIMEOUT_SECONDS", "ATTEMPT_BOUND_SECONDS", {
        ...openAi,
        OPENAI_TIMEOUT_SECONDS: "61",
        ATTEMPT_BOUND_SECONDS: "60"
      }],
      ["BACKOFF_BASE_MS", "BACKOFF_CAP_MS", { BACKOFF_BASE_MS: "61", BACKOFF_CAP_MS: "60" }],
      ["BACKOFF_BASE_MS", "RATE_LIMIT_MAX_AGE_SECONDS", { BACKOFF_BASE_MS: "1001", RATE_LIMIT_MAX_AGE_SECONDS: "1" }],
      ["INVALID_OUTPUT_ATTEMPTS", "MAX_ATTEMPTS", { INVALID_OUTPUT_ATTEMPTS: "4", MAX_ATTEMPTS: "3" }]
    ] as const
  ) {
    it.effect(`${lesser} beyond ${greater} is refused in one line that names both and no value`, () =>
      Effect.gen(function*() {
        const { message } = yield* Effect.flip(load(env))
        assert.strictEqual(message, `${lesser} must not be more than ${greater}`)
      }))

    it.effect(`${lesser} as much as ${greater} is taken`, () =>
      load({ ...env, [lesser]: lesser === "BACKOFF_BASE_MS" && greater.endsWith("SECONDS") ? "1000" : env[greater as never] }))
  }

  it.effect("are all named, each with its own", () =>
    Effect.gen(function*() {
      const env = { LEASE_SECONDS: "61", ATTEMPT_BOUND_SECONDS: "60", INVALID_OUTPUT_ATTEMPTS: "4", MAX_ATTEMPTS: "3" }
      const { message } = yield* Effect.flip(load(env))
      assert.strictEqual(
        message,
        "LEASE_SECONDS must not be more than ATTEMPT_BOUND_SECONDS; INVALID_OUTPUT_ATTEMPTS must not be more than MAX_ATTEMPTS"
      )
    }))

  it.effect("embedding dimensions are what the model gives: no more, and no fewer where it cannot shorten", () =>
    Effect.gen(function*() {
      const refused = (model: string, dimensions: string) =>
        Effect.map(
          Effect.flip(load({ ...openAi, OPENAI_EMBEDDING_MODEL: model, OPENAI_EMBEDDING_DIMENSIONS: dimensions })),
          ({ message }) => message
        )
      const most = "OPENAI_EMBEDDING_DIMENSIONS must not be more than the 1536 that OPENAI_EMBEDDING_MODEL gives"
      assert.strictEqual(yield* refused("text-embedding-3-small", "1537"), most)
      for (const dimensions of ["383", "385"]) {
        const exactly = "OPENAI_EMBEDDING_DIMENSIONS must be the 384 that OPENAI_EMBEDDING_MODEL gives, or be left out"
        assert.strictEqual(yield* refused("all-minilm", dimensions), exactly)
      }
      for (const [model, given, dimension] of [
        ["text-embedding-3-small", "512", 512],
        ["text-embedding-3-large", "1024", 1_024],
        ["all-minilm", "384", 384],
        ["all-minilm", "", 384],
        ["somebody-elses", "2000", 2_000]
      ] as const) {
        const env = { ...openAi, OPENAI_EMBEDDING_MODEL: model, OPENAI_EMBEDDING_DIMENSIONS: given }
        assert.strictEqual((yield* load(env)).openAi?.dimension, dimension)
      }
    }))
})

describe("what is set for a model", () => {
  it.effect("and read by nobody is told in one line, unless the local provider was asked for", () =>
    Effect.gen(function*() {
      const { PROVIDER, ...model } = { ...openAi, OPENAI_API_KEY: "sk-secret" }
      const [line, ...more] = (yield* load(model)).warnings
      assert.strictEqual(
        line,
        "OPENAI_MODEL, OPENAI_EMBEDDING_MODEL are set, and the local demo provider is at work: it takes PROVIDER=openai"
      )
      assert.deepStrictEqual(more, [])
      // A key may be there for something else.
      for (const env of [{}, { ...model, PROVIDER }, { ...model, PROVIDER: "local" }, { OPENAI_API_KEY: "sk-secret" }]) {
        assert.deepStrictEqual((yield* load(env)).warnings, [])
      }
    }))
})

describe("a default", () => {
  it.effect("is what the example environment says it is", () =>
    Effect.gen(function*() {
      const example = Fs.readFileSync(Path.join(import.meta.dirname, "../../.env.example"), "utf8")
      const lines = example.split("\n").map((line) => line.replace(/^#(?=[A-Z_]+=)/, ""))
      const given = parseEnv(lines.join("\n")) as Record<string, string>
      const model = { OPENAI_MODEL: "m", OPENAI_EMBEDDING_MODEL: "text-embedding-3-small" }
      for (const provider of [{}, { PROVIDER: "openai", ...model }]) {
        assert.deepStrictEqual(yield* load({ ...given, ...provider }), {
          ...yield* load(provider),
          creditsGiven: true
        })
      }
    }))

  for (
    const [what, env, changed] of [
      ["stays where nothing is said", {}, {}],
      ["attempt bound grows with the lease", { LEASE_SECONDS: "900" }, { lease: 900, bound: 900 }],
      ["lease shrinks with the attempt bound", { ATTEMPT_BOUND_SECONDS: "20" }, { lease: 20, bound: 20 }],
      ["attempt bound grows with the provider's timeout", { ...openAi, OPENAI_TIMEOUT_SECONDS: "700" }, {
        timeout: 700,
        bound: 700
      }],
      ["timeout shrinks with the attempt bound", { ...openAi, ATTEMPT_BOUND_SECONDS: "60" }, { bound: 60, timeout: 60 }],
      ["attempt bound grows with whatever asks for most", { ...openAi, LEASE_SECONDS: "900", OPENAI_TIMEOUT_SECONDS: "700" }, {
        lease: 900,
        timeout: 700,
        bound: 900
      }],
      ["attempt bound does not follow a provider that is not there", { OPENAI_TIMEOUT_SECONDS: "700" }, {}],
      ["cap grows with the base, and the age too", { BACKOFF_BASE_MS: "3600000" }, { base: 3_600_000, cap: 3_600_000 }],
      ["base shrinks with the cap", { BACKOFF_CAP_MS: "50" }, { base: 50, cap: 50 }],
      ["base stays within the age", { RATE_LIMIT_MAX_AGE_SECONDS: "1" }, { age: 1_000 }],
      ["number of unusable outputs shrinks with the attempts", { MAX_ATTEMPTS: "1" }, { attempts: 1, invalid: 1 }],
      ["number of attempts grows with the unusable outputs", { INVALID_OUTPUT_ATTEMPTS: "9" }, { attempts: 9, invalid: 9 }]
    ] as const
  ) {
    it.effect(what, () =>
      Effect.gen(function*() {
        const timeout = "PROVIDER" in env ? 120 : null
        assert.deepStrictEqual(yield* bounds(env), { ...defaults, timeout, ...changed })
      }))
  }
})
