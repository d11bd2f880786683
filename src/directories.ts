/** Directories of the operator's choice: made where that is possible, and a plain no where it is not. */
import * as Fs from "node:fs"
import * as Path from "node:path"

/**
 * Makes a directory and those above it: false when it was there. Throws where it cannot be made. One by one, because
 * Node's own recursion never comes back from a file system that says "no such file" to each of them, as `/proc` does.
 */
export const makeDirectory = (path: string, mode = 0o777): boolean => {
  if (Fs.statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return false
  const parent = Path.dirname(path)
  if (parent !== path) makeDirectory(parent, mode)
  try {
    Fs.mkdirSync(path, { mode })
    return true
  } catch (cause) {
    // Another process may have made it meanwhile.
    if (codeOf(cause) === "EEXIST" && Fs.statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return false
    throw cause
  }
}

/** The name that the system gives a failure, such as ENOENT; null for any other error. */
export const codeOf = (cause: unknown): string | null =>
  cause instanceof Error && "code" in cause && typeof cause.code === "string" && /^E[A-Z0-9]+$/.test(cause.code)
    ? cause.code
    : null

const reasons: Record<string, string> = {
  EACCES: "this user may not",
  EPERM: "this user may not",
  EROFS: "its file system is read-only",
  ENOENT: "its file system takes no directories",
  ENOTDIR: "a file is in the way",
  EEXIST: "a file is in the way",
  EISDIR: "a directory is in the way",
  ENOTEMPTY: "something is in the way",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk is full"
}

/** One line for the operator: what a data directory is not good for, why, and what to do. */
export const unusable = (dataDir: string, what: string, cause: unknown): string => {
  const code = codeOf(cause)
  const why = code === null ? (cause instanceof Error ? cause.message : "unknown") : reasons[code] ?? code
  return `DATA_DIR ${dataDir} cannot be used: ${what} (${why}). ` +
    "Set DATA_DIR to a directory that this user can write to."
}
