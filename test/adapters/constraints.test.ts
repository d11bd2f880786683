/** The rules that hold whatever the programs do: plain SQL tries to break each, and the database says which it was. */
import { PgClient } from "@effect/sql-pg"
import { assert, layer } from "@effect/vitest"
import { Effect, Predicate } from "effect"
import { PgTest } from "../postgres.ts"

const [one, two, memory] = [1, 2, 3].map((n) => `'00000000-0000-7000-8000-00000000000${n}'`)

/** An operation, pending and the head of its lane unless said otherwise. */
const operation = (values: Record<string, string> = {}) => {
  const columns = {
    workspace_id: "'w'",
    id: one,
    kind: "'memory.infer'",
    state: "'pending'",
    scope: `'{"user_id":"u"}'`,
    lane: "'a'",
    seq: "1",
    ready: "true",
    fair_tag: "0",
    epoch: "0",
    attempts: "0",
    window_started_at: "now()",
    evidence: "'{}'",
    created_at: "now()",
    ...values
  }
  return `insert into operations (${Object.keys(columns).join(", ")}) values (${Object.values(columns).join(", ")})`
}

const running = { state: "'running'", epoch: "1", lease_owner: "'me'", lease_expires_at: "now()" }
const succeeded = { state: "'succeeded'", ready: "false", completed_at: "now()", outcome: "'stored'" }
const failed = { state: "'failed'", ready: "false", completed_at: "now()", failure: "'cancelled'" }

const key = (operationId: string | undefined) =>
  `insert into idempotency_keys (workspace_id, key_hash, command_version, command_hash, operation_id)
    values ('w', 'k', 1, 'c', ${operationId})`
const input = `insert into operation_inputs (workspace_id, operation_id, input) values ('w', ${one}, '{}')`
const plan = `insert into operation_plans (workspace_id, operation_id, plan) values ('w', ${one}, '{}')`

const remember = `insert into memories
  (workspace_id, id, version, text, user_id, metadata, operation_id, created_at, updated_at)
  values ('w', ${memory}, 1, 'tea', 'u', '{}', ${one}, now(), now())`
const forget = "update memories set version = 2, text = null, deleted = true"
const entry = (version: number, change: string) =>
  `insert into memory_history (workspace_id, memory_id, version, change, text, operation_id, at)
    values ('w', ${memory}, ${version}, '${change}', 'tea', ${one}, now())`

const authorization = (no: number, reserved: number, state = "open", charged = 0) =>
  `insert into authorizations (workspace_id, operation_id, no, state, reserved, charged, price)
    values ('w', ${one}, ${no}, '${state}', ${reserved}, ${charged}, '{}')`
const transfer = (kind: string, amount: number, no = 1) =>
  `insert into transfers (workspace_id, kind, amount, operation_id, authorization_no)
    values ('w', '${kind}', ${amount}, ${one}, ${no})`
const grant = (amount: number, reference = "gift", workspaceId = "w") =>
  `insert into transfers (workspace_id, kind, amount, reference)
    values ('${workspaceId}', 'grant', ${amount}, '${reference}')`
const charge = (amount: number) => `update authorizations set state = 'charged', charged = ${amount}`
const refund = "update authorizations set state = 'refunded'"

/** Ten credits in the account, five of them reserved by the first operation. */
const reserved = [operation(), grant(10), authorization(1, 5), transfer("reserve", 5)]

const statements = Effect.fnUntraced(function*(list: ReadonlyArray<string>) {
  const sql = yield* PgClient.PgClient
  yield* Effect.forEach(list, (statement) => sql.unsafe(statement), { discard: true })
})

/** Runs everything in one transaction, and names the rule that its last statement broke. Nothing stays. */
const ruleBroken = Effect.fnUntraced(function*(list: ReadonlyArray<string>) {
  const sql = yield* PgClient.PgClient
  const lawful = ["insert into workspaces values ('w')", "insert into accounts (workspace_id) values ('w')"]
  const last = list.at(-1) ?? ""
  const error = yield* Effect.flip(sql.withTransaction(
    statements([...lawful, ...list.slice(0, -1)]).pipe(Effect.orDie, Effect.andThen(sql.unsafe(last)))
  ))
  const cause = error.reason.cause
  return Predicate.hasProperty(cause, "constraint") ? cause.constraint : error.message
})

/** What is promised, the rule that keeps it, and lawful statements of which only the last breaks it. */
type Case = readonly [promise: string, rule: string, list: ReadonlyArray<string>]

