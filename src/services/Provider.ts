/** The model: it extracts facts and embeds texts. Slow, dear, forgetful and sometimes wrong; nothing trusts it. */
import { Context, type Effect, Schema } from "effect"
import type { Message } from "../domain/Command.ts"
import type { Fact } from "../domain/Plan.ts"

/**
 * The provider did not do what was asked. The class decides what happens next (`domain/Failure`). Carries no provider
 * text, no address and no cause: those stay in the adapter.
 */
export class ProviderFailure extends Schema.TaggedError<ProviderFailure>()("ProviderFailure", {
  failure: Schema.Literals([
    "provider_timeout",
    "provider_unavailable",
    "provider_rate_limited",
    "provider_rejected",
    "invalid_output",
    "extraction_refused"
  ]),
  /** What the provider asked for in `Retry-After`, in milliseconds. */
  retryAfterMs: Schema.NullOr(Schema.Finite)
}) {}

export interface ExtractionRequest {
  readonly messages: ReadonlyArray<Message>
  /** Existing memories that may be updated or deleted, by their place in this list. */
  readonly related: ReadonlyArray<{ readonly text: string }>
  readonly instructions: string | null
  readonly eventDate: string | null
}

export class Provider extends Context.Service<Provider, {
  /** The configured names, for evidence. */
  readonly model: string
  readonly embeddingModel: string
  /** The dimension of every vector. Fixed for the life of an index. */
  readonly dimension: number
  /** What is worth remembering. An empty list is an answer. */
  readonly extract: (request: ExtractionRequest) => Effect.Effect<ReadonlyArray<Fact>, ProviderFailure>
  /** One finite unit vector of `dimension` for each text, in order. */
  readonly embed: (texts: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Float32Array>, ProviderFailure>
}>()("indelible/services/Provider") {}
