/**
 * One client: makes its inferred add until it is accepted or given up, repeats with the same key whatever is unknown,
 * and then follows it, uses what came of it, or gets in its way.
 */
import { Effect } from "effect"
import type { AddBody, DeleteCommand, IdempotencyKey, UpdateCommand } from "../domain/Command.ts"
import { normaliseAdd } from "../domain/Command.ts"
import type { MemoryId, OperationRef } from "../domain/Ids.ts"
import { isTerminal } from "../domain/Operation.ts"
import type { Event } from "../services/Events.ts"
import type { FaultKind } from "./Faults.ts"
import type { Gate } from "./Gate.ts"
import type { Key } from "./Keyed.ts"
import type { Process } from "./Process.ts"
import { type Hashed, hashed, type Request } from "./Requests.ts"
import * as Requests from "./Requests.ts"
import type { Strikes } from "./Strikes.ts"
import type { Answer } from "./Told.ts"
import { canary, type Errand, filterIn, keyOf, marks, type Step } from "./Workload.ts"

export interface ClientOptions {
  readonly errand: Errand
  readonly gate: Gate
  readonly strikes: Strikes
  readonly leaseMs: number
}

const askFaults: ReadonlyArray<FaultKind> = [
  "client_retry_before", "client_retry_after", "client_changed_payload", "client_gives_up", "client_burst"
]
const followFaults: ReadonlyArray<FaultKind> = ["cancel", "manual_retry", "edit", "delete", "purge"]
const stepOf: Readonly<Partial<Record<FaultKind, Step>>> = {
  cancel: "cancel", manual_retry: "retry", edit: "edit", delete: "delete", purge: "purge"
}

/** How often a client looks, or repeats what had no answer, before it loses interest. */
const looksMax = 5
const repeatsMax = 4
const retriesMax = 4
/** Whoever has asked so often for its add finds that nobody can help. In a healed world no client comes near it. */
const asksMax = 100

/** A version of a memory that the client was shown. */
interface Known {
  readonly id: MemoryId
  readonly version: number
}

export class Client {
  private readonly options: ClientOptions
  private readonly process: Process
  private readonly key: Key
  /** What the client knows of its operation, and of memories, the latest first. */
  private event: Event | null = null
  private readonly known: Array<Known> = []
  private asks = 0
  private waits = 0
  private followed = 0
  private retried = 0
  /** The key of a retry for which there was nothing to do: it may still be used. */
  private spared: IdempotencyKey | null = null

  constructor(process: Process, options: ClientOptions) {
    this.process = process
    this.options = options
    this.key = process.kernel.key.of("client").of(options.errand.number)
  }

  /** All it does in its life. */
  get life(): Effect.Effect<void> {
    const client = this
    const { errand, strikes } = this.options
    return Effect.gen(function*() {
      yield* Effect.sleep(errand.startMs)
      const ref = yield* client.submit()
      if (ref === null) return
      for (const step of [...errand.steps, null]) {
        const point = { actor: client.process.id, label: "follow", index: client.followed++ }
        const fault = strikes.strike(point, followFaults)
        if (fault !== null) yield* client.perform(stepOf[fault]!, ref)
        if (step !== null) yield* client.perform(step, ref)
      }
    })
  }

  /** Asks until the key has an operation, and returns that; null when it has lost interest. */
  private submit(): Effect.Effect<OperationRef | null> {
    const client = this
    const { errand, strikes } = this.options
    const { workspaceId } = errand
    return Effect.gen(function*() {
      for (let index = 0; index < asksMax; index++) {
        const point = { actor: client.process.id, label: "ask", index }
        const fault = strikes.strike(point, askFaults)
        const detail = fault === null ? client.key : strikes.detail(point, fault)
        const answer = yield* client.attempt(fault, detail)
        if (answer._tag === "Receipt") return { workspaceId, id: answer.receipt.eventId }
        if (answer._tag === "Refused") {
          const { refusal } = answer
          // Its own mistake was first: what the key made then is what it has.
          if (refusal._tag === "IdempotencyConflict") return { workspaceId, id: refusal.operationId }
          yield* client.pause(1, 2)
        } else if (fault !== "client_gives_up") yield* client.pause(0.02, 0.5)
        else if (detail.of("never").chance(0.3)) return null
        else yield* client.pause(0.5, 5)
      }
      return null
    })
  }

