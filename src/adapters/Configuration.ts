/** What the environment says, decoded once at start: a wrong value stops the start with one line that names it. */
import { Data, Duration, Effect, LogLevel, Redacted, Result, Schema } from "effect"
import { decodeBody } from "../domain/Decode.ts"
import { defaultSettings, type SettingsShape } from "../services/Settings.ts"
import { contradictions, embeddingDimension, openAiTimeoutDefault, reconciled } from "./Contradictions.ts"
import type { OpenAiConfig } from "./OpenAiProvider.ts"

/** A variable holds something that cannot be used. The message names the variable, and never its value. */
export class ConfigurationError extends Data.TaggedError("ConfigurationError")<{ readonly message: string }> {}

const int = (minimum: number, maximum: number) =>
  Schema.String.check(
    Schema.makeFilter((text: string) => /^\d{1,15}$/.test(text) && Number(text) >= minimum && Number(text) <= maximum, {
      message: `must be a whole number from ${minimum} to ${maximum}`
    })
  )
const url = (protocols: ReadonlyArray<string>) =>
  Schema.String.check(
    Schema.makeFilter((text: string) => URL.canParse(text) && protocols.includes(new URL(text).protocol), {
      message: `must be a URL that starts with ${protocols.map((protocol) => `${protocol}//`).join(" or ")}`
    })
  )
const oneOf = (values: ReadonlyArray<string>) =>
  Schema.String.check(
    Schema.makeFilter((text: string) => values.includes(text), { message: `must be one of ${values.join(", ")}` })
  )
const apiKey = Schema.String.check(
  Schema.isPattern(/^[\x21-\x7e]{16,255}$/, { message: "must be 16 to 255 visible ASCII characters" })
)
const day = 86_400
const dimensionMax = 2_000

const shape = {
  PORT: int(0, 65_535),
  HOST: Schema.String,
  DATA_DIR: Schema.String,
  DATABASE_URL: url(["postgres:", "postgresql:"]),
  DATABASE_CONNECTIONS: int(2, 1_000),
  INDELIBLE_API_KEY: apiKey,
  INDELIBLE_CREDITS: int(0, 1_000_000_000_000),
  PROVIDER: oneOf(["local", "openai"]),
  OPENAI_BASE_URL: url(["http:", "https:"]),
  OPENAI_API_KEY: Schema.String,
  OPENAI_MODEL: Schema.String,
  OPENAI_EMBEDDING_MODEL: Schema.String,
  OPENAI_EMBEDDING_DIMENSIONS: int(1, dimensionMax),
  OPENAI_TEMPERATURE: Schema.String.check(
    Schema.isPattern(/^(none|[01](\.\d{1,3})?|2)$/, { message: "must be a number from 0 to 2, or none" })
  ),
  OPENAI_TIMEOUT_SECONDS: int(1, 3_600),
  WORKER_CONCURRENCY: int(1, 10_000),
  LEASE_SECONDS: int(3, 3_600),
  ATTEMPT_BOUND_SECONDS: int(3, day),
  SHUTDOWN_GRACE_SECONDS: int(0, 3_600),
  DRAIN_SECONDS: int(0, 3_600),
  MAX_ATTEMPTS: int(1, 100),
  BACKOFF_BASE_MS: int(1, 3_600_000),
  BACKOFF_CAP_MS: int(1, 3_600_000),
  INVALID_OUTPUT_ATTEMPTS: int(1, 100),
  RATE_LIMIT_MAX_AGE_SECONDS: int(1, 30 * day),
  PRICE_INFER_ADD: int(0, 1_000_000),
  PRICE_VERBATIM_ADD: int(0, 1_000_000),
  PRICE_NO_MEMORY: int(0, 1_000_000),
  FAILED_INPUT_RETENTION_DAYS: int(0, 3_650),
  LOG_LEVEL: oneOf(["debug", "info", "warn", "error", "none"]),
  LOG_FORMAT: oneOf(["pretty", "json"])
} as const

