/** The model's side of a run: mostly honest, and otherwise everything that a provider has ever been caught at, by seed. */
import { Effect, type Scope } from "effect"
import { root } from "../src/sim/Keyed.ts"
import * as FakeOpenAi from "../test/fakeOpenAi.ts"

/**
 * How requests fare for a while, whatever the seed has for each. Whoever may be overtaken is answered soon, but not at once,
 * and whoever takes over from it late.
 */
export type Mood = "by-seed" | "honest" | "hang" | "down" | "limited" | { readonly overtaken: ReadonlyArray<string> }

export interface Provider {
  readonly baseUrl: string
  readonly mood: (mood: Mood) => void
  /** How many requests fared as a mood would have it, and not as by the seed. */
  readonly byMood: () => number
  /** The first that it has begun to think for, of those that may be overtaken. */
  readonly thinksFor: () => string | null
  /** What it did to requests, by name. */
  readonly did: () => Readonly<Record<string, number>>
}

/** What clients say when there is nothing to remember. */
export const smallTalk = "hello there"

interface Settings {
  readonly seed: string
  /** Some answers come after a lease of this length, which the worker has to renew. */
  readonly leaseMs: number
}

export const serve = Effect.fnUntraced(function*({ leaseMs, seed }: Settings): Effect.fn.Return<Provider, never, Scope.Scope> {
  const fake = yield* FakeOpenAi.serve
  const did: Record<string, number> = {}
  const calls = new Map<string, number>()
  let mood: Mood = "by-seed"
  let byMood = 0
  let thinksFor: string | null = null

  const late = (ms: number, behaviour: FakeOpenAi.Behaviour): FakeOpenAi.Behaviour => (response, received) => {
    const timer = setTimeout(() => response.destroyed || behaviour(response, received), ms)
    response.on("close", () => clearTimeout(timer))
  }
  const limited = FakeOpenAi.answer(429, { error: { code: "rate_limit_exceeded" } }, { "retry-after": "1" })
  const down = FakeOpenAi.answer(503, { error: { message: "down" } })

  /** The honest answer: what a text leads to depends on the text alone. */
  const honest: FakeOpenAi.Behaviour = (response, received) => {
    if (received.url.includes("/embeddings")) return FakeOpenAi.honest()(response, received)
    const [said = ""] = FakeOpenAi.saidBy("user", received)
    const turn = root(seed).of("facts").of(said)
    if (said.startsWith(smallTalk)) return FakeOpenAi.facts()(response, received)
    if (turn.chance(0.12)) return FakeOpenAi.facts({ change: "update", text: said, target: 0 })(response, received)
    if (turn.chance(0.16)) return FakeOpenAi.facts({ change: "delete", text: null, target: 0 })(response, received)
    FakeOpenAi.honest()(response, received)
  }

  const behaviours: Record<string, (call: number, random: number) => FakeOpenAi.Behaviour> = {
    prompt: (_, random) => late(5 + random * 80, honest),
    slow: (_, random) => late(300 + random * 2_000, honest),
    thinks: (_, random) => late(700 + random * 1_300, honest),
    "past the lease": (_, random) => late(leaseMs + 500 + random * 2_000, honest),
    hangs: () => FakeOpenAi.hang,
    stalls: () => FakeOpenAi.stall,
    limited: () => limited,
    down: () => down,
    reset: () => FakeOpenAi.reset,
    "reset in the middle": () => FakeOpenAi.resetMidBody(),
    nonsense: () => FakeOpenAi.says("I would rather talk about the weather."),
    refuses: () => FakeOpenAi.choice({ role: "assistant", content: null, refusal: "no" }),
    "another answer each time": (call) => (response, received) => {
      const [said = ""] = FakeOpenAi.saidBy("user", received)
      FakeOpenAi.facts({ change: "add", text: `${said} [call ${call}]`, target: null })(response, received)
    }
  }
  const odds: ReadonlyArray<readonly [name: string, share: number]> = [
    ["slow", 0.1], ["past the lease", 0.05], ["hangs", 0.03], ["stalls", 0.02], ["limited", 0.05], ["down", 0.05],
    ["reset", 0.03], ["reset in the middle", 0.03], ["nonsense", 0.03], ["refuses", 0.02], ["another answer each time", 0.05]
  ]
  const embeddingOdds: ReadonlyArray<readonly [name: string, share: number]> = [["slow", 0.05], ["down", 0.05], ["reset", 0.03]]

  const named = (table: typeof odds, at: number): string => {
    let sum = 0
    for (const [name, share] of table) if ((sum += share) > at) return name
    return "prompt"
  }

  /** What the mood makes of a request; null where the seed decides. */
  const nameNow = (asker: string, embeds: boolean, call: number): string | null => {
    switch (mood) {
      case "by-seed":
        return null
      case "honest":
        return "prompt"
      case "hang":
        return "past the lease"
      case "down":
      case "limited":
        return mood
      default:
        return embeds ? "prompt" : call > 1 ? "past the lease" : mood.overtaken.includes(asker) ? "thinks" : null
    }
  }

  fake.script = (received) => {
    const embeds = received.url.includes("/embeddings")
    const about = embeds ? `embed ${received.body?.input?.[0]}` : FakeOpenAi.saidBy("user", received)[0] ?? ""
    const call = (calls.get(about) ?? 0) + 1
    calls.set(about, call)
    const chance = root(seed).of("provider").of(about).of(call)
    const asker = received.headers.authorization?.replace("Bearer ", "") ?? ""
    const name = nameNow(asker, embeds, call) ?? named(embeds ? embeddingOdds : odds, chance.unit())
    if (mood !== "by-seed") byMood++
    if (name === "thinks") thinksFor ??= asker
    did[name] = (did[name] ?? 0) + 1
    return behaviours[name]!(call, chance.of("time").unit())
  }

  return {
    baseUrl: fake.baseUrl,
    mood: (next) => {
      mood = next
      thinksFor = null
    },
    byMood: () => byMood,
    thinksFor: () => thinksFor,
    did: () => did
  }
})
