/** One connection with a transaction: its requests are served one at a time, in the order of their sending. */
import type { Tx } from "./Tx.ts"

export class Session {
  /** The transaction, as the server has it. Null before it has begun. */
  tx: Tx | null = null
  /** It has one of the connections of its client. */
  connected = false
  /** The client has heard that it has begun, and has to end it. */
  begun = false
  /** Something inside has failed and was swallowed: this transaction never commits. */
  spoiled = false
  /** The connection is gone: what has not arrived is lost. */
  broken = false
  /** Its commit comes later, whatever happens to the connection. */
  late = false
  private sent = 0
  private served = 0
  private busy = false
  private hungUp: (() => void) | null = null
  private early: Map<number, () => void> | null = null

  /** The place of the next request in the order of sending. */
  send(): number {
    return this.sent++
  }

  /** A request has arrived: serves it once those before it have been served. */
  receive(place: number, serve: () => void): void {
    if (this.busy || place !== this.served) return void (this.early ??= new Map()).set(place, serve)
    this.served++
    this.busy = true
    serve()
  }

  /** The present request has been served. */
  done(): void {
    this.busy = false
    this.proceed()
  }

  /** The client is gone: calls back once everything that it had sent has been served or is lost. */
  hangUp(then: () => void): void {
    this.hungUp = then
    if (!this.busy) this.proceed()
  }

  private proceed(): void {
    const serve = this.early?.get(this.served)
    if (serve !== undefined) {
      this.early!.delete(this.served)
      return this.receive(this.served, serve)
    }
    if (this.hungUp === null || (this.served < this.sent && !this.broken)) return
    const then = this.hungUp
    this.hungUp = null
    then()
  }
}
