/** How rows look on their way out of Postgres: names and units of the domain, ready to be decoded. */

const milliseconds = (column: string, as: string) =>
  `floor(extract(epoch from o.${column}) * 1000)::float8 as "${as}"`

/** The columns of `operations o`, named and typed as `domain/Operation` wants them. */
export const operationColumns = [
  `o.workspace_id as "workspaceId"`,
  "o.id",
  "o.kind",
  "o.state",
  "o.scope",
  "o.lane",
  "o.seq::float8 as seq",
  "o.ready",
  `o.fair_tag::float8 as "fairTag"`,
  milliseconds("next_attempt_at", "nextAttemptAt"),
  "o.epoch",
  "o.attempts",
  `o.invalid_outputs as "invalidOutputs"`,
  milliseconds("window_started_at", "windowStartedAt"),
  `o.lease_owner as "leaseOwner"`,
  milliseconds("lease_expires_at", "leaseExpiresAt"),
  `o.authorization_no as "authorizationNo"`,
  "o.failure",
  "o.outcome",
  "o.results",
  "o.evidence",
  milliseconds("created_at", "createdAt"),
  milliseconds("started_at", "startedAt"),
  milliseconds("completed_at", "completedAt")
].join(", ")
