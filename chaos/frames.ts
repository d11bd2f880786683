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

/** Sees which of a client's messages ends a transaction, however it is sent: as text, or prepared. */
export class CommitSpotter {
  private readonly commits = new Set<string>()

  isCommit({ bytes, type }: Frame): boolean {
    if (type === "Q") return isCommitText(textAt(bytes, 5))
    if (type === "P") {
      const name = textAt(bytes, 5)
      const text = textAt(bytes, 5 + Buffer.byteLength(name) + 1)
      if (isCommitText(text)) this.commits.add(name)
      else this.commits.delete(name)
      return false
    }
    if (type !== "B") return false
    const portal = textAt(bytes, 5)
    return this.commits.has(textAt(bytes, 5 + Buffer.byteLength(portal) + 1))
  }
}

const isCommitText = (text: string): boolean => text.trim().toUpperCase() === "COMMIT"

/** The server says that a transaction is committed. */
export const isCommitted = ({ bytes, type }: Frame): boolean => type === "C" && textAt(bytes, 5) === "COMMIT"

/** The server has answered all that it was asked. */
export const isReady = ({ type }: Frame): boolean => type === "Z"

/** A notification of LISTEN. */
export const isNotification = ({ type }: Frame): boolean => type === "A"
