/** What a process of the service logged as an error, and whether a fault of ours explains it. */

export interface LoggedError {
  readonly message: string
  /** The process, and the whole line. The service logs no text of a client. */
  readonly line: string
  readonly isExplained: boolean
}

/** What the service has to log while its vectors are away, and when the model's side refuses it. */
const explained = [/^The vector index is out of order/, /^The provider refuses our requests/]

export const errorsIn = (name: string, log: string): ReadonlyArray<LoggedError> =>
  log.split("\n").flatMap((line) => {
    const entry = parsed(line)
    if (entry === null || !["ERROR", "FATAL"].includes(entry.level.toUpperCase())) return []
    const message = [entry.message].flat().map(String).join(" ")
    return [{ message, line: `${name}: ${line}`, isExplained: explained.some((pattern) => pattern.test(message)) }]
  })

/** How often the vectors were not to be had. */
export const indexErrorsIn = (log: string): number => log.split("The vector index is out of order").length - 1

/** A line of the log. A process that is killed may leave half a line, and one that cannot start says so in plain words. */
const parsed = (line: string): { readonly level: string; readonly message: unknown } | null => {
  try {
    const entry: unknown = JSON.parse(line)
    return typeof entry === "object" && entry !== null && "level" in entry && "message" in entry
      ? { level: String(entry.level), message: entry.message }
      : null
  } catch {
    return null
  }
}
