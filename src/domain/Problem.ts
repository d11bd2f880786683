/** What is wrong with a body, and where. Safe to log: it names places, never what was sent there. */

export interface Problem {
  /** A JSON pointer (RFC 6901) into the body; empty for the body itself. */
  readonly path: string
  readonly message: string
}

/** The most problems of one body that are reported. */
export const problemsMax = 20

/** A longer name in a path is cut: the path says where to look, and no more. */
const segmentMaxLength = 64

/** The JSON pointer of a path. */
export const pointer = (path: ReadonlyArray<PropertyKey>): string =>
  path.map((segment) => `/${shorten(String(segment)).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("")

const shorten = (name: string): string =>
  (name.length > segmentMaxLength ? `${name.slice(0, segmentMaxLength)}…` : name).toWellFormed()