/** Every variable that is read. */
export const variables = Object.keys(shape) as ReadonlyArray<keyof typeof shape>

type Environment = { readonly [Name in keyof typeof shape]?: string }

const decode = decodeBody(
  Schema.Struct(
    Object.fromEntries(Object.entries(shape).map(([name, schema]) => [name, Schema.optionalKey(schema)])) as {
      readonly [Name in keyof typeof shape]: Schema.optionalKey<Schema.String>
    }
  )
)

export interface Configuration {
  readonly port: number
  readonly host: string
  /** How long a process that is about to end is not ready and still answers. */
  readonly shutdownGrace: Duration.Duration
  readonly dataDir: string
  /** Null: the service starts its own Postgres in the data directory. */
  readonly databaseUrl: Redacted.Redacted | null
  readonly databaseConnections: number
  readonly apiKey: Redacted.Redacted | null
  readonly credits: bigint
  /** Whether somebody said so: a default is nobody's wish. */
  readonly creditsGiven: boolean
  /** Null: the local provider. */
  readonly openAi: OpenAiConfig | null
  readonly settings: SettingsShape
  /** What is most likely not meant, and no reason not to start. */
  readonly warnings: ReadonlyArray<string>
  readonly logLevel: LogLevel.LogLevel
  readonly logFormat: "pretty" | "json"
}

/** Decodes the variables of this process. An empty one counts as absent. */
export const load = (environment: NodeJS.ProcessEnv): Effect.Effect<Configuration, ConfigurationError> =>
  Effect.gen(function*() {
    const given = Object.fromEntries(variables.flatMap((name) => environment[name] ? [[name, environment[name]]] : []))
    const decoded = decode(given)
    if (Result.isFailure(decoded)) {
      const wrong = decoded.failure.errors.map(({ message, path }) => `${path.slice(1)} ${message}`)
      return yield* new ConfigurationError({ message: wrong.join("; ") })
    }
    const env = yield* agreed(decoded.success)
    const settings = settingsOf(env)
    return {
      port: number(env.PORT, 8787),
      host: env.HOST ?? "127.0.0.1",
      shutdownGrace: seconds(env.SHUTDOWN_GRACE_SECONDS, Duration.seconds(2)),
      dataDir: env.DATA_DIR ?? "data",
      databaseUrl: env.DATABASE_URL === undefined ? null : Redacted.make(env.DATABASE_URL, { label: "DATABASE_URL" }),
      databaseConnections: number(env.DATABASE_CONNECTIONS, 10),
      apiKey: env.INDELIBLE_API_KEY === undefined ? null : Redacted.make(env.INDELIBLE_API_KEY),
      credits: BigInt(env.INDELIBLE_CREDITS ?? "1000000"),
      creditsGiven: env.INDELIBLE_CREDITS !== undefined,
      openAi: env.PROVIDER === "openai" ? yield* openAiOf(env) : null,
      settings,
      warnings: idle(env),
      logLevel: logLevels[env.LOG_LEVEL ?? "info"] ?? "Info",
      logFormat: env.LOG_FORMAT === "json" ? "json" : env.LOG_FORMAT === "pretty" || process.stdout.isTTY ? "pretty" : "json"
    }
  })

/** The environment with nothing in it that contradicts something else. What no provider reads bounds nothing. */
const agreed = (env: Environment): Effect.Effect<Environment, ConfigurationError> => {
  const { OPENAI_TIMEOUT_SECONDS: _, ...local } = env
  const read = env.PROVIDER === "openai" ? env : local
  const wrong = contradictions(read)
  return wrong.length > 0
    ? Effect.fail(new ConfigurationError({ message: wrong.join("; ") }))
    : Effect.succeed({ ...read, ...reconciled(read) })
}