  /** Asks for the add, once or in one of the ways of clients that make trouble. */
  private attempt(fault: FaultKind | null, detail: Key): Effect.Effect<Answer> {
    const { add, again, key, mistake, workspaceId } = this.options.errand
    const right = () => Requests.add(workspaceId, key, this.key.of("words").of(this.asks).chance(0.5) ? again : add)
    const wrong = Requests.add(workspaceId, key, mistake)
    const after = (ms: number, request: Request) => Effect.andThen(Effect.sleep(ms), this.ask(request))
    switch (fault) {
      case "client_retry_before":
        return this.together([this.ask(right()), after(detail.logUniform(0.1, 500), right())])
      case "client_burst":
        return this.together(Array.from({ length: detail.between(3, 5) }, () => this.ask(right())))
      case "client_changed_payload":
        return detail.of("late").chance(0.5)
          ? Effect.tap(this.ask(right()), () => this.ask(wrong))
          : this.together([this.ask(right()), after(detail.of("gap").logUniform(0.1, 50), wrong)])
      case "client_retry_after":
        return Effect.flatMap(this.ask(right()), (first) => Effect.map(this.ask(right()), (second) => better(first, second)))
      case "client_gives_up":
        return this.ask(right(), detail.logUniform(0.5, 100))
      default:
        return this.ask(right())
    }
  }

  private together(asks: ReadonlyArray<Effect.Effect<Answer>>): Effect.Effect<Answer> {
    return Effect.map(Effect.all(asks, { concurrency: "unbounded" }), (answers) => answers.reduce(better))
  }

  private ask(request: Request, timeoutMs = this.timeoutMs()): Effect.Effect<Answer> {
    return Effect.map(this.options.gate.ask(request, timeoutMs), (answer) => {
      this.learn(answer)
      return answer
    })
  }

  private timeoutMs(): number {
    return this.options.leaseMs * this.key.of("timeout").of(this.asks++).logUniform(0.1, 2)
  }

  /** In leases; at the end of the world's troubles nobody hesitates. */
  private pause(min: number, max: number): Effect.Effect<void> {
    const { leaseMs, strikes } = this.options
    const leases = this.key.of("pause").of(this.waits++).logUniform(min, max)
    return Effect.sleep(leaseMs * (strikes.healed ? Math.min(leases, 0.2) : leases))
  }

  private learn(answer: Answer): void {
    const event = answer._tag === "Completed" ? answer.completed.event : answer._tag === "Event" ? answer.event : null
    for (const { change, id, version } of event?.results ?? []) {
      if (id !== null && version !== null && change !== "delete") this.known.unshift({ id, version })
    }
    if (answer._tag === "Memories") this.known.unshift(...answer.memories.map(({ id, version }) => ({ id, version })))
    this.known.splice(8)
  }

  private perform(step: Step, ref: OperationRef): Effect.Effect<unknown> {
    const { errand: { scope, workspaceId }, leaseMs } = this.options
    switch (step) {
      case "look":
        return this.follow(ref, 0)
      case "wait":
        return this.follow(ref, Math.max(1, Math.round(leaseMs / 1_000)))
      case "read":
        return this.known[0] === undefined
          ? this.ask(Requests.event(ref, 0))
          : this.ask(Requests.memory({ workspaceId, id: this.known[0].id }))
      case "list":
        return this.ask(Requests.list(workspaceId, {
          scope: this.key.of("list").chance(0.5) ? scope : {},
          metadata: filterIn(this.key.of("list filter").of(this.asks)),
          limit: 1 + this.key.below(6)
        }))
      case "search":
        return this.ask(Requests.search(workspaceId, {
          scope,
          metadata: filterIn(this.key.of("search filter").of(this.asks)),
          limit: this.key.of("hits").of(this.asks).between(1, 8)
        }, canary, "everybody likes a lot"))
      case "events":
        return this.ask(Requests.events(workspaceId, this.key.of("events").chance(0.5) ? scope : {}, 8))
      case "usage":
        return this.ask(Requests.balances(workspaceId))
      case "edit":
      case "delete":
        return this.change(step)
      case "cancel":
        return this.cancel(ref)
      case "purge":
        return this.repeated(Requests.purge(ref))
      case "retry":
        return this.retry(ref)
      case "add":
        return this.verbatim()
    }
  }

  /** Looks, or waits in long-polls, until it has ended or the client has lost interest. */
  private follow(ref: OperationRef, seconds: number): Effect.Effect<void> {
    const client = this
    return Effect.gen(function*() {
      for (let look = 0; look < looksMax; look++) {
        const answer = yield* client.ask(Requests.event(ref, seconds), client.options.leaseMs * 2)
        if (answer._tag === "Refused") return
        if (answer._tag === "Event") client.event = answer.event
        if (answer._tag === "Event" && isTerminal(answer.event.status)) return
        yield* client.pause(0.1, 1)
      }
    })
  }

  /** A write that may be repeated, until its outcome is known or the client has lost interest. */
  private repeated(request: Request): Effect.Effect<Answer> {
    const client = this
    return Effect.gen(function*() {
      let answer = yield* client.ask(request)
      for (let repeat = 0; answer._tag === "Unknown" && repeat < repeatsMax; repeat++) {
        yield* client.pause(0.02, 0.5)
        answer = yield* client.ask(request)
      }
      return answer
    })
  }