const operations: ReadonlyArray<Case> = [
  ["one key never names two operations", "idempotency_keys_pkey",
    [operation(), operation({ id: `${two}`, lane: "'b'" }), key(one), key(two)]],
  ["a key never comes to name another command", "keys_name_one_command",
    [operation(), key(one), "update idempotency_keys set command_hash = 'd'"]],
  ["a key never names an operation that does not exist", "idempotency_keys_workspace_id_operation_id_fkey", [key(two)]],
  ["an operation never has two plans", "operation_plans_pkey", [operation(), plan, plan]],
  ["a frozen plan never changes", "plans_are_frozen", [operation(), plan, `update operation_plans set plan = '[]'`]],
  ["an accepted input never changes", "inputs_are_accepted_once",
    [operation(), input, `update operation_inputs set input = '[]'`]],
  ["an operation is of a workspace that exists", "operations_have_a_workspace", [operation({ workspace_id: "'v'" })]],
  ["a lane never has two heads", "operations_lane_head", [operation(), operation({ id: `${two}` })]],
  ["nothing runs without a lease", "running_holds_a_lease", [operation({ state: "'running'" })]],
  ["nothing keeps a lease that does not run", "running_holds_a_lease", [operation({ ...running, state: "'pending'" })]],
  ["no lease is without an end", "lease_has_an_end", [operation({ ...running, lease_expires_at: "null" })]],
  ["nothing runs but the head of its lane", "running_is_the_head", [operation({ ...running, ready: "false" })]],
  ["nothing that ended is claimable", "terminal_is_not_ready", [operation({ ...failed, ready: "true" })]],
  ["nothing ends without a time", "terminal_is_completed", [operation({ ...failed, completed_at: "null" })]],
  ["nothing succeeds without an outcome", "success_has_an_outcome", [operation({ ...succeeded, outcome: "null" })]],
  ["nothing fails without a class", "failure_has_a_class", [operation({ ...failed, failure: "null" })]],
  ["a success is final", "operations_follow_their_states", [
    operation(succeeded),
    "update operations set state = 'failed', failure = 'cancelled', outcome = null"
  ]],
  ["a failure opens again as pending, and in no other way", "operations_follow_their_states", [
    operation(failed),
    "update operations set state = 'succeeded', outcome = 'stored'"
  ]],
  ["an epoch never goes back", "operations_follow_their_states",
    [operation(running), "update operations set epoch = 0"]],
  ["a new holder never has the epoch of another", "operations_follow_their_states",
    [operation(running), "update operations set lease_owner = 'you'"]],
  ["an operation never changes its lane", "operations_follow_their_states",
    [operation(), "update operations set lane = 'b'"]]
]

const memories: ReadonlyArray<Case> = [
  ["a memory is of a workspace that exists", "memories_have_a_workspace",
    [remember.replace("values ('w'", "values ('v'")]],
  ["a memory never skips a version", "memories_go_one_version_on", [remember, "update memories set version = 3"]],
  ["a memory never changes without a version", "memories_go_one_version_on",
    [remember, "update memories set text = 'milk'"]],
  ["a deleted memory never comes back", "memories_go_one_version_on",
    [remember, forget, "update memories set version = 3, text = 'tea', deleted = false"]],
  ["a deleted memory keeps no text", "deleted_has_no_text",
    [remember, "update memories set version = 2, deleted = true"]],
  ["a memory is somebody's", "somebody_remembers", [remember, "update memories set version = 2, user_id = null"]],
  ["a version is told once", "memory_history_pkey", [remember, entry(1, "add"), entry(1, "update")]],
  ["history is never edited", "history_only_forgets",
    [remember, entry(1, "add"), "update memory_history set text = 'milk'"]],
  ["history forgets a text and nothing else", "history_only_forgets",
    [remember, entry(1, "add"), "update memory_history set text = null, change = 'update'"]],
  ["history is never deleted", "history_stays", [remember, entry(1, "add"), "delete from memory_history"]],
  ["history is never emptied", "history_remains", ["truncate memory_history"]],
  ["a memory with a history is never removed", "memory_history_workspace_id_memory_id_fkey",
    [remember, entry(1, "add"), "delete from memories"]]
]

