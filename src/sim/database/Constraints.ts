/** What the schema refuses, whatever the programs do: checks on a row, and triggers on how it changes. */
import * as Money from "../../domain/Ledger.ts"
import { isTerminal } from "../../domain/Operation.ts"
import { scopeKeys } from "../../domain/Scope.ts"
import type { Rows } from "../Commit.ts"
import { checkViolation, refusedChange } from "./DatabaseError.ts"

/** Throws when a row may not become this. Null: it did not exist, or does no more. */
type Check<Name extends keyof Rows> = (before: Rows[Name] | null, after: Rows[Name] | null) => void

export const operation: Check<"operations"> = (before, after) => {
  if (after === null) return
  const { completedAt, failure, leaseExpiresAt, leaseOwner, outcome, ready, state } = after
  const running = state === "running"
  if (running !== (leaseOwner !== null)) throw checkViolation("running_holds_a_lease")
  if ((leaseOwner === null) !== (leaseExpiresAt === null)) throw checkViolation("lease_has_an_end")
  if (isTerminal(state) !== (completedAt !== null)) throw checkViolation("terminal_is_completed")
  if ((state === "succeeded") !== (outcome !== null)) throw checkViolation("success_has_an_outcome")
  if (state === "failed" && failure === null) throw checkViolation("failure_has_a_class")
  if (ready && isTerminal(state)) throw checkViolation("terminal_is_not_ready")
  if (running && !ready) throw checkViolation("running_is_the_head")
  if (after.epoch < 0) throw checkViolation("operations_epoch_check")
  if (after.attempts < 0) throw checkViolation("operations_attempts_check")
  if (before === null) return
  const revived = before.state === "failed" && state !== "failed" && state !== "pending"
  const usurped = after.epoch === before.epoch && leaseOwner !== null && leaseOwner !== (before.leaseOwner ?? "")
  if (before.state === "succeeded" || revived || after.epoch < before.epoch || usurped) {
    throw refusedChange("operations_follow_their_states")
  }
}

/** Of rows that are written once. They may go. */
const never = (trigger: string) => (before: object | null, after: object | null): void => {
  if (before !== null && after !== null) throw refusedChange(trigger)
}

export const key: Check<"keys"> = never("keys_name_one_command")
export const input: Check<"inputs"> = never("inputs_are_accepted_once")
export const plan: Check<"plans"> = never("plans_are_frozen")

export const memory: Check<"memories"> = (before, after) => {
  if (after === null) return
  if (after.version < 1) throw checkViolation("memories_version_check")
  if (after.deleted !== (after.text === null)) throw checkViolation("deleted_has_no_text")
  if (scopeKeys.every((key) => after.scope[key] === undefined)) throw checkViolation("somebody_remembers")
  if (before !== null && (before.deleted || after.version !== before.version + 1)) {
    throw refusedChange("memories_go_one_version_on")
  }
}

/** Append-only, but for one thing: deleting a memory erases its texts. */
export const history: Check<"history"> = (before, after) => {
  if (before === null) return
  if (after === null) throw refusedChange("history_stays")
  const same = after.version === before.version && after.change === before.change && after.at === before.at &&
    after.operationId === before.operationId
  if (after.text !== null || !same) throw refusedChange("history_only_forgets")
}

export const account: Check<"accounts"> = (_, after) => {
  if (after === null) return
  const { balances } = after
  if (balances.available < 0n) throw checkViolation("accounts_available_check")
  if (balances.reserved < 0n) throw checkViolation("accounts_reserved_check")
  if (balances.consumed < 0n) throw checkViolation("accounts_consumed_check")
  if (!Money.conserves(balances)) throw checkViolation("conserved")
}

export const authorization: Check<"authorizations"> = (before, after) => {
  if (after === null) throw refusedChange("authorizations_stay")
  const { charged, reserved, state } = after
  if (after.no < 1) throw checkViolation("authorizations_no_check")
  if (reserved < 0n) throw checkViolation("authorizations_reserved_check")
  if (charged < 0n || charged > reserved) throw checkViolation("charge_is_within_reserve")
  if (state !== "charged" && charged !== 0n) throw checkViolation("charge_is_of_the_charged")
  if (before === null) return
  const changed = state !== before.state || charged !== before.charged
  if ((before.state !== "open" && changed) || reserved !== before.reserved || after.price !== before.price) {
    throw refusedChange("authorizations_end_once")
  }
}

export const transfer: Check<"transfers"> = (before, after) => {
  if (before !== null || after === null) throw refusedChange("transfers_are_final")
  if (after.amount < 0n) throw checkViolation("transfers_amount_check")
  const named = [after.operationId, after.authorizationNo].filter((value) => value !== null).length
  if ((after.kind === "grant") !== (named === 0)) throw checkViolation("grant_has_no_authorization")
  if (named === 1) throw checkViolation("spending_has_an_authorization")
  if ((after.kind === "grant") !== (after.reference !== null)) throw checkViolation("grant_has_a_reference")
}