  /** Now and then by two hands at once. */
  private cancel(ref: OperationRef): Effect.Effect<unknown> {
    const cancel = this.repeated(Requests.cancel(ref))
    const isTwice = this.key.of("by two").of(this.asks).chance(0.2)
    return isTwice ? Effect.all([cancel, cancel], { concurrency: "unbounded" }) : cancel
  }

  /** With a key, unless the client is careless: then nothing is repeated. */
  private keyed(make: (key: IdempotencyKey | null) => Request, spared: IdempotencyKey | null = null): Effect.Effect<Answer> {
    const number = this.asks
    const key = spared ?? (this.key.of("keyed").of(number).chance(0.7) ? keyOf(`${this.process.id}-${number}`) : null)
    return key === null ? this.ask(make(null)) : this.repeated(make(key))
  }

  /** Only of what has failed, as far as the client knows, or of what it knows nothing of. Then it follows it again. */
  private retry(ref: OperationRef): Effect.Effect<void> {
    const client = this
    return Effect.gen(function*() {
      if (client.event !== null && client.event.status !== "failed") return
      const point = { actor: client.process.id, label: "retry", index: client.retried++ }
      const fault = client.options.strikes.strike(point, ["client_regrets"])
      const { spared } = client
      let used = client.spared = null as IdempotencyKey | null
      const retry = client.keyed((key) => {
        used = key
        return Requests.retry(ref, key)
      }, spared)
      const answer = yield* fault === null ? retry : client.regretted(retry, ref, client.options.strikes.detail(point, fault))
      if (answer._tag !== "Receipt") return
      const { add, key, workspaceId } = client.options.errand
      const startsOver = client.options.strikes.strike({ ...point, label: "retried" }, ["client_starts_over"]) !== null
      if (startsOver) yield* client.ask(Requests.add(workspaceId, key, add))
      yield* client.follow(ref, 0)
      // It ran already, and now it has failed: this time there is something to do.
      client.spared = answer.receipt.already === true ? used : null
      const insists = client.spared !== null || client.key.of("insists").of(client.retried).chance(0.3)
      if (insists && client.retried < retriesMax && client.event?.status === "failed") yield* client.retry(ref)
    })
  }

  /** Does not wait for the answer before it takes back what it has asked for, or has what was said removed. */
  private regretted(asked: Effect.Effect<Answer>, ref: OperationRef, detail: Key): Effect.Effect<Answer> {
    const regret = detail.of("purges").chance(0.3) ? Requests.purge(ref) : Requests.cancel(ref)
    const cancel = Effect.andThen(Effect.sleep(detail.logUniform(5, 200)), this.ask(regret))
    return Effect.map(Effect.all([asked, cancel], { concurrency: "unbounded" }), ([answer]) => answer)
  }

  private change(step: "edit" | "delete"): Effect.Effect<unknown> {
    const [target] = this.known
    if (target === undefined) return Effect.void
    const { workspaceId } = this.options.errand
    const expectedVersion = this.key.of("expects").of(this.asks).chance(0.5) ? target.version : null
    const command: Hashed<UpdateCommand | DeleteCommand> = hashed(step === "delete"
      ? { kind: "memory.delete", memoryId: target.id, expectedVersion }
      : { kind: "memory.update", memoryId: target.id, ...this.edit(), expectedVersion })
    return this.keyed((key) => Requests.change(workspaceId, key, command))
  }

  /** The text, what is said beside it, or both. */
  private edit(): Pick<UpdateCommand, "text" | "metadata"> {
    const key = this.key.of("edit").of(this.asks)
    const text = `${canary} edited ${this.asks}`
    const metadata = { from: canary, mark: key.of("mark").below(marks) }
    return key.choose([{ text, metadata: null }, { text, metadata: null }, { text: null, metadata }, { text, metadata }])
  }

  private verbatim(): Effect.Effect<unknown> {
    const { number, scope, workspaceId } = this.options.errand
    const key = this.key.of("verbatim").of(this.asks)
    const text = `${canary} as said by ${number}`
    const bodies: readonly [AddBody, ...ReadonlyArray<AddBody>] = [
      { content: text },
      { content: text, metadata: { from: canary, mark: key.of("mark").below(marks) }, event_date: "2025-02-03" },
      { messages: ["", text, " ", `${text} too`].map((content) => ({ role: "assistant", content })), metadata: { mark: 0 } }
    ]
    const command = hashed(normaliseAdd({ ...scope, infer: false, ...key.choose(bodies) }))
    return this.keyed((key) => Requests.add(workspaceId, key, command))
  }
}

/** A receipt says most, a refusal more than nothing. */
const better = (one: Answer, other: Answer): Answer => rank(other) > rank(one) ? other : one
const rank = ({ _tag }: Answer): number => _tag === "Receipt" ? 2 : _tag === "Unknown" ? 0 : 1
