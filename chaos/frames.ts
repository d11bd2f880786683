/** The messages of Postgres in a stream of bytes, as far as a proxy has to know them. */

/** A whole message with its bytes. `type` is empty for the one without a type that opens a session. */
export interface Frame {
  readonly type: string
  readonly bytes: Buffer
}

/** Cuts chunks into messages; what is not whole yet is kept for the next chunk. */
export class Framer {
  private rest: Buffer = Buffer.alloc(0)
  private opening: boolean

  /** A client opens with a message that has no type; a server does not. */
  constructor(side: "client" | "server") {
    this.opening = side === "client"
  }

  push(chunk: Buffer): ReadonlyArray<Frame> {
    this.rest = this.rest.length === 0 ? chunk : Buffer.concat([this.rest, chunk])
    const frames: Array<Frame> = []
    while (true) {
      const header = this.opening ? 0 : 1
      if (this.rest.length < header + 4) return frames
      const length = header + this.rest.readInt32BE(header)
      if (this.rest.length < length) return frames
      const bytes = this.rest.subarray(0, length)
      this.rest = this.rest.subarray(length)
      const type = this.opening ? "" : String.fromCharCode(bytes[0]!)
      // After a request for TLS, which is declined, the client opens again.
      if (!isTlsRequest({ type, bytes })) this.opening = false
      frames.push({ type, bytes })
    }
  }
}

const tlsRequest = 80_877_103

export const isTlsRequest = ({ bytes, type }: Frame): boolean =>
  type === "" && bytes.length === 8 && bytes.readInt32BE(4) === tlsRequest

const textAt = (bytes: Buffer, start: number): string => bytes.toString("utf8", start, bytes.indexOf(0, start))

/** A commit that a client asks for. */
export interface Commit {
  /** Whether anything was reserved, charged or given back in this transaction. */
  readonly movesMoney: boolean
}

type Statement = "begin" | "commit" | "money" | "other"

/** Sees which of a client's messages ends a transaction, and what was in it, however it is sent: as text, or prepared. */
export class CommitSpotter {
  private readonly prepared = new Map<string, Statement>()
  private movesMoney = false

  /** Null when this message asks for no commit. */
  commitIn({ bytes, type }: Frame): Commit | null {
    if (type === "Q") return this.run(statementOf(textAt(bytes, 5)))
    if (type === "P") {
      const name = textAt(bytes, 5)
      this.prepared.set(name, statementOf(textAt(bytes, 5 + Buffer.byteLength(name) + 1)))
    }
    if (type !== "B") return null
    const portal = textAt(bytes, 5)
    return this.run(this.prepared.get(textAt(bytes, 5 + Buffer.byteLength(portal) + 1)) ?? "other")
  }

  private run(statement: Statement): Commit | null {
    if (statement === "begin") this.movesMoney = false
    if (statement === "money") this.movesMoney = true
    return statement === "commit" ? { movesMoney: this.movesMoney } : null
  }
}

const statementOf = (text: string): Statement => {
  if (/^\s*begin\b/i.test(text)) return "begin"
  if (/^\s*commit\s*$/i.test(text)) return "commit"
  return /\binsert into transfers\b/i.test(text) ? "money" : "other"
}

/** The server says that a transaction is committed. */
export const isCommitted = ({ bytes, type }: Frame): boolean => type === "C" && textAt(bytes, 5) === "COMMIT"

/** The server has answered all that it was asked. */
export const isReady = ({ type }: Frame): boolean => type === "Z"

/** A notification of LISTEN. */
export const isNotification = ({ type }: Frame): boolean => type === "A"
