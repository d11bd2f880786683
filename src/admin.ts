/**
 * The operator's command line: `npm run admin -- --help`. Works beside a running service, on the database that the
 * environment names or on the one in the data directory.
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import type { PgClient } from "@effect/sql-pg"
import { Console, Data, DateTime, Effect, Layer, Logger, Redacted, References, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import * as Bootstrap from "./adapters/Bootstrap.ts"
import * as Configuration from "./adapters/Configuration.ts"
import * as PgVectorTable from "./adapters/PgVectorTable.ts"
import { ApiKeyId, OperationId, WorkspaceId } from "./domain/Ids.ts"
import { GrantReference, referenceMaxLength } from "./domain/Ledger.ts"
import { NotFound } from "./domain/Refusal.ts"
import { type ApiKey, ApiKeys, KeyLabel, KeyScope, labelMaxLength } from "./services/ApiKeys.ts"
import { Events } from "./services/Events.ts"
import * as Grants from "./services/Grants.ts"
import { Ledger } from "./services/Ledger.ts"
import type { Transaction } from "./services/Transaction.ts"
import { startFailure } from "./startFailure.ts"
import { openDatabase, storage } from "./storage.ts"

/** The reference names another grant. Nothing was granted; a grant of its own needs a reference of its own. */
class GrantedOtherwise extends Data.TaggedError("GrantedOtherwise")<{ readonly message: string }> {}

/** Runs on the database that the environment names, with nothing but storage. */
const withStorage = <A, E>(effect: Effect.Effect<A, E, ApiKeys | Ledger | Transaction | Events | PgClient.PgClient>) =>
  Effect.gen(function*() {
    const config = yield* Configuration.load(process.env)
    const { url } = yield* openDatabase(config, { beside: true })
    const ports = Events.layer.pipe(Layer.provideMerge(storage(config, url)))
    return yield* effect.pipe(Effect.provide(ports))
  }).pipe(
    Effect.scoped,
    Effect.provideService(References.MinimumLogLevel, "Warn"),
    Effect.provide(Logger.layer([Logger.consolePretty()])),
    Effect.catch((error) =>
      Console.error(`indelible admin: ${failureLine(error)}`).pipe(Effect.andThen(Effect.sync(() => process.exitCode = 1)))
    )
  )

const failureLine = (error: unknown): string =>
  error instanceof NotFound ? `there is no such ${error.what.replace("_", " ")}` : startFailure(error)

const workspace = Argument.String("workspace").pipe(
  Argument.withDescription("The workspace, by its id"),
  Argument.withSchema(WorkspaceId)
)

const whole = Schema.String.check(
  Schema.isPattern(/^[1-9]\d{0,14}$/, { message: "must be a whole number of credits, at least 1" })
)

const makeWorkspace = Command.make("make", { workspace }, ({ workspace }) =>
  withStorage(Effect.gen(function*() {
    const made = yield* (yield* ApiKeys).makeWorkspace(workspace)
    yield* Console.log(made ? `Made workspace ${workspace}, with no credit.` : `Workspace ${workspace} exists already.`)
  }))).pipe(Command.withDescription("Make a workspace"))

const makeKey = Command.make("make", {
  workspace,
  label: Flag.String("label").pipe(
    Flag.withDescription(`What the key is for, in at most ${labelMaxLength} characters`),
    Flag.withSchema(KeyLabel),
    Flag.withDefault("")
  ),
  scopes: Flag.Literals("scope", KeyScope.literals).pipe(
    Flag.withDescription("What the key may do; repeat it for more. All when absent"),
    Flag.atLeast(0)
  )
}, ({ label, scopes, workspace }) =>
  withStorage(Effect.gen(function*() {
    const keys = yield* ApiKeys
    const { key, secret } = yield* keys.make(workspace, label, scopes.length === 0 ? KeyScope.literals : scopes)
    yield* Console.log(keyLine(key))
    yield* Console.log(`Secret, shown this once: ${Redacted.value(secret)}`)
    const others = Bootstrap.othersThan(key, yield* keys.list(workspace))
    if (others !== null) yield* Console.log(others)
  }))).pipe(Command.withDescription("Make an API key, and show its secret once"))

const listKeys = Command.make("list", { workspace }, ({ workspace }) =>
  withStorage(Effect.gen(function*() {
    const keys = yield* (yield* ApiKeys).list(workspace)
    yield* Effect.forEach(keys, (key) => Console.log(keyLine(key)), { discard: true })
    if (keys.length === 0) yield* Console.log(`Workspace ${workspace} has no keys.`)
  }))).pipe(Command.withDescription("List the API keys of a workspace, without their secrets"))

