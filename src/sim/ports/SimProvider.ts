/**
 * `Provider` of a simulated world: a model that can be told beforehand what to make of a conversation, and everything
 * that goes wrong between it and us. A failure is one of those that the adapter over HTTP makes of its troubles.
 */
import { Cause, Effect, Exit } from "effect"
import type { Fact } from "../../domain/Plan.ts"
import { type ExtractionRequest, Provider, ProviderFailure } from "../../services/Provider.ts"
import type { FaultKind, Point } from "../Faults.ts"
import { type Call, io } from "../Io.ts"
import type { Kernel } from "../Kernel.ts"
import { type Key, root } from "../Keyed.ts"
import { type Process, processOf } from "../Process.ts"
import type { Strikes } from "../Strikes.ts"

export interface SimProviderOptions {
  readonly kernel: Kernel
  readonly strikes: Strikes
  readonly leaseMs: number
  /** About how long the model thinks, in milliseconds. In a healed world it is quick. */
  readonly providerMs: number
  /** How long a caller waits for one answer, in milliseconds. */
  readonly timeoutMs: number
  /** The longest that anybody is willing to wait because the model asks for it, in milliseconds. */
  readonly patienceMs: number
  /** Told of each extraction when its question leaves, and of each that is answered to somebody who still waits. */
  readonly asked?: (request: ExtractionRequest, process: Process) => void
  readonly answered?: (request: ExtractionRequest, process: Process, facts: number) => void
  /** Told of each extraction that nobody waits for any more, unless the process is gone, and what it was told to wait. */
  readonly over?: (request: ExtractionRequest, process: Process, waitMs: number | null) => void
}

export const dimension = 8

/** What a model in bad shape says of a memory that it was never shown. */
export const madeUp = "Nobody said so"

const everywhere: ReadonlyArray<FaultKind> = [
  "crash_before", "crash_after", "provider_slow", "provider_timeout_before", "provider_timeout_after", "provider_late",
  "provider_rate_limited", "provider_retry_after", "provider_unavailable", "provider_refusal", "provider_invalid"
]
const extractFaults: ReadonlyArray<FaultKind> = [...everywhere, "provider_other_facts", "provider_hallucination"]

/** What is asked of the model. `answer` is told of the fault that bends it, if one does. */
interface Question<A> {
  readonly label: string
  readonly faults: ReadonlyArray<FaultKind>
  readonly thinksMs: number
  readonly answer: (fault: FaultKind | null, detail: Key | null) => A
}

export class SimProvider {
  readonly port: Provider["Service"]
  private readonly kernel: Kernel
  private readonly strikes: Strikes
  private readonly options: SimProviderOptions
  private readonly key: Key
  private readonly asking = new Map<Process, number>()

  constructor(options: SimProviderOptions) {
    const { answered = nothing, asked = nothing, kernel, over = nothing, providerMs, strikes } = options
    this.kernel = kernel
    this.strikes = strikes
    this.options = options
    this.key = kernel.key.of("provider")
    this.port = Provider.of({
      model: "simulated-model",
      embeddingModel: "simulated-embeddings",
      dimension,
      extract: (request) =>
        Effect.withFiber((fiber) => {
          if (request.messages.every(({ content }) => content.trim() === "")) return Effect.succeed([])
          const process = processOf(fiber)
          asked(request, process)
          return Effect.tap(this.ask(process, {
            label: "provider.extract",
            faults: extractFaults,
            thinksMs: providerMs,
            answer: (fault, detail) => bent(request, factsOf(request), fault, detail)
          }), (facts) => Effect.sync(() => answered(request, process, facts.length))).pipe(
            Effect.onExit((exit) => Effect.sync(() => over(request, process, waitIn(exit))))
          )
        }),
      embed: (texts) =>
        texts.length === 0 ? Effect.succeed([]) : Effect.withFiber((fiber) =>
          this.ask(processOf(fiber), {
            label: "provider.embed",
            faults: everywhere,
            thinksMs: Math.min(200, providerMs / 10),
            answer: () => texts.map(vectorOf)
          }))
    })
  }

  /** How many questions are under way that somebody alive waits for. */
  get inFlight(): number {
    let count = 0
    for (const [process, asking] of this.asking) count += process.dead ? 0 : asking
    return count
  }

  private ask<A>(process: Process, question: Question<A>): Effect.Effect<A, ProviderFailure> {
    this.count(process, 1)
    const asked = io<A, ProviderFailure>({
      label: question.label,
      latencyMs: 1,
      arrive: (call) => this.serve(question, call)
    })
    return Effect.ensuring(asked, Effect.sync(() => this.count(process, -1)))
  }

  private count(process: Process, by: number): void {
    this.asking.set(process, (this.asking.get(process) ?? 0) + by)
  }

