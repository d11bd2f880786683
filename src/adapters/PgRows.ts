/** How rows look on their way out of Postgres: names and units of the domain, ready to be decoded. */

/**
 * A time in whole milliseconds. `date_part` counts in doubles, for a sixth of what `extract` costs; a microsecond is a
 * thousandth here, and half of one makes up for what a double cannot hold.
 */
export const milliseconds = (time: string): string => `floor(date_part('epoch', ${time}) * 1000 + 0.0005)`

const time = (column: string, as: string) => `${milliseconds(`o.${column}`)} as "${as}"`

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
  time("next_attempt_at", "nextAttemptAt"),
  "o.epoch",
  "o.attempts",
  `o.invalid_outputs as "invalidOutputs"`,
  time("window_started_at", "windowStartedAt"),
  `o.lease_owner as "leaseOwner"`,
  time("lease_expires_at", "leaseExpiresAt"),
  `o.authorization_no as "authorizationNo"`,
  "o.failure",
  "o.outcome",
  "o.results",
  "o.evidence",
  time("created_at", "createdAt"),
  time("started_at", "startedAt"),
  time("completed_at", "completedAt")
].join(", ")
