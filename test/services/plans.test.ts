/** Extractions that meet what is there: they see it, change it by version, and skip what moved meanwhile. */
import { assert, describe, layer } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { normaliseAdd } from "../../src/domain/Command.ts"
import { Commands } from "../../src/services/Commands.ts"
import { Memories } from "../../src/services/Memories.ts"
import { assertHealthy } from "../audit.ts"
import { fact, Script } from "../scripted.ts"
import * as World from "../world.ts"

const stored = Effect.fnUntraced(function*(content: string, scope: object = { user_id: "ana" }) {
  const { event } = yield* (yield* Commands).add(World.workspace, null, normaliseAdd({ content, ...scope, infer: false }))
  return event.results[0]!.id!
})

describe("plans", () => {
  layer(World.layer(), { excludeTestServices: true })("on a real Postgres", (it) => {
    it.effect("the model sees the memories of exactly this scope, projected or not, and may add, update, delete or decline", () =>
      Effect.gen(function*() {
        yield* World.open()
        const script = yield* Script
        const memories = yield* Memories
        const city = yield* stored("User lives in Berlin.")
        const cat = yield* stored("User has a cat.")
        yield* stored("Somebody else's.", { user_id: "ben" })
        yield* stored("Ana's, but of an agent.", { user_id: "ana", agent_id: "a" })
        let shown: ReadonlyArray<string> = []
        script.extract = ({ related }) => {
          shown = related.map(({ text }) => text)
          return Effect.succeed([
            { change: "update", text: "User lives in Paris.", target: shown.indexOf("User lives in Berlin.") },
            { change: "delete", text: null, target: shown.indexOf("User has a cat.") },
            { change: "none", text: null, target: null },
            { change: "update", text: "made-up", target: 99 },
            fact("User plays the cello.")
          ])
        }
        yield* World.startWorker()
        const event = yield* World.finished((yield* World.accept("changes")).eventId)
        assert.sameMembers([...shown], ["User lives in Berlin.", "User has a cat."])
        assert.deepStrictEqual(event.results.map(({ change, memory, reason, version }) => ({ change, version, memory, reason })), [
          { change: "update", version: 2, memory: "User lives in Paris.", reason: undefined },
          { change: "delete", version: 2, memory: null, reason: undefined },
          { change: "none", version: null, memory: null, reason: "model_declined" },
          { change: "none", version: null, memory: null, reason: "target_unknown" },
          { change: "add", version: 1, memory: "User plays the cello.", reason: undefined }
        ])
        const now = yield* memories.get({ workspaceId: World.workspace, id: city })
        assert.deepInclude(now, { text: "User lives in Paris.", version: 2 })
        assert.strictEqual((yield* Effect.flip(memories.get({ workspaceId: World.workspace, id: cat })))._tag, "NotFound")
        yield* assertHealthy
      }))

    it.effect("a target that moved or vanished while the model thought is skipped with a reason, and the rest applies", () =>
      Effect.gen(function*() {
        yield* World.open()
        const script = yield* Script
        const commands = yield* Commands
        const moved = yield* stored("User drives a Saab.", { user_id: "carl" })
        const gone = yield* stored("User smokes.", { user_id: "carl" })
        const asked = yield* Deferred.make<void>()
        const answer = yield* Deferred.make<void>()
        script.extract = ({ related }) =>
          Deferred.succeed(asked, undefined).pipe(
            Effect.andThen(Deferred.await(answer)),
            Effect.as([
              { change: "update", text: "User drives a Volvo.", target: related.findIndex(({ text }) => text.includes("Saab")) },
              { change: "delete", text: null, target: related.findIndex(({ text }) => text.includes("smokes")) },
              fact("User likes trains.")
            ])
          )
        yield* World.startWorker()
        const { eventId } = yield* World.accept("overtaken", World.body("overtaken", "carl"))
        yield* Deferred.await(asked)
        const edit = { memoryId: moved, metadata: null, expectedVersion: null }
        yield* commands.update(World.workspace, null, { ...edit, kind: "memory.update", text: "User drives a Fiat." })
        yield* commands.delete(World.workspace, null, { kind: "memory.delete", memoryId: gone, expectedVersion: null })
        yield* Deferred.succeed(answer, undefined)
        const event = yield* World.finished(eventId)
        assert.deepStrictEqual(event.results.map(({ change, memory, reason }) => [change, memory, reason]), [
          ["none", "User drives a Fiat.", "target_changed"],
          ["none", null, "target_gone"],
          ["add", "User likes trains.", undefined]
        ])
        assert.deepInclude(event.evidence, { offered: 3, stored: 1 })
        yield* assertHealthy
      }))
  })
})
