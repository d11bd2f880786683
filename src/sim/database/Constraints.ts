/** What the schema refuses, whatever the programs do: checks on a row, and triggers on how it changes. */
import * as Money from "../../domain/Ledger.ts"
import { isTerminal } from "../../domain/Operation.ts"
import { scopeKeys } from "../../domain/Scope.ts"
import type { Rows } from "../Commit.ts"
import { checkViolation, refusedChange } from "./DatabaseError.ts"

/** Throws when no row may be like this, by the first rule in the order of their names, as Postgres looks at them. */
type Check<Name extends keyof Rows> = (row: Rows[Name]) => void

/** Throws when a row may not become this. Null: it did not exist, or does no more. */
type Rule<Name extends keyof Rows> = (before: Rows[Name] | null, after: Rows[Name] | null) => void

interface Constraints<Name extends keyof Rows> {
  readonly check?: Check<Name>
  readonly rule?: Rule<Name>
}

export const operation: Constraints<"operations"> = {
  check: ({ attempts, completedAt, epoch, failure, leaseExpiresAt, leaseOwner, outcome, ready, state }) => {
    const running = state === "running"
    if (state === "failed" && failure === null) throw checkViolation("failure_has_a_class")
    if ((leaseOwner === null) !== (leaseExpiresAt === null)) throw checkViolation("lease_has_an_end")
    if (attempts < 0) throw checkViolation("operations_attempts_check")
    if (epoch < 0) throw checkViolation("operations_epoch_check")
    if (running !== (leaseOwner !== null)) throw checkViolation("running_holds_a_lease")
    if (running && !ready) throw checkViolation("running_is_the_head")
    if ((state === "succeeded") !== (outcome !== null)) throw checkViolation("success_has_an_outcome")
    if (isTerminal(state) !== (completedAt !== null)) throw checkViolation("terminal_is_completed")
    if (ready && isTerminal(state)) throw checkViolation("terminal_is_not_ready")
  },
  rule: (before, after) => {
    if (before === null || after === null) return
    const { epoch, leaseOwner, state } = after
    const revived = before.state === "failed" && state !== "failed" && state !== "pending"
    const usurped = epoch === before.epoch && leaseOwner !== null && leaseOwner !== (before.leaseOwner ?? "")
    if (before.state === "succeeded" || revived || epoch < before.epoch || usurped) {
      throw refusedChange("operations_follow_their_states")
    }
  }
}

/** Of rows that are written once. They may go. */
const never = (trigger: string) => ({
  rule: (before: object | null, after: object | null): void => {
    if (before !== null && after !== null) throw refusedChange(trigger)
  }
})

export const key: Constraints<"keys"> = never("keys_name_one_command")
export const input: Constraints<"inputs"> = never("inputs_are_accepted_once")
export const plan: Constraints<"plans"> = never("plans_are_frozen")

export const memory: Constraints<"memories"> = {
  check: ({ deleted, scope, text, version }) => {
    if (deleted !== (text === null)) throw checkViolation("deleted_has_no_text")
    if (version < 1) throw checkViolation("memories_version_check")
    if (scopeKeys.every((key) => scope[key] === undefined)) throw checkViolation("somebody_remembers")
  },
  rule: (before, after) => {
    if (before === null || after === null) return
    if (before.deleted || after.version !== before.version + 1) throw refusedChange("memories_go_one_version_on")
  }
}

/** Append-only, but for one thing: deleting a memory erases its texts. */
export const history: Constraints<"history"> = {
  rule: (before, after) => {
    if (before === null) return
    if (after === null) throw refusedChange("history_stays")
    const same = after.version === before.version && after.change === before.change && after.at === before.at &&
      after.operationId === before.operationId
    if (after.text !== null || !same) throw refusedChange("history_only_forgets")
  }
}

export const account: Constraints<"accounts"> = {
  check: ({ balances }) => {
    if (balances.available < 0n) throw checkViolation("accounts_available_check")
    if (balances.consumed < 0n) throw checkViolation("accounts_consumed_check")
    if (balances.reserved < 0n) throw checkViolation("accounts_reserved_check")
    if (!Money.conserves(balances)) throw checkViolation("conserved")
  }
}

export const authorization: Constraints<"authorizations"> = {
  check: ({ charged, no, reserved, state }) => {
    if (no < 1) throw checkViolation("authorizations_no_check")
    if (reserved < 0n) throw checkViolation("authorizations_reserved_check")
    if (state !== "charged" && charged !== 0n) throw checkViolation("charge_is_of_the_charged")
    if (charged < 0n || charged > reserved) throw checkViolation("charge_is_within_reserve")
  },
  rule: (before, after) => {
    if (after === null) throw refusedChange("authorizations_stay")
    if (before === null) return
    const changed = after.state !== before.state || after.charged !== before.charged
    if ((before.state !== "open" && changed) || after.reserved !== before.reserved || after.price !== before.price) {
      throw refusedChange("authorizations_end_once")
    }
  }
}

export const transfer: Constraints<"transfers"> = {
  check: ({ amount, authorizationNo, kind, operationId, reference }) => {
    const named = [operationId, authorizationNo].filter((value) => value !== null).length
    if ((kind === "grant") !== (reference !== null)) throw checkViolation("grant_has_a_reference")
    if ((kind === "grant") !== (named === 0)) throw checkViolation("grant_has_no_authorization")
    if (named === 1) throw checkViolation("spending_has_an_authorization")
    if (amount < 0n) throw checkViolation("transfers_amount_check")
  },
  rule: (before) => {
    if (before !== null) throw refusedChange("transfers_are_final")
  }
}