const revokeKey = Command.make("revoke", {
  workspace,
  id: Argument.String("key").pipe(Argument.withDescription("The key, by its id"), Argument.withSchema(ApiKeyId))
}, ({ id, workspace }) =>
  withStorage(Effect.gen(function*() {
    yield* Console.log(keyLine(yield* (yield* ApiKeys).revoke(workspace, id)))
  }))).pipe(Command.withDescription("Revoke an API key, at once and for good"))

const grantCredit = Command.make("grant", {
  workspace,
  amount: Argument.String("credits").pipe(Argument.withDescription("Whole credits"), Argument.withSchema(whole)),
  reference: Flag.String("reference").pipe(
    Flag.withDescription(
      "Your name for this grant, such as an invoice: repeating it grants nothing more. " +
        `At most ${referenceMaxLength} characters`
    ),
    Flag.withSchema(GrantReference)
  )
}, ({ amount, reference, workspace }) =>
  withStorage(Effect.gen(function*() {
    const keys = yield* ApiKeys
    const ledger = yield* Ledger
    yield* keys.list(workspace)
    const before = yield* Grants.give(workspace, BigInt(amount), reference)
    if (before !== null && before !== BigInt(amount)) {
      return yield* new GrantedOtherwise({
        message: `reference "${reference}" granted ${before} credits before, not ${amount}: nothing was granted. ` +
          "A grant of its own needs a reference of its own."
      })
    }
    yield* Console.log(
      before === null
        ? `Granted ${amount} credits to ${workspace}.`
        : `Already granted: ${amount} credits for reference "${reference}".`
    )
    const { available, consumed, issued, reserved } = yield* ledger.balances(workspace)
    yield* Console.log(`available ${available}, reserved ${reserved}, consumed ${consumed}, issued ${issued}`)
  }))).pipe(Command.withDescription("Grant credit to a workspace, once for each reference"))

const showOperation = Command.make("show", {
  workspace,
  id: Argument.String("operation").pipe(
    Argument.withDescription("The operation, by its id, which is its event id"),
    Argument.withSchema(OperationId)
  )
}, ({ id, workspace }) =>
  withStorage(Effect.gen(function*() {
    const { results, ...event } = yield* (yield* Events).get({ workspaceId: workspace, id })
    // What memories say is their owner's: an operator sees references.
    const shown = { ...event, results: results.map(({ memory: _, ...reference }) => reference) }
    yield* Console.log(JSON.stringify(shown, printable, 2))
  }))).pipe(Command.withDescription("Show an operation: state, attempts, evidence, money; never a text"))

const resetIndex = Command.make("reset", {}, () =>
  withStorage(Effect.gen(function*() {
    yield* PgVectorTable.reset
    yield* Console.log("Every vector is forgotten. Start the service anew: it projects every live memory again.")
  }))).pipe(Command.withDescription("Forget the vector index, before a start with another embedding model"))

const keyLine = (key: ApiKey): string =>
  [
    key.id,
    key.label === "" ? "(no label)" : key.label,
    key.scopes.join(","),
    `made ${iso(key.createdAt)}`,
    ...(key.revokedAt === null ? [] : [`revoked ${iso(key.revokedAt)}`])
  ].join("  ")

const iso = (milliseconds: number): string => DateTime.formatIso(DateTime.makeUnsafe(milliseconds))

const printable = (name: string, value: unknown): unknown =>
  typeof value === "bigint" ? Number(value) : name.endsWith("At") && typeof value === "number" ? iso(value) : value

const admin = Command.make("admin").pipe(
  Command.withDescription("Workspaces, keys, credit and operations, for whoever runs the service"),
  Command.withSubcommands([
    Command.make("workspace").pipe(Command.withDescription("Workspaces"), Command.withSubcommands([makeWorkspace])),
    Command.make("key").pipe(Command.withDescription("API keys"), Command.withSubcommands([makeKey, listKeys, revokeKey])),
    Command.make("credit").pipe(Command.withDescription("Credit"), Command.withSubcommands([grantCredit])),
    Command.make("index").pipe(Command.withDescription("The vector index"), Command.withSubcommands([resetIndex])),
    Command.make("operation").pipe(Command.withDescription("Operations"), Command.withSubcommands([showOperation]))
  ])
)

/** `indelible admin …` leaves its own name in the arguments. */
const root = Command.make("indelible").pipe(Command.withSubcommands([admin]))

NodeRuntime.runMain(Command.run(root, { version: "0.1.0" }).pipe(Effect.provide(NodeServices.layer)))
