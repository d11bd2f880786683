/** What every `ApiKeys` promises: a key opens its own workspace, is shown once, and is dead for good once revoked. */
import { assert, layer } from "@effect/vitest"
import { Effect, Exit, type Layer, Redacted } from "effect"
import { ApiKeyId } from "../../src/domain/Ids.ts"
import { NotFound } from "../../src/domain/Refusal.ts"
import { type ApiKey, ApiKeys, KeyScope } from "../../src/services/ApiKeys.ts"
import { workspaceOf } from "./records.ts"

const together = { concurrency: "unbounded" } as const
const byId = (keys: ReadonlyArray<ApiKey>) => keys.toSorted((a, b) => a.id < b.id ? -1 : 1)

const begin = Effect.fnUntraced(function*(test: string) {
  const workspaceId = workspaceOf(test)
  const keys = yield* ApiKeys
  yield* keys.makeWorkspace(workspaceId)
  const opens = (secret: string) => keys.authenticate(Redacted.make(secret))
  return { keys, opens, workspaceId }
})

export const suite = <E>(name: string, ports: Layer.Layer<ApiKeys, E>) =>
  layer(ports, { excludeTestServices: true, timeout: "60 seconds" })(`ApiKeys: ${name}`, (it) => {
    it.effect("a workspace is made once", () =>
      Effect.gen(function*() {
        const keys = yield* ApiKeys
        const workspaceId = workspaceOf("made")
        assert.isTrue(yield* keys.makeWorkspace(workspaceId))
        assert.isFalse(yield* keys.makeWorkspace(workspaceId))
        const another = workspaceOf("made")
        const made = yield* Effect.forEach([1, 2, 3, 4], () => keys.makeWorkspace(another), together)
        assert.deepStrictEqual(made.toSorted(), [false, false, false, true])
        assert.deepStrictEqual(yield* keys.list(workspaceId), [])
      }))

    it.effect("a key that was made opens its workspace, and is listed as it was shown", () =>
      Effect.gen(function*() {
        const { keys, opens, workspaceId } = yield* begin("opens")
        const label = "Ana's 🦜 \"key\" \\ %"
        const { key, secret } = yield* keys.make(workspaceId, label, ["memories:read", "usage:read"])
        const { createdAt, id, ...rest } = key
        assert.deepStrictEqual(rest, { workspaceId, label, scopes: ["memories:read", "usage:read"], revokedAt: null })
        assert.isAbove(createdAt, 0)
        assert.match(id, /^[0-9a-z]{12}$/)
        assert.deepStrictEqual(yield* opens(Redacted.value(secret)), key)
        assert.deepStrictEqual(yield* keys.list(workspaceId), [key])
        const idle = yield* keys.make(workspaceId, "", [])
        assert.deepStrictEqual((yield* opens(Redacted.value(idle.secret)))!.scopes, [])
      }))

    it.effect("no two keys share an id or a secret, and none is listed in another workspace", () =>
      Effect.gen(function*() {
        const { keys, workspaceId } = yield* begin("distinct")
        const other = yield* begin("distinct-other")
        const making = Array.from({ length: 20 }, () => keys.make(workspaceId, "same", ["events:read"]))
        const made = yield* Effect.all(making, together)
        yield* keys.make(other.workspaceId, "same", [])
        assert.strictEqual(new Set(made.map(({ key }) => key.id)).size, 20)
        assert.strictEqual(new Set(made.map(({ secret }) => Redacted.value(secret))).size, 20)
        assert.isTrue(made.every(({ secret }) => Redacted.value(secret).length > 40))
        assert.deepStrictEqual(byId(yield* keys.list(workspaceId)), byId(made.map(({ key }) => key)))
      }))

    it.effect("nothing but the secret opens anything", () =>
      Effect.gen(function*() {
        const { keys, opens, workspaceId } = yield* begin("nothing")
        const { key, secret } = yield* keys.make(workspaceId, "label", [])
        const text = Redacted.value(secret)
        const wrong = [
          "", " ", text.slice(1), text.slice(0, -1), `${text} `, ` ${text}`, text.toUpperCase(), `${text}\u0000`,
          key.id, workspaceId, "label", "ind_", "🦜", "\ud800", "'; drop table api_keys; --", "x".repeat(1_000_000)
        ]
        for (const guess of wrong) assert.isNull(yield* opens(guess), JSON.stringify(guess).slice(0, 40))
        assert.deepStrictEqual(yield* opens(text), key)
      }))

    it.effect("a revoked key opens nothing, from then on and for good", () =>
      Effect.gen(function*() {
        const { keys, opens, workspaceId } = yield* begin("revoked")
        const [gone, stays] = [yield* keys.make(workspaceId, "gone", []), yield* keys.make(workspaceId, "stays", [])]
        const text = Redacted.value(gone.secret)
        const revoked = yield* keys.revoke(workspaceId, gone.key.id)
        assert.isAtLeast(revoked.revokedAt!, gone.key.createdAt)
        assert.deepStrictEqual(revoked, { ...gone.key, revokedAt: revoked.revokedAt })
        assert.isNull(yield* opens(text))
        assert.deepStrictEqual(yield* keys.revoke(workspaceId, gone.key.id), revoked, "revoking again changes nothing")
        assert.deepStrictEqual(yield* keys.ensure(workspaceId, "again", gone.secret), revoked, "nothing revives it")
        assert.isNull(yield* opens(text))
        assert.deepStrictEqual(yield* opens(Redacted.value(stays.secret)), stays.key)
        assert.deepStrictEqual(byId(yield* keys.list(workspaceId)), byId([revoked, stays.key]))
      }))

    it.effect("a key that is ensured exists once, with every scope, however often and by however many", () =>
      Effect.gen(function*() {
        const { keys, opens, workspaceId } = yield* begin("ensured")
        const secret = Redacted.make(`chosen-for-${workspaceId}`)
        const ensure = (n: number) => keys.ensure(workspaceId, `label ${n}`, secret)
        const ensured = yield* Effect.forEach([1, 2, 3, 4], ensure, together)
        const [first] = ensured
        assert.deepStrictEqual(ensured, ensured.map(() => first!))
        assert.deepStrictEqual(yield* keys.ensure(workspaceId, "later", secret), first!)
        assert.sameMembers([...first!.scopes], [...KeyScope.literals])
        assert.deepStrictEqual(yield* keys.list(workspaceId), [first!])
        assert.deepStrictEqual(yield* opens(Redacted.value(secret)), first!)
      }))

    it.effect("a key of one workspace never comes to open another", () =>
      Effect.gen(function*() {
        const [mine, theirs] = [yield* begin("mine"), yield* begin("theirs")]
        const { key, secret } = yield* mine.keys.make(mine.workspaceId, "mine", [])
        assert.isTrue(Exit.hasDies(yield* Effect.exit(mine.keys.ensure(theirs.workspaceId, "theirs", secret))))
        assert.deepStrictEqual(yield* mine.opens(Redacted.value(secret)), key)
        assert.deepStrictEqual(yield* mine.keys.list(theirs.workspaceId), [])
        assert.deepStrictEqual(
          yield* Effect.flip(mine.keys.revoke(theirs.workspaceId, key.id)),
          new NotFound({ what: "api_key" })
        )
        assert.deepStrictEqual(yield* mine.opens(Redacted.value(secret)), key)
      }))

    it.effect("of a workspace or a key that does not exist it is said that it does not", () =>
      Effect.gen(function*() {
        const { keys, opens, workspaceId } = yield* begin("unknown")
        const nowhere = workspaceOf("nowhere")
        const chosen = `chosen-for-${nowhere}`
        const refusals = [
          yield* Effect.flip(keys.make(nowhere, "", [])),
          yield* Effect.flip(keys.ensure(nowhere, "", Redacted.make(chosen))),
          yield* Effect.flip(keys.list(nowhere))
        ]
        for (const refusal of refusals) assert.deepStrictEqual(refusal, new NotFound({ what: "workspace" }))
        assert.isNull(yield* opens(chosen))
        const unknown = yield* Effect.flip(keys.revoke(workspaceId, ApiKeyId.make("0".repeat(12))))
        assert.deepStrictEqual(unknown, new NotFound({ what: "api_key" }))
      }))
  })
