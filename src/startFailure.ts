/** Why the service, or one of its tools, could not start: one line that says what to do, without addresses or secrets. */

const has = <K extends string>(value: unknown, key: K): value is Record<K, unknown> =>
  typeof value === "object" && value !== null && key in value

export const startFailure = (error: unknown): string => {
  if (!has(error, "_tag")) return "it stopped for a reason that is not known"
  switch (error._tag) {
    case "SqlError":
      return sqlFailure(error)
    case "OutcomeUnknown":
      return "the database did not answer; is DATABASE_URL right, and the server up?"
    case "ServeError":
      return "PORT is taken, or HOST is not an address of this machine"
    default:
      return has(error, "message") && typeof error.message === "string" && error.message !== ""
        ? error.message
        : `it stopped: ${String(error._tag)}`
  }
}

const sqlFailure = (error: object): string => {
  const reason = has(error, "reason") && has(error.reason, "_tag") ? String(error.reason._tag) : ""
  if (reason === "AuthenticationError" || reason === "AuthorizationError") {
    return "the database refused the user or password of DATABASE_URL, or gives that user too few rights"
  }
  return reason === "ConnectionError"
    ? "the database did not answer; is DATABASE_URL right, and the server up?"
    : `the database refused a statement (${reason})`
}
