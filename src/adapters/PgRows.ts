/** How rows look on their way out of Postgres: names and units of the domain, and the decoders of those that are many. */
import { Schema } from "effect"
import * as SchemaJITCompiler from "effect/schema/SchemaJITCompiler"

// Decoders of rows are compiled at their first use: the interpreter takes four to five times as long, for every row.
const compiled = <S extends Schema.Decoder<unknown>>(schema: S): S => {
  SchemaJITCompiler.enable(schema.ast)
  return schema
}

/** Decodes rows of one kind. What is not of that kind is a defect. */
export const rowsOf = <S extends Schema.Decoder<unknown>>(row: S) => Schema.decodeUnknownSync(compiled(Schema.Array(row)))

/** Decodes one row, if this release can read it. */
export const rowOf = <S extends Schema.Decoder<unknown>>(row: S) => Schema.decodeUnknownOption(compiled(row))

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
