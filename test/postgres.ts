/** A fresh, migrated database of a real Postgres for each layer that is built, and the same in PGlite with pgvector. */
import { PGlite } from "@electric-sql/pglite"
import { vector } from "@electric-sql/pglite-pgvector"
import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer, Redacted } from "effect"
import * as Crypto from "node:crypto"
import * as Net from "node:net"
import { Duplex } from "node:stream"
import { inject } from "vitest"
import * as PgDatabase from "../src/adapters/PgDatabase.ts"
import * as PgMigrations from "../src/adapters/PgMigrations.ts"
import { administer } from "./administer.ts"

/** The database of this test, for tests that start several processes or pools on it. */
export class PgTest extends Context.Service<PgTest, {
  readonly url: Redacted.Redacted
}>()("indelible/test/PgTest") {
  /** A fresh copy of the migrated template, dropped when the scope closes. */
  static readonly database = Layer.effect(PgTest, Effect.suspend(() => fresh(true)))
  /** The same without a schema, for tests of migrations. */
  static readonly empty = Layer.effect(PgTest, Effect.suspend(() => fresh(false)))
  /** A fresh database with the pools of production: `PgClient`, `SqlClient`, `LeasePool`, and `PgTest` for its URL. */
  static readonly layer = Layer.unwrap(Effect.map(PgTest, ({ url }) => PgDatabase.layer({ url }))).pipe(
    Layer.provideMerge(PgTest.database)
  )
}

const templateUrl = Effect.callback<URL>((resume) => {
  let answer = ""
  const socket = Net.connect(inject("databasePort"), "127.0.0.1")
  socket.on("data", (chunk) => answer += chunk.toString())
  socket.on("error", (cause) => resume(Effect.die(cause)))
  socket.on("end", () => resume(URL.canParse(answer) ? Effect.succeed(new URL(answer)) : Effect.die(new Error(answer))))
})

const fresh = Effect.fnUntraced(function*(migrated: boolean) {
  const template = yield* templateUrl
  const admin = new URL(template)
  admin.pathname = "postgres"
  const name = `indelible_test_${Crypto.randomBytes(6).toString("hex")}`
  const server = Redacted.make(admin.href)
  yield* Effect.acquireRelease(
    administer(server, `create database ${name} template ${migrated ? template.pathname.slice(1) : "template0"}`),
    () => Effect.orDie(administer(server, `drop database if exists ${name} with (force)`))
  )
  const url = new URL(template)
  url.pathname = name
  return PgTest.of({ url: Redacted.make(url.href) })
}, Effect.orDie)

/** Postgres in this process, with pgvector. One session: nothing runs at the same time as anything else. */
export class PGliteTest extends Context.Service<PGliteTest, PGlite>()("indelible/test/PGliteTest") {
  /** A fresh migrated database: `PgClient`, `SqlClient`, and `PGliteTest` for itself. */
  static readonly layer = Layer.unwrap(Effect.gen(function*() {
    const pglite = yield* PGliteTest
    const config = { stream: wires(pglite), username: "postgres", database: "postgres" }
    yield* Effect.orDie(PgMigrations.run(config))
    return PgClient.layer({ ...config, maxConnections: 1 })
  })).pipe(Layer.provideMerge(Layer.effect(
    PGliteTest,
    Effect.acquireRelease(
      Effect.promise(() => PGlite.create({ extensions: { vector } })),
      (pglite) => Effect.promise(() => pglite.close())
    )
  )))
}

/**
 * Sockets' places: bytes go to PGlite in order, and its answers come back to whoever asked. What it notifies is for all of
 * them: it knows of one session, whoever listens.
 */
export const wires = (pglite: PGlite): () => Duplex => {
  const all = new Set<Duplex>()
  return () => {
    const one: Duplex = new Duplex({
      read: () => {},
      write(chunk: Buffer, _encoding, done) {
        pglite.runExclusive(() => pglite.execProtocolRaw(chunk)).then((answer) => {
          for (const message of messages(Buffer.from(answer))) {
            for (const wire of message[0] === notification ? all : [one]) wire.push(message)
          }
          done()
        }, done)
      },
      final(done) {
        all.delete(one)
        this.push(null)
        done()
      }
    })
    all.add(one)
    return one
  }
}

/** The first byte of a `NotificationResponse`. */
const notification = "A".charCodeAt(0)

/** Each begins with one byte for its kind, and its length without that. */
function* messages(answer: Buffer): Generator<Buffer> {
  for (let from = 0; from < answer.length;) {
    const to = from + 1 + answer.readInt32BE(from + 1)
    yield answer.subarray(from, to)
    from = to
  }
}
