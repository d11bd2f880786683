/** Whoever runs the service: makes workspaces and their keys, grants credit, revokes a key. Nothing goes wrong with him. */
import { Effect, type Redacted } from "effect"
import type { ApiKeyId, WorkspaceId } from "../domain/Ids.ts"
import { untilKnown } from "../services/Again.ts"
import { ApiKeys, KeyScope } from "../services/ApiKeys.ts"
import * as Grants from "../services/Grants.ts"
import type { Ledger } from "../services/Ledger.ts"
import type { Transaction } from "../services/Transaction.ts"
import type { Database } from "./Database.ts"
import type { Kernel } from "./Kernel.ts"
import { spawn } from "./Process.ts"

export const operatorName = "operator"

/** What is known of a workspace outside of the database. */
export interface Tenant {
  readonly workspaceId: WorkspaceId
  /** The key that its clients use, if anybody looks at keys. */
  secret: Redacted.Redacted | null
  keyId: ApiKeyId | null
  grants: number
}

export class Operator {
  private readonly kernel: Kernel
  private readonly database: Pick<Database, "provide">
  private readonly failed: (why: string) => void

  constructor(kernel: Kernel, database: Pick<Database, "provide">, failed: (why: string) => void) {
    this.kernel = kernel
    this.database = database
    this.failed = failed
  }

  /** Opens every workspace, with this credit each, and then calls back. */
  open(tenants: ReadonlyArray<Tenant>, creditOf: (tenant: Tenant) => bigint, withKeys: boolean, then: () => void): void {
    const operator = this
    this.work(Effect.gen(function*() {
      const keys = yield* ApiKeys
      for (const tenant of tenants) {
        yield* untilKnown(keys.makeWorkspace(tenant.workspaceId))
        const credit = creditOf(tenant)
        if (credit > 0n) yield* operator.credit(tenant, credit)
        if (withKeys) yield* operator.newKey(tenant)
      }
    }), then)
  }

  grant(tenant: Tenant, credit: bigint): void {
    this.work(this.credit(tenant, credit))
  }

  /** Revokes the key that clients use, tells when that is done, and gives them another one after a while. */
  replaceKey(tenant: Tenant, pauseMs: number, revoked: (secret: Redacted.Redacted) => void): void {
    const operator = this
    this.work(Effect.gen(function*() {
      const { keyId, secret, workspaceId } = tenant
      if (keyId === null || secret === null) return
      tenant.keyId = null
      yield* untilKnown((yield* ApiKeys).revoke(workspaceId, keyId))
      revoked(secret)
      yield* Effect.sleep(pauseMs)
      yield* operator.newKey(tenant)
    }))
  }

  private newKey(tenant: Tenant) {
    return Effect.gen(function*() {
      const { key, secret } = yield* untilKnown((yield* ApiKeys).make(tenant.workspaceId, "clients", KeyScope.literals))
      tenant.keyId = key.id
      tenant.secret = secret
    })
  }

  /** Under a name of its own, so that a repeat grants nothing. */
  private credit(tenant: Tenant, credit: bigint) {
    return Effect.suspend(() => {
      const reference = `grant-${tenant.grants++}`
      return untilKnown(Grants.give(tenant.workspaceId, credit, reference))
    })
  }

  private work<E>(effect: Effect.Effect<unknown, E, ApiKeys | Ledger | Transaction>, then: () => void = () => {}): void {
    const main = this.database.provide(effect).pipe(
      Effect.matchCause({ onFailure: () => this.failed("the operator could not do his work"), onSuccess: then })
    )
    spawn(this.kernel, { name: operatorName, main: () => main })
  }
}
