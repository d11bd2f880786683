/**
 * A sentence encoder that comes with the packages: no key, no network, English. It thinks for tens of milliseconds at a
 * time, and so has a thread of its own.
 */
import { Effect, Semaphore } from "effect"
import { Worker } from "node:worker_threads"
import { unit } from "../domain/Vector.ts"
import { ProviderFailure } from "../services/Provider.ts"

export const embeddingModel = "energetic-en-512"
export const dimension = 512

/** Texts in one task of the thread: a tenth of a second, after which others have their turn. */
const batchSize = 8
/** The model reads no further than this; a few hundred letters would do for a sentence. */
const textMaxLength = 2_000

/** What the thread is asked. */
export interface Task {
  readonly id: number
  readonly texts: ReadonlyArray<string>
}

/** What it answers: all vectors in one row, or null if it could not. */
export interface Answer {
  readonly id: number
  readonly values: Float32Array | null
}

/** Starts the thread, which lives until the scope closes, and is started anew should it die. */
export const make = Effect.gen(function*() {
  const waiting = new Map<number, (values: Float32Array | null) => void>()
  let thread: Worker | null = null
  let count = 0
  let reason = "Error"

  const answered = ({ id, values }: Answer) => {
    waiting.get(id)?.(values)
    waiting.delete(id)
  }

  const start = (): Worker => {
    // However this process was started, and whatever the library may print, are no business of the other.
    const options = { execArgv: [], stdout: true, stderr: true }
    const started = new Worker(new URL("./LocalEmbeddingsThread.ts", import.meta.url), options)
    started.stdout.resume()
    started.stderr.resume()
    started.on("message", answered)
    started.on("error", (error) => {
      reason = error.name
    })
    started.on("exit", () => {
      if (thread !== started) return
      thread = null
      for (const id of waiting.keys()) answered({ id, values: null })
    })
    return started
  }

  thread = yield* Effect.acquireRelease(Effect.sync(start), () => Effect.promise(async () => thread?.terminate()))

  const failed = Effect.suspend(() =>
    Effect.logWarning("The sentence encoder failed").pipe(
      Effect.annotateLogs({ reason }),
      Effect.andThen(new ProviderFailure({ failure: "provider_unavailable", retryAfterMs: null }))
    )
  )

  const ask = (texts: ReadonlyArray<string>) =>
    Effect.callback<Float32Array, ProviderFailure>((resume) => {
      const id = ++count
      waiting.set(id, (values) => resume(values === null ? failed : Effect.succeed(values)))
      thread ??= start()
      thread.postMessage({ id, texts } satisfies Task, [])
      return Effect.sync(() => waiting.delete(id))
    })

  const turn = yield* Semaphore.make(1)

  /** One unit vector for each text, in order. A caller waits for others for one batch at a time. */
  const embed = Effect.fnUntraced(function*(texts: ReadonlyArray<string>) {
    const vectors: Array<Float32Array> = []
    for (let from = 0; from < texts.length; from += batchSize) {
      const batch = texts.slice(from, from + batchSize).map((text) => text.slice(0, textMaxLength))
      const values = yield* turn.withPermit(ask(batch))
      for (const place of batch.keys()) {
        const vector = unit(values.slice(place * dimension, (place + 1) * dimension), dimension)
        if (vector === null) return yield* new ProviderFailure({ failure: "invalid_output", retryAfterMs: null })
        vectors.push(vector)
      }
    }
    return vectors
  })

  return { embed }
})
