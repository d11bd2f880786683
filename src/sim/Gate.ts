/** The way from a client to some API server and back. A server that dies, or takes too long, leaves the client with nothing. */
import { Cause, Effect, Exit, type Redacted } from "effect"
import type { WorkspaceId } from "../domain/Ids.ts"
import { ApiKeys } from "../services/ApiKeys.ts"
import type { Machine } from "./Fleet.ts"
import { type Call, io } from "./Io.ts"
import type { Key } from "./Keyed.ts"
import { processOf } from "./Process.ts"
import type { ApiServices, Request } from "./Requests.ts"
import type { Server } from "./Server.ts"
import type { Answer, Refused, Told } from "./Told.ts"

export interface GateOptions {
  readonly apis: ReadonlyArray<Machine<ApiServices>>
  /** The key that a client of this workspace has now; null when nobody looks at keys in this world. */
  readonly secretOf: (workspaceId: WorkspaceId) => Redacted.Redacted | null
  readonly told: (told: Told) => void
  /** A served request had a defect. */
  readonly broke: (processId: string, why: string) => void
  /** Somebody who asked then was let in with this secret. */
  readonly letIn: (secret: Redacted.Redacted, askedAt: number) => void
}

const unknown: Answer = { _tag: "Unknown" }

export class Gate {
  private readonly options: GateOptions
  /** Questions without an answer so far. */
  private readonly open = new Set<Omit<Told, "answer" | "answeredAt">>()

  constructor(options: GateOptions) {
    this.options = options
  }

  /** Asks one of the servers that are there, and waits that long for its answer. */
  ask(request: Request, timeoutMs: number): Effect.Effect<Answer> {
    return Effect.withFiber((fiber) => {
      const client = processOf(fiber)
      const { question, workspaceId } = request
      const asked = { client: client.id, workspaceId, askedAt: client.kernel.now, question }
      this.open.add(asked)
      return Effect.map(this.send(request, client.key, timeoutMs), (answer) => {
        this.open.delete(asked)
        this.options.told({ ...asked, answeredAt: client.kernel.now, answer })
        return answer
      })
    })
  }

  /** The run ends: what is open now is never answered. */
  close(now: number): void {
    for (const asked of this.open) this.options.told({ ...asked, answeredAt: now, answer: unknown })
    this.open.clear()
  }

  private send(request: Request, key: Key, timeoutMs: number): Effect.Effect<Answer> {
    const label = `client.${request.question._tag}`
    return Effect.withFiber((fiber) => {
      const client = processOf(fiber)
      return io<Answer>({
        label,
        latencyMs: key.of("way").of(client.callIndex("way")).logUniform(0.1, 3),
        arrive: (call) => this.arrive(request, call, key.of(label).of(call.index), timeoutMs)
      })
    })
  }

  private arrive(request: Request, call: Call<Answer, never>, key: Key, timeoutMs: number): void {
    const { kernel } = call.process
    const server = key.of("server").choose(this.options.apis)?.process ?? null
    // Nobody listens there.
    if (server === null || !server.up || server.state !== "running") return call.answer(Exit.succeed(unknown), 0.1)
    let open = true
    const end = (answer: Answer, latencyMs: number) => {
      if (!open) return
      open = false
      kernel.cancel(timeout)
      alive()
      call.answer(Exit.succeed(answer), latencyMs)
    }
    const hangUp = server.serve("request", this.program(request, kernel.now), (exit) => {
      if (open) end(this.answerOf(server, exit), key.of("back").logUniform(0.1, 3))
    })
    const alive = server.onDeath(() => {
      // Some connections break at once. The others are silent until the client has waited long enough.
      if (key.of("reset").chance(0.7)) end(unknown, key.of("reset in").logUniform(0.1, 50))
    })
    const timeout = kernel.postAt(kernel.micros + timeoutMs * 1_000, call.process, "timer", "client.timeout", () => {
      end(unknown, 0)
      // Not every server notices that nobody waits any more.
      if (key.of("notices").chance(0.5)) hangUp()
    })
  }

  private program({ program, workspaceId }: Request, askedAt: number): Request["program"] {
    const secret = this.options.secretOf(workspaceId)
    if (secret === null) return program
    return Effect.flatMap(ApiKeys, (keys) => keys.authenticate(secret)).pipe(
      Effect.match({ onFailure: () => null, onSuccess: (key) => ({ key }) }),
      Effect.flatMap((found): Request["program"] => {
        if (found === null || found.key === null) return Effect.succeed(unknown)
        this.options.letIn(secret, askedAt)
        return program
      })
    )
  }

  private answerOf(server: Server<ApiServices>, exit: Exit.Exit<Answer, Refused | { readonly _tag: "ComeBackLater" }>): Answer {
    if (Exit.isSuccess(exit)) return exit.value
    const failed = exit.cause.reasons.find(Cause.isFailReason)?.error
    if (failed !== undefined) return failed._tag === "ComeBackLater" ? unknown : { _tag: "Refused", refusal: failed }
    if (Cause.hasDies(exit.cause)) this.options.broke(server.id, `a request ended with ${String(Cause.squash(exit.cause))}`)
    return unknown
  }
}

