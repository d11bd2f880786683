/**
 * One database server for a whole test run, started when the first test file asks for it and gone afterwards. With
 * `TEST_DATABASE_URL` that server is used instead, and only the databases that were made on it are removed.
 */
import { Effect, Exit, Redacted, Scope } from "effect"
import { spawn } from "node:child_process"
import * as Fs from "node:fs"
import * as Net from "node:net"
import * as Os from "node:os"
import * as Path from "node:path"
import type { TestProject } from "vitest/node"
import { make } from "../src/adapters/EmbeddedPostgres.ts"
import { session } from "../src/adapters/PgDatabase.ts"
import * as PgMigrations from "../src/adapters/PgMigrations.ts"
import { administer } from "./administer.ts"

declare module "vitest" {
  export interface ProvidedContext {
    /** Whoever connects here is sent the URL of the migrated template database. */
    readonly databasePort: number
  }
}

const server = Effect.gen(function*() {
  const own = process.env.TEST_DATABASE_URL
  if (own !== undefined) return own
  const dataDir = yield* Effect.acquireRelease(
    Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "indelible-test-"))),
    (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
  )
  Fs.chmodSync(dataDir, 0o711)
  const { url } = yield* make({ dataDir, durable: false, maxConnections: 300 })
  yield* Effect.sync(() => endWithThisProcess(dataDir))
  return Redacted.value(url)
})

/**
 * An interrupted run tears nothing down, and a killed one cannot. So somebody waits for this process to be gone,
 * however it goes, and ends what is left.
 */
const endWithThisProcess = (dataDir: string): void => {
  const script = 'cat >/dev/null; kill -QUIT "$(head -n 1 "$0/postgres/data/postmaster.pid")" && rm -rf "$0"'
  spawn("sh", ["-c", script, dataDir], { detached: true, stdio: ["pipe", "ignore", "ignore"] }).unref()
}

/** A migrated database that every test database is copied from. */
const template = Effect.gen(function*() {
  const admin = yield* server
  const name = `indelible_template_${process.pid}`
  yield* Effect.acquireRelease(
    administer(Redacted.make(admin), `create database ${name}`),
    () => Effect.orDie(administer(Redacted.make(admin), `drop database ${name} with (force)`))
  )
  const url = new URL(admin)
  url.pathname = name
  yield* PgMigrations.run(session(Redacted.make(url.href), "indelible tests"))
  return url.href
})

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const scope = Scope.makeUnsafe()
  let started: Promise<string> | undefined
  const desk = Net.createServer((socket) => {
    started ??= Effect.runPromise(Scope.provide(template, scope))
    started.then((url) => socket.end(url), (cause: unknown) => socket.end(`failed: ${String(cause)}`))
  })
  await new Promise<void>((resolve) => desk.listen(0, "127.0.0.1", resolve))
  const address = desk.address()
  if (address === null || typeof address === "string") throw new Error("no port for the test database")
  project.provide("databasePort", address.port)
  return async () => {
    desk.close()
    await started?.catch(() => undefined)
    await Effect.runPromise(Scope.close(scope, Exit.void))
  }
}
