/** Port operations on Postgres: the adapters of production on a database of the lane's own, a connection to each of them. */
import { PgClient } from "@effect/sql-pg"
import { Context, Effect, Exit, Layer, Redacted, Scope } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import type { Connection } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import * as Crypto from "node:crypto"
import { LeasePool } from "../../src/adapters/PgDatabase.ts"
import * as PgLedger from "../../src/adapters/PgLedger.ts"
import * as PgMigrations from "../../src/adapters/PgMigrations.ts"
import * as PgStore from "../../src/adapters/PgStore.ts"
import * as PgTransaction from "../../src/adapters/PgTransaction.ts"
import { sources } from "../../src/sim/sql/Sources.ts"
import type { Told } from "../history.ts"
import type { Side, Wait } from "../kind.ts"
import * as Lookout from "../lookout.ts"
import { type Hands, make as makeHands, type Ports } from "./hands.ts"
import { Clerk, Office } from "./office.ts"
import * as Plain from "./plain.ts"
import { credits, type Program, type Step, workspaces } from "./sequence.ts"
import { tables } from "./tables.ts"

/** The tables are made anew after so many sequences, for what was deleted stays in them. */
const freshAfter = 50

/** What is compared, and what depends on it. */
const names = ["transfers", "authorizations", "accounts", "projections", "memory_history", "memories", "operation_plans",
  "operation_inputs", "idempotency_keys", "outbox", "operations", "api_keys", "workspaces"]

/** Rules that forbid to take anything away do not bind whoever prepares the next sequence. */
const opening = (fresh: boolean): string => `do $$ begin
  perform set_config('session_replication_role', 'replica', true);
  ${fresh ? `truncate ${names.join()};` : names.map((name) => `delete from ${name};`).join(" ")}
  update fair_clock set value = 0;
  perform setval('operation_seq', 1, false), setval(pg_get_serial_sequence('outbox', 'seq'), 1, false),
    setval(pg_get_serial_sequence('transfers', 'seq'), 1, false);
  insert into workspaces (workspace_id) values ${workspaces.map((name) => `('${name}')`).join()};
  insert into accounts (workspace_id, available, issued) values
    ${workspaces.map((name) => `('${name}', ${credits}, ${credits})`).join()};
end $$`

export const connect = Effect.fnUntraced(function*(server: Redacted.Redacted, lane: number) {
  const url = yield* database(server, lane)
  yield* Effect.orDie(PgMigrations.run(Lookout.options(url, "public")))
  const observer = yield* Lookout.connect(url, "public")
  const seats = yield* Effect.forEach([0, 1, 2], () => seat(url))
  const lasting = yield* Effect.scope
  let begun = 0
  let scope: Scope.Closeable | null = null
  const begin = Effect.gen(function*() {
    // A sequence that was given up has left programs behind.
    if (scope !== null) yield* Scope.close(scope, Exit.void)
    scope = yield* Scope.fork(lasting)
    yield* observer.executeUnprepared(opening(begun++ % freshAfter === 0), [], undefined)
    return yield* Scope.provide(open(observer, seats), scope)
  }).pipe(Effect.orDie)
  return { begin }
})

/** A database of this name that nobody else has, gone when the scope closes. */
const database = Effect.fnUntraced(function*(server: Redacted.Redacted, lane: number) {
  const name = `differential_ports_${lane}_${Crypto.randomBytes(4).toString("hex")}`
  const admin = yield* Lookout.connect(server, "public")
  yield* Effect.acquireRelease(
    admin.executeUnprepared(`create database ${name}`, [], undefined),
    () => Effect.ignore(admin.executeUnprepared(`drop database ${name} with (force)`, [], undefined))
  )
  const url = new URL(Redacted.value(server))
  url.pathname = name
  return Redacted.make(url.href)
})

interface Seat {
  readonly ports: Context.Context<Ports>
  readonly pids: Effect.Effect<ReadonlyArray<number>, SqlError>
}

/** The ports of production on one connection for everything, and one for leases. */
const seat = Effect.fnUntraced(
  function*(url: Redacted.Redacted) {
    const client = PgClient.make({ ...Lookout.options(url, "public"), minConnections: 1, maxConnections: 1 })
    const [main, leases] = [yield* client, yield* client]
    const clients = Context.make(PgClient.PgClient, main).pipe(Context.add(LeasePool, leases))
    const ports = yield* Layer.build(
      Layer.mergeAll(PgStore.layer, PgLedger.layer, PgTransaction.layer).pipe(Layer.provide(Layer.succeedContext(clients)))
    )
    const pids = Effect.forEach([main, leases], (sql) =>
      Effect.map(sql<{ readonly pid: number }>`select pg_backend_pid() as pid`, (rows) => rows[0]!.pid))
    return { ports, pids } satisfies Seat
  },
  Effect.provide(Reactivity.layer)
)

interface Seated {
  readonly clerk: Clerk
  readonly hands: Hands
  readonly pids: ReadonlyArray<number>
}

const open = Effect.fnUntraced(function*(observer: Connection, seats: ReadonlyArray<Seat>) {
  const told: Array<Told> = []
  const seated = yield* Effect.forEach(seats, Effect.fnUntraced(function*({ pids, ports }, on) {
    const clerk = new Clerk({ on, now: Date.now, tell: (one) => told.push(one), wake: (_, resume) => resume() })
    const hands = yield* Effect.provideContext(makeHands(clerk), Context.merge(ports, clerk.context))
    return { clerk, hands, pids: yield* pids } satisfies Seated
  }))
  return new Server(observer, seated, told, yield* Effect.scope) as Side<Step>
})

class Server extends Office {
  readonly rows: Effect.Effect<string>
  protected readonly settled: Effect.Effect<ReadonlyArray<Wait>>
  private readonly seated: ReadonlyArray<Seated>
  private readonly scope: Scope.Scope

  constructor(observer: Connection, seated: ReadonlyArray<Seated>, told: Array<Told>, scope: Scope.Scope) {
    super(seated.map(({ clerk }) => clerk), told)
    this.seated = seated
    this.scope = scope
    const watched = seated.map(({ clerk, pids }): Lookout.Watched => ({
      on: clerk.on,
      pids,
      get busy() {
        return clerk.busy
      }
    }))
    this.settled = Effect.orDie(Lookout.settled(observer, watched))
    this.rows = Effect.forEach(tables, (name) => {
      const { alias, columns, decode, table } = sources.find((source) => source.name === name)!
      return Effect.map(
        observer.execute(`select ${columns} from ${table} ${alias}`, [], undefined),
        (rows) => `${name} ${Plain.plain(decode(rows), Date.now(), false)}`
      )
    }, { concurrency: "unbounded" }).pipe(Effect.map((lines) => lines.join("\n")), Effect.orDie)
  }

  protected begin(clerk: Clerk, act: Program): Effect.Effect<void> {
    const { hands } = this.seated[clerk.on]!
    return Effect.asVoid(Effect.forkIn(Effect.exit(clerk.program(hands, act)), this.scope, { startImmediately: true }))
  }
}
