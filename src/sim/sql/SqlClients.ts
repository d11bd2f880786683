/**
 * `PgClient` for the processes of a simulated world: the statements of production, on connections that break as those of
 * the simulated database do.
 */
import { PgClient } from "@effect/sql-pg"
import { Effect, Result, Stream } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as SqlClient from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import { ConnectionError, SerializationError, SqlError } from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"
import type { OutcomeUnknown } from "../../services/Transaction.ts"
import type { Client, Pool } from "../database/Client.ts"
import type { Connections } from "../database/Connections.ts"
import { Session } from "../database/Session.ts"
import type { FaultKind } from "../Faults.ts"
import { processOf } from "../Process.ts"
import { labelOf } from "./labels.ts"
import type { Answer } from "./Pglite.ts"
import type { SqlEngine } from "./SqlEngine.ts"

export interface SqlClientsOptions {
  readonly connections: Connections
  readonly engine: SqlEngine
  /** Which connections of a process its statements go over. */
  readonly pool: (client: Client) => Pool
  /** What may go wrong with a statement outside of a transaction. */
  readonly faults: ReadonlyArray<FaultKind>
}

type Asked = Effect.Effect<Extract<Answer, { readonly _tag: "Success" }>["success"], SqlError>
type Ask = (sql: string, params: ReadonlyArray<unknown>) => Asked

/** One for all processes of a world: who asks is known by the fiber. */
export const make = (options: SqlClientsOptions): PgClient.PgClient => {
  const { connections, engine, faults, pool } = options
  const own = <A, E, R>(use: (client: Client) => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiber((fiber) => use(connections.clientOf(processOf(fiber))))
  const alone: Ask = (sql, params) =>
    own((client) => answered(connections.alone(client, pool(client), labelOf(sql), engine.ask(sql, params, true), faults)))
  const client = SqlClient.make({
    acquirer: Effect.succeed(connection(alone)),
    transactionAcquirer: Effect.acquireRelease(
      own((client) => Effect.sync(() => new Conversation(options, client))),
      (conversation) => Effect.sync(() => conversation.close())
    ).pipe(Effect.map((conversation) => connection((sql, params) => conversation.ask(sql, params)))),
    compiler: PgClient.makeCompiler(),
    driver: "pg",
    spanAttributes: []
  }).pipe(Effect.provide(Reactivity.layer), Effect.scoped, Effect.runSync)
  return Object.assign(client, {
    [PgClient.TypeId]: PgClient.TypeId,
    config: {},
    json: (value: unknown) => Statement.fragment([jsonOf(value)]),
    listen: () => Effect.die(missing("listen")),
    notify: () => Effect.die(missing("notify"))
  }) as unknown as PgClient.PgClient
}

/** One transaction on one connection, from its BEGIN to its end. */
class Conversation {
  private readonly options: SqlClientsOptions
  private readonly client: Client
  private readonly session = new Session()
  private ended = false

  constructor(options: SqlClientsOptions, client: Client) {
    this.options = options
    this.client = client
  }

  ask(sql: string, params: ReadonlyArray<unknown>): Asked {
    const { client, options: { connections, engine }, session } = this
    switch (sql) {
      case "BEGIN":
        return Effect.map(known(connections.begin(client, session)), () => {
          session.begun = true
          return nothing
        })
      case "COMMIT":
        return this.end(connections.commit(client, session))
      case "ROLLBACK":
        return this.end(connections.rollBack(client, session))
      default:
        return answered(connections.inside(client, session, labelOf(sql), engine.ask(sql, params, false)))
    }
  }

  /** Whoever leaves without an end, before a beginning that he has heard of, hangs up. */
  close(): void {
    if (!this.ended) this.options.connections.lose(this.client, this.session)
  }

  private end(how: Effect.Effect<void, OutcomeUnknown>): Asked {
    return Effect.suspend(() => {
      this.ended = true
      return Effect.as(known(how), nothing)
    })
  }
}

const connection = (ask: Ask): Connection => {
  const execute: Connection["execute"] = (sql, params, transform) =>
    Effect.map(ask(sql, params), ({ rows }) => transform === undefined ? rows : transform(rows))
  return {
    execute,
    executeUnprepared: execute,
    executeRaw: ask,
    executeStream: () => Stream.die(missing("streams")),
    executeValues: () => Effect.die(missing("values")),
    executeValuesUnprepared: () => Effect.die(missing("values"))
  }
}

const nothing = { command: "", rowCount: 0, oid: null, rows: [], fields: [] }

/** As the compiler of the driver knows it. */
const jsonOf = Statement.custom<PgClient.PgCustom>("PgJson")

/** A part of the driver that no program needs by now. */
const missing = (what: string) => new Error(`the driver of the simulator has no ${what}`)

const answered = (asked: Effect.Effect<Answer, OutcomeUnknown>): Asked =>
  Effect.flatMap(known(asked), (answer) => Result.isSuccess(answer) ? Effect.succeed(answer.success) : Effect.fail(answer.failure))

/** What became of the connection, as the driver tells it. */
const known = <A>(asked: Effect.Effect<A, OutcomeUnknown>): Effect.Effect<A, SqlError> =>
  Effect.mapError(asked, ({ reason }) => {
    const props = { cause: reason, message: reason, operation: "query" }
    return new SqlError({ reason: reason === "connection" ? new ConnectionError(props) : new SerializationError(props) })
  })