  private serve<A>(question: Question<A>, call: Call<A, ProviderFailure>): void {
    const { leaseMs, patienceMs, timeoutMs } = this.options
    const { index, label, process } = call
    const point: Point = { actor: process.id, label, index }
    const fault = process.dead ? null : this.strikes.strike(point, question.faults)
    const detail = fault === null ? null : this.strikes.detail(point, fault)
    const own = this.key.of(process.id).of(label).of(index)
    const thinksMs = this.strikes.healed ? Math.min(50, question.thinksMs) : question.thinksMs * own.logUniform(0.5, 2)
    const reply = (exit: Exit.Exit<A, ProviderFailure>, ms: number) => call.answer(exit, ms)
    const succeed = (ms: number) =>
      ms < timeoutMs ? reply(Exit.succeed(question.answer(fault, detail)), ms) : reply(failed("provider_timeout"), timeoutMs)
    switch (fault) {
      case "crash_before":
        return process.crash()
      case "crash_after":
        return void this.kernel.after(thinksMs, "crash", () => this.strikes.healed ? succeed(0) : process.crash())
      case "provider_slow":
        return succeed(leaseMs * detail!.logUniform(1.05, 4))
      case "provider_timeout_before":
      case "provider_timeout_after":
      case "provider_late":
        // They differ in what the model has done, of which nobody hears.
        return reply(failed("provider_timeout"), timeoutMs)
      case "provider_rate_limited":
        return reply(failed("provider_rate_limited"), 20)
      case "provider_retry_after":
        return reply(failed("provider_rate_limited", askedMs(detail!, leaseMs, patienceMs)), 20)
      case "provider_unavailable": {
        const asks = detail!.of("asks").chance(0.2)
        return reply(failed("provider_unavailable", asks ? askedMs(detail!, leaseMs, patienceMs) : null), 20)
      }
      case "provider_refusal":
        return reply(failed("extraction_refused"), thinksMs)
      case "provider_invalid":
        return reply(failed("invalid_output"), thinksMs)
      default:
        return succeed(thinksMs)
    }
  }
}

const nothing = () => {}

/** What a failure asks its caller to wait, in milliseconds. */
const waitIn = (exit: Exit.Exit<unknown, ProviderFailure>): number | null =>
  Exit.isSuccess(exit) ? null : exit.cause.reasons.find(Cause.isFailReason)?.error.retryAfterMs ?? null

const failed = (failure: ProviderFailure["failure"], retryAfterMs: number | null = null) =>
  Exit.fail(new ProviderFailure({ failure, retryAfterMs }))

/** `Retry-After`: mostly what one can wait for, now and then more than anybody does. */
const askedMs = (detail: Key, leaseMs: number, patienceMs: number): number =>
  detail.of("too long").chance(0.1) ? patienceMs * 2 : Math.ceil(Math.min(patienceMs, leaseMs * detail.logUniform(0.05, 2)))

/**
 * What the model makes of a conversation. A message of the user is a fact, unless it is small talk ("Thanks …"); what
 * begins with "Correction" changes one of the memories that it was shown, and what begins with "Forget" deletes one.
 */
export const factsOf = ({ messages, related }: Pick<ExtractionRequest, "messages" | "related">): ReadonlyArray<Fact> =>
  messages.flatMap(({ content, role }): ReadonlyArray<Fact> => {
    if (role !== "user" || content.trim() === "" || content.startsWith("Thanks")) return []
    const change = content.startsWith("Correction") ? "update" : content.startsWith("Forget") ? "delete" : "add"
    if (change === "add") return [{ change, text: content, target: null }]
    if (related.length === 0) return change === "delete" ? [] : [{ change: "add", text: content, target: null }]
    const target = root(content).below(related.length)
    return [{ change, text: change === "delete" ? null : content, target }]
  })

/** The same facts, or what a model in bad shape makes of them. */
const bent = (
  { related }: ExtractionRequest,
  facts: ReadonlyArray<Fact>,
  fault: FaultKind | null,
  detail: Key | null
): ReadonlyArray<Fact> => {
  if (fault === "provider_other_facts") {
    const salt = detail!.word()
    const others = facts.map((fact) => fact.text === null ? fact : { ...fact, text: `${fact.text} (${salt})` })
    return detail!.of("more").chance(0.5) ? [...others, ...others.slice(0, 1).map((fact) => ({ ...fact, text: `Or not (${salt})` }))] : others
  }
  if (fault !== "provider_hallucination") return facts
  const change = detail!.choose(["update", "delete"] as const)
  const target = detail!.of("target").choose([related.length, related.length + 7, -1])
  return [...facts, { change, text: change === "update" ? madeUp : null, target }]
}

/** A direction of its own for each text. */
export const vectorOf = (text: string): Float32Array => {
  const key = root(text)
  const vector = Float32Array.from({ length: dimension }, (_, place) => 2 * key.of(place).unit() - 1)
  const length = Math.sqrt(vector.reduce((sum, component) => sum + component * component, 0))
  return vector.map((component) => component / length)
}