const money: ReadonlyArray<Case> = [
  ["an operation never has two live authorizations", "authorizations_one_live", [...reserved, authorization(2, 1)]],
  ["an authorization is never reserved twice", "transfers_once", [...reserved, transfer("reserve", 5)]],
  ["an authorization is never charged twice", "transfers_once",
    [...reserved, charge(2), transfer("charge", 2), transfer("charge", 2)]],
  ["an authorization is never charged and refunded", "transfers_one_outcome",
    [...reserved, charge(5), transfer("charge", 5), `${transfer("refund", 5)}`]],
  ["an authorization ends once", "authorizations_end_once", [...reserved, refund, charge(5)]],
  ["an authorization that ended never opens again", "authorizations_end_once",
    [...reserved, refund, "update authorizations set state = 'open'"]],
  ["what was reserved never grows", "authorizations_end_once", [...reserved, "update authorizations set reserved = 6"]],
  ["a charge is never above the reserve", "charge_is_within_reserve", [...reserved, charge(6)]],
  ["nothing is charged while it is open", "charge_is_of_the_charged",
    [...reserved, "update authorizations set charged = 1"]],
  ["no transfer charges more than its authorization says", "transfer_moves_what_was_authorized",
    [...reserved, charge(2), transfer("charge", 3)]],
  ["no transfer charges what is not charged", "transfer_moves_what_was_authorized",
    [...reserved, transfer("charge", 5)]],
  ["no transfer refunds what is not refunded", "transfer_moves_what_was_authorized",
    [...reserved, transfer("refund", 5)]],
  ["no transfer reserves other than its authorization says", "transfer_moves_what_was_authorized",
    [operation(), grant(10), authorization(1, 5), transfer("reserve", 4)]],
  ["the rest of a charge is released, and no more", "transfer_moves_what_was_authorized",
    [...reserved, charge(2), transfer("charge", 2), transfer("release", 4)]],
  ["nobody spends what he does not have", "accounts_available_check",
    [operation(), grant(4), authorization(1, 5), transfer("reserve", 5)]],
  ["nobody spends without an authorization", "transfer_moves_what_was_authorized",
    [operation(), grant(5), transfer("reserve", 5)]],
  ["what was authorized is never removed", "authorizations_stay", [...reserved, "delete from authorizations"]],
  ["a balance never moves by itself", "balances_move_by_transfers",
    [grant(5), "update accounts set available = 6, issued = 6"]],
  ["no account opens with money in it", "accounts_open_empty",
    ["insert into workspaces values ('v')", "insert into accounts values ('v', 5, 0, 0, 5)"]],
  ["no account is removed", "balances_move_by_transfers", [grant(5), "delete from accounts"]],
  ["no money moves without an account", "transfer_has_an_account",
    ["insert into workspaces values ('v')", grant(5, "gift", "v")]],
  ["a transfer never changes", "transfers_are_final", [grant(5), "update transfers set reference = 'theft'"]],
  ["a transfer is never deleted", "transfers_are_final", [grant(5), "delete from transfers"]],
  ["transfers are never emptied", "transfers_stay", ["truncate transfers"]],
  ["a transfer never takes", "transfers_amount_check", [grant(-5)]],
  ["a grant is given once", "transfers_grant", [grant(5), grant(5)]],
  ["a grant says why", "grant_has_a_reference",
    ["insert into transfers (workspace_id, kind, amount) values ('w', 'grant', 5)"]],
  ["a grant is no operation's", "grant_has_no_authorization",
    [...reserved, `insert into transfers (workspace_id, kind, amount, reference, operation_id, authorization_no)
      values ('w', 'grant', 5, 'other', ${one}, 1)`]]
]

layer(PgTest.layer)("in the database", (it) => {
  it.effect.each([...operations, ...memories, ...money])("%s", ([, rule, list]) =>
    Effect.gen(function*() {
      assert.strictEqual(yield* ruleBroken(list), rule)
    }))

  it.effect("nothing stands in the way of what is lawful", () =>
    Effect.gen(function*() {
      const sql = yield* PgClient.PgClient
      yield* statements([
        "insert into workspaces values ('w')",
        "insert into accounts (workspace_id) values ('w')",
        ...reserved,
        key(one),
        input,
        "update operations set state = 'running', epoch = 1, lease_owner = 'me', lease_expires_at = now()",
        "update operations set lease_expires_at = now()",
        "update operations set epoch = 2, lease_owner = 'you'",
        plan,
        "update operations set state = 'failed', ready = false, failure = 'cancelled', completed_at = now(), " +
          "lease_owner = null, lease_expires_at = null",
        refund,
        transfer("refund", 5),
        "update operations set state = 'pending', ready = true, failure = null, completed_at = null",
        authorization(2, 5),
        transfer("reserve", 5, 2),
        "update authorizations set state = 'charged', charged = 2 where no = 2",
        transfer("charge", 2, 2),
        transfer("release", 3, 2),
        "update operations set state = 'succeeded', ready = false, outcome = 'stored', completed_at = now()",
        remember,
        entry(1, "add"),
        forget,
        entry(2, "delete"),
        "update memory_history set text = null",
        "delete from operation_plans",
        "delete from operation_inputs",
        "update accounts set fair_time = 7"
      ])
      const balances = yield* sql`select available, reserved, consumed, issued from accounts`
      assert.deepStrictEqual(balances, [{ available: 8n, reserved: 0n, consumed: 2n, issued: 10n }])
    }))
})