/** Somebody set up a model, and forgot to say that it is to be used. A key alone may be there for something else. */
const idle = (env: Environment): ReadonlyArray<string> => {
  const names = (["OPENAI_BASE_URL", "OPENAI_MODEL", "OPENAI_EMBEDDING_MODEL"] as const).filter((name) => env[name] !== undefined)
  if (env.PROVIDER !== undefined || names.length === 0) return []
  const are = names.length === 1 ? "is" : "are"
  return [`${names.join(", ")} ${are} set, and the local demo provider is at work: it takes PROVIDER=openai`]
}

const logLevels: Record<string, LogLevel.LogLevel> = {
  debug: "Debug",
  info: "Info",
  warn: "Warn",
  error: "Error",
  none: "None"
}

const number = (text: string | undefined, otherwise: number): number => text === undefined ? otherwise : Number(text)

const seconds = (text: string | undefined, otherwise: Duration.Duration): Duration.Duration =>
  text === undefined ? otherwise : Duration.seconds(Number(text))

const settingsOf = (env: Environment): SettingsShape => {
  const { prices, retry } = defaultSettings
  const lease = seconds(env.LEASE_SECONDS, defaultSettings.lease)
  const inferAdd = BigInt(env.PRICE_INFER_ADD ?? prices.inferAdd)
  return {
    ...defaultSettings,
    lease,
    // A tenth of the lease: room for a renewal that is slow to answer, whatever the lease.
    fenceMargin: Duration.millis(Duration.toMillis(lease) / 10),
    attemptBound: seconds(env.ATTEMPT_BOUND_SECONDS, defaultSettings.attemptBound),
    drainTimeout: seconds(env.DRAIN_SECONDS, defaultSettings.drainTimeout),
    workerConcurrency: number(env.WORKER_CONCURRENCY, defaultSettings.workerConcurrency),
    retry: {
      maxAttempts: number(env.MAX_ATTEMPTS, retry.maxAttempts),
      backoffBaseMs: number(env.BACKOFF_BASE_MS, retry.backoffBaseMs),
      backoffCapMs: number(env.BACKOFF_CAP_MS, retry.backoffCapMs),
      invalidOutputAttempts: number(env.INVALID_OUTPUT_ATTEMPTS, retry.invalidOutputAttempts),
      rateLimitMaxAgeMs: number(env.RATE_LIMIT_MAX_AGE_SECONDS, retry.rateLimitMaxAgeMs / 1_000) * 1_000
    },
    prices: {
      inferAdd,
      verbatimAdd: BigInt(env.PRICE_VERBATIM_ADD ?? prices.verbatimAdd),
      noMemory: BigInt(env.PRICE_NO_MEMORY ?? inferAdd)
    },
    failedInputRetention: env.FAILED_INPUT_RETENTION_DAYS === undefined
      ? defaultSettings.failedInputRetention
      : Duration.days(Number(env.FAILED_INPUT_RETENTION_DAYS))
  }
}

const openAiOf = (env: Environment): Effect.Effect<OpenAiConfig, ConfigurationError> => {
  const { OPENAI_EMBEDDING_MODEL: embeddingModel, OPENAI_MODEL: model } = env
  if (model === undefined || embeddingModel === undefined) {
    return Effect.fail(new ConfigurationError({ message: "PROVIDER=openai needs OPENAI_MODEL and OPENAI_EMBEDDING_MODEL" }))
  }
  const given = env.OPENAI_EMBEDDING_DIMENSIONS
  const size = embeddingDimension(embeddingModel, given === undefined ? null : Number(given), dimensionMax)
  if ("wrong" in size) return Effect.fail(new ConfigurationError({ message: size.wrong }))
  return Effect.succeed({
    baseUrl: env.OPENAI_BASE_URL ?? "https://api.openai.com/v1",
    apiKey: env.OPENAI_API_KEY === undefined ? null : Redacted.make(env.OPENAI_API_KEY.trim()),
    model,
    embeddingModel,
    dimension: size.dimension,
    temperature: env.OPENAI_TEMPERATURE === "none" ? null : number(env.OPENAI_TEMPERATURE, 0),
    timeout: seconds(env.OPENAI_TIMEOUT_SECONDS, openAiTimeoutDefault)
  })
}
