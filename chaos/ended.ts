/** What the database ended up with, as the rules of a history want it; and what an audit says of it. */
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, type Redacted } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import { execFile } from "node:child_process"
import * as Os from "node:os"
import * as Path from "node:path"
import { Redacted as Secret } from "effect"
import * as PgDatabase from "../src/adapters/PgDatabase.ts"
import * as PgSnapshot from "../src/adapters/PgSnapshot.ts"
import type { Ended } from "./history/told.ts"

export const read = (url: Redacted.Redacted): Effect.Effect<Ended> =>
  Effect.map(PgSnapshot.load, ({ keys, memories, operations }) => ({
    operations: operations.map(({ failure, id, kind, results, state, workspaceId }) => ({
      workspace: workspaceId,
      id,
      kind,
      state,
      failure,
      results
    })),
    keys: keys.map(({ keyHash, operationId, workspaceId }) => ({ workspace: workspaceId, keyHash, operationId })),
    memories: memories.map(({ deleted, id, text, version, workspaceId }) => ({
      workspace: workspaceId,
      id,
      version,
      text,
      deleted
    }))
  })).pipe(
    Effect.provide(PgClient.layer(PgDatabase.session(url, "chaos")).pipe(Layer.provide(Reactivity.layer))),
    Effect.orDie
  )

export interface Audited {
  readonly code: number
  readonly lines: ReadonlyArray<string>
}

/** Nothing may wait for longer than this once everything is at rest. */
const overdueSeconds = 30

/** Runs the audit as an operator would, in a process of its own. */
export const audit = (url: Redacted.Redacted): Effect.Effect<Audited> =>
  Effect.callback((resume) => {
    const child = execFile(
      process.execPath,
      [Path.join(import.meta.dirname, "../bin/indelible.mjs"), "audit", "--overdue", String(overdueSeconds)],
      // Not here, where a developer may keep a .env.
      { cwd: Os.tmpdir(), env: { PATH: process.env["PATH"], DATABASE_URL: Secret.value(url) }, maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === "number" ? error.code : 3
        resume(Effect.succeed({ code, lines: `${stdout}${stderr}`.trim().split("\n") }))
      }
    )
    return Effect.sync(() => child.kill("SIGKILL"))
  })
