/** Every start finds what an earlier one made, adds nothing to it, and says where what is asked for is not what there is. */
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Layer, Logger, Redacted } from "effect"
import { SecureRandom } from "effect/crypto"
import * as Bootstrap from "../../src/adapters/Bootstrap.ts"
import * as Configuration from "../../src/adapters/Configuration.ts"
import { issuedMax } from "../../src/domain/Ledger.ts"
import { ApiKeys } from "../../src/services/ApiKeys.ts"
import { Ledger } from "../../src/services/Ledger.ts"
import { postgres } from "./pgPorts.ts"

const ports = Layer.mergeAll(postgres, SecureRandom.layerWebCrypto)

const key = (name: string) => `key-of-the-operator-${name}`

/** One start, and the lines that it logs. */
const start = (env: Record<string, string>) =>
  Effect.gen(function*() {
    const lines: Array<string> = []
    const logger = Logger.make<unknown, void>(({ message }) => {
      lines.push(String(Array.isArray(message) ? message[0] : message))
    })
    yield* Bootstrap.run(yield* Configuration.load({ INDELIBLE_API_KEY: key("one"), ...env })).pipe(
      Effect.provide(Logger.layer([logger]))
    )
    return lines
  })

const issued = Effect.gen(function*() {
  return (yield* (yield* Ledger).balances(Bootstrap.workspaceId)).issued
})

describe("the first workspace", () => {
  layer(ports, { excludeTestServices: true })("and its credit", (it) => {
    it.effect("is granted once: another INDELIBLE_CREDITS changes nothing, and is told so in one line", () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* start({ INDELIBLE_CREDITS: "50" }), [])
        assert.deepStrictEqual(yield* start({ INDELIBLE_CREDITS: "50" }), [])
        // A default is nobody's wish.
        assert.deepStrictEqual(yield* start({}), [])
        for (const credits of ["70", "0"]) {
          const [line, ...more] = yield* start({ INDELIBLE_CREDITS: credits })
          assert.deepStrictEqual(more, [])
          assert.include(line, "INDELIBLE_CREDITS")
          assert.match(line!, /was granted 50 credits/)
          assert.include(line, "npm run admin -- credit grant default CREDITS --reference NAME")
        }
        assert.strictEqual(yield* issued, 50n)
      }))
  })

  layer(ports, { excludeTestServices: true })("and credit that it had before", (it) => {
    it.effect("is not added to beyond what can be told: the start says so in one line, and goes on", () =>
      Effect.gen(function*() {
        yield* (yield* ApiKeys).makeWorkspace(Bootstrap.workspaceId)
        yield* (yield* Ledger).grant(Bootstrap.workspaceId, issuedMax - 9n, "by hand")
        const [line, ...more] = yield* start({ INDELIBLE_CREDITS: "10" })
        assert.deepStrictEqual(more, [])
        assert.match(line!, /^INDELIBLE_CREDITS: workspace default was issued \d+ credits.*: nothing was granted$/)
        assert.strictEqual(yield* issued, issuedMax - 9n)
        assert.deepStrictEqual(yield* start({ INDELIBLE_CREDITS: "9" }), [])
        assert.strictEqual(yield* issued, issuedMax)
      }))
  })

  layer(ports, { excludeTestServices: true })("and its keys", (it) => {
    it.effect("an earlier bootstrap key stays valid, and each start says so until it is revoked", () =>
      Effect.gen(function*() {
        const keys = yield* ApiKeys
        assert.deepStrictEqual(yield* start({}), [])
        yield* keys.make(Bootstrap.workspaceId, "production", ["memories:read"])
        const [old] = yield* keys.list(Bootstrap.workspaceId)
        const [line, ...more] = yield* start({ INDELIBLE_API_KEY: key("two") })
        assert.deepStrictEqual(more, [])
        assert.include(line, `npm run admin -- key revoke default ${old!.id}`)
        assert.notInclude(line, key("two"))
        assert.isNotNull(yield* keys.authenticate(Redacted.make(key("one"))))
        yield* keys.revoke(Bootstrap.workspaceId, old!.id)
        assert.deepStrictEqual(yield* start({ INDELIBLE_API_KEY: key("two") }), [])
      }))

    it.effect("a bootstrap key that was revoked stays so, and the start says so", () =>
      Effect.gen(function*() {
        const lines = yield* start({ INDELIBLE_API_KEY: key("one") })
        assert.match(lines[0]!, /was revoked and stays so/)
        assert.isNull(yield* (yield* ApiKeys).authenticate(Redacted.make(key("one"))))
      }))
  })
})
