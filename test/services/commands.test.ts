/** What callers of commands are promised, on a real Postgres that sometimes does not say what it did. */
import { assert, describe, layer } from "@effect/vitest"
import { Context, Effect, Layer, Result } from "effect"
import { normaliseAdd } from "../../src/domain/Command.ts"
import { ComeBackLater } from "../../src/domain/Refusal.ts"
import { Commands } from "../../src/services/Commands.ts"
import { Events } from "../../src/services/Events.ts"
import { Ledger } from "../../src/services/Ledger.ts"
import { Memories } from "../../src/services/Memories.ts"
import { Retries } from "../../src/services/Retries.ts"
import { assertHealthy } from "../audit.ts"
import { Losses } from "../lossy.ts"
import * as World from "../world.ts"

const verbatim = (content: string) => normaliseAdd({ content, user_id: "ana", infer: false })

describe("Commands", () => {
  layer(World.layer(), { excludeTestServices: true })("when the database does not answer", (it) => {
    it.effect("an accept whose commit is lost is made again, once", () =>
      Effect.gen(function*() {
        yield* World.open(100n)
        const losses = yield* Losses
        losses.commits = 2
        const receipt = yield* World.accept("lost-commit")
        assert.isFalse(receipt.replayed)
        assert.strictEqual((yield* World.accept("lost-commit")).eventId, receipt.eventId)
        assert.strictEqual((yield* (yield* Ledger).balances(World.workspace)).reserved, 2n)
        yield* assertHealthy
      }))

    it.effect("an accept whose reply is lost never becomes a conflict, a second operation or a replay of itself", () =>
      Effect.gen(function*() {
        const losses = yield* Losses
        losses.replies = 1
        const receipt = yield* World.accept("lost-reply")
        assert.isFalse(receipt.replayed)
        assert.strictEqual((yield* (yield* Ledger).balances(World.workspace)).reserved, 4n)
        yield* assertHealthy
      }))

    it.effect("a verbatim add whose commit or reply is lost is stored and charged once, with a key and without", () =>
      Effect.gen(function*() {
        const commands = yield* Commands
        const losses = yield* Losses
        for (const key of [null, World.key("verbatim")]) {
          losses.commits = 1
          yield* commands.add(World.workspace, key === null ? null : World.key("verbatim-0"), verbatim("commit lost"))
          losses.replies = 1
          const { event, replayed } = yield* commands.add(World.workspace, key, verbatim("reply lost"))
          assert.isFalse(replayed)
          assert.strictEqual(event.results.length, 1)
        }
        assert.strictEqual(yield* World.count("memories"), 4)
        assert.strictEqual((yield* (yield* Ledger).balances(World.workspace)).consumed, 4n)
        yield* assertHealthy
      }))

    it.effect("a caller is told to come back with the same key when the database stays silent, and nothing is lost", () =>
      Effect.gen(function*() {
        const losses = yield* Losses
        losses.commits = 100
        const silent = yield* Effect.flip(World.accept("silent"))
        losses.commits = 0
        assert.deepInclude(silent, { _tag: "ComeBackLater", reason: "outcome_unknown" })
        assert.isFalse((yield* World.accept("silent")).replayed)
        yield* assertHealthy
      }))
  })

  layer(World.layer(), { excludeTestServices: true })("when it answers the command, and not the look at its event", (it) => {
    it.effect("whoever repeats is told to come back, as nobody knows more", () =>
      Effect.gen(function*() {
        yield* World.open(100n)
        const world = yield* Effect.context<World.World>()
        const later = Effect.suspend(() => Effect.fail(new ComeBackLater({ reason: "outcome_unknown" })))
        const silent = Layer.succeed(Events, { ...Context.get(world, Events), get: () => later })
        const context = yield* Layer.buildWithMemoMap(
          Commands.layer.pipe(Layer.provide(silent), Layer.provide(Layer.succeedContext(world))),
          yield* Layer.makeMemoMap,
          yield* Effect.scope
        )
        yield* World.accept("repeated")
        const repeated = World.accept("repeated").pipe(Effect.provideService(Commands, Context.get(context, Commands)))
        assert.deepInclude(yield* Effect.flip(repeated), { _tag: "ComeBackLater", reason: "outcome_unknown" })
      }))
  })

  layer(World.layer(), { excludeTestServices: true })("edits and deletions", (it) => {
    it.effect("a replay is recognised before the version is checked", () =>
      Effect.gen(function*() {
        yield* World.open(100n)
        const commands = yield* Commands
        const memories = yield* Memories
        const { event } = yield* commands.add(World.workspace, null, verbatim("I live in Berlin"))
        const memoryId = event.results[0]!.id!
        const update = {
          kind: "memory.update",
          memoryId,
          text: "I live in Paris",
          metadata: null,
          expectedVersion: 1
        } as const
        const first = yield* commands.update(World.workspace, World.key("move"), update)
        const again = yield* commands.update(World.workspace, World.key("move"), update)
        assert.deepStrictEqual([first.replayed, again.replayed], [false, true])
        assert.deepStrictEqual(again.event.results, first.event.results)
        const stale = yield* Effect.flip(commands.update(World.workspace, World.key("late"), update))
        assert.deepInclude(stale, { _tag: "VersionConflict", current: 2 })
        const memory = yield* memories.get({ workspaceId: World.workspace, id: memoryId })
        assert.deepInclude(memory, { text: "I live in Paris", version: 2 })
        const history = yield* memories.history({ workspaceId: World.workspace, id: memoryId })
        assert.deepStrictEqual(history.map(({ change, text, version }) => [version, change, text]), [
          [1, "add", "I live in Berlin"],
          [2, "update", "I live in Paris"]
        ])
        yield* assertHealthy
      }))

    it.effect("of many edits of one version at once, exactly one is made", () =>
      Effect.gen(function*() {
        const commands = yield* Commands
        const { event } = yield* commands.add(World.workspace, null, verbatim("contended"))
        const memoryId = event.results[0]!.id!
        const results = yield* Effect.forEach(Array.from({ length: 20 }, (_, n) => n), (n) =>
          Effect.result(commands.update(World.workspace, null, {
            kind: "memory.update",
            memoryId,
            text: `edit ${n}`,
            metadata: null,
            expectedVersion: 1
          })), { concurrency: "unbounded" })
        assert.strictEqual(results.filter(Result.isSuccess).length, 1)
        yield* assertHealthy
      }))

    it.effect("retrying what is live finds nothing to do, holds what it held, and leaves the key free", () =>
      Effect.gen(function*() {
        yield* World.open(100n)
        const retries = yield* Retries
        const { eventId } = yield* World.accept("live")
        const ref = { workspaceId: World.workspace, id: eventId }
        for (const key of [World.key("again"), World.key("again"), null]) {
          const receipt = yield* retries.retry(ref, key)
          assert.deepInclude(receipt, { eventId, status: "pending", replayed: false, already: true, reserved: 2n })
        }
        assert.deepInclude(yield* (yield* Ledger).balances(World.workspace), { reserved: 2n })
        yield* retries.cancel(ref)
        const receipt = yield* retries.retry(ref, World.key("again"))
        assert.deepStrictEqual([receipt.replayed, receipt.already, receipt.reserved], [false, undefined, 2n])
        const repeat = yield* retries.retry(ref, World.key("again"))
        assert.deepStrictEqual([repeat.replayed, repeat.already, repeat.reserved], [true, undefined, 2n])
      }))

    it.effect("whoever repeats an add gets the receipt of the original, also after a manual retry", () =>
      Effect.gen(function*() {
        yield* World.open(100n)
        const retries = yield* Retries
        const { eventId, reserved } = yield* World.accept("retried-since")
        const ref = { workspaceId: World.workspace, id: eventId }
        yield* retries.cancel(ref)
        yield* retries.retry(ref, null)
        assert.deepInclude(yield* World.accept("retried-since"), { eventId, replayed: true, reserved })
      }))

    it.effect("deleting what is deleted is done already, and an edit of it finds nothing", () =>
      Effect.gen(function*() {
        const commands = yield* Commands
        const memories = yield* Memories
        const { event } = yield* commands.add(World.workspace, null, verbatim("to be forgotten"))
        const memoryId = event.results[0]!.id!
        const erase = { kind: "memory.delete", memoryId, expectedVersion: null } as const
        const first = yield* commands.delete(World.workspace, null, erase)
        const second = yield* commands.delete(World.workspace, World.key("erase"), erase)
        const third = yield* commands.delete(World.workspace, World.key("erase"), erase)
        // A key of its own is no repeat: it found that there was nothing to do, which its own repeat is told as well.
        assert.deepStrictEqual([first.replayed, second.replayed, third.replayed], [false, false, true])
        assert.deepStrictEqual([first.already, second.already, third.already], [undefined, true, undefined])
        assert.deepStrictEqual([second.event.id, third.event.id], [first.event.id, first.event.id])
        const edit = { kind: "memory.update", memoryId, text: "back", metadata: null, expectedVersion: null } as const
        assert.strictEqual((yield* Effect.flip(commands.update(World.workspace, null, edit)))._tag, "NotFound")
        const history = yield* memories.history({ workspaceId: World.workspace, id: memoryId })
        assert.deepStrictEqual(history.map(({ text }) => text), [null, null])
        yield* assertHealthy
      }))
  })

  layer(World.layer(), { excludeTestServices: true })("credit", (it) => {
    it.effect("the last credit goes to one of fifty, and a refused key works after a top-up", () =>
      Effect.gen(function*() {
        yield* World.open(2n)
        const ledger = yield* Ledger
        const answers = yield* Effect.forEach(
          Array.from({ length: 50 }, (_, n) => `last-${n}`),
          (name) => Effect.map(Effect.result(World.accept(name)), (answer) => ({ name, answer })),
          { concurrency: "unbounded" }
        )
        const refused = answers.filter(({ answer }) => Result.isFailure(answer))
        assert.strictEqual(refused.length, 49)
        assert.deepStrictEqual(
          new Set(refused.map(({ answer }) => Result.isFailure(answer) ? answer.failure._tag : "")),
          new Set(["InsufficientCredit"])
        )
        yield* ledger.grant(World.workspace, 2n, "top-up")
        assert.isFalse((yield* World.accept(refused[0]!.name)).replayed)
        assert.deepStrictEqual(yield* ledger.balances(World.workspace), {
          available: 0n,
          reserved: 4n,
          consumed: 0n,
          issued: 4n
        })
        yield* assertHealthy
      }))

    it.effect("a grant counts once for each reference", () =>
      Effect.gen(function*() {
        const ledger = yield* Ledger
        assert.isFalse(yield* ledger.grant(World.workspace, 2n, "top-up"))
        assert.strictEqual((yield* ledger.balances(World.workspace)).issued, 4n)
      }))
  })
})
