/**
 * A whole world from one seed: the service, its clients, whoever runs it, whatever goes wrong, and those who watch. First
 * comes the chaos, then everything heals; it is over when everything is done, or something is broken.
 */
import type { Redacted } from "effect"
import { keyHash } from "../domain/Command.ts"
import type { OperationRef } from "../domain/Ids.ts"
import type { ExtractionRequest } from "../services/Provider.ts"
import { Client } from "./Client.ts"
import type { OpenDatabase } from "./Database.ts"
import type { Fault, FaultKind, Faults } from "./Faults.ts"
import { Gate } from "./Gate.ts"
import * as Healing from "./Healing.ts"
import { inMemory } from "./InMemory.ts"
import { Kernel, type KernelOptions } from "./Kernel.ts"
import type { Key } from "./Keyed.ts"
import { Misfortunes } from "./Misfortunes.ts"
import { Observers } from "./Observers.ts"
import { Operator, operatorName, type Tenant } from "./Operator.ts"
import { spawn } from "./Process.ts"
import type { Keep } from "./Run.ts"
import { Service } from "./Service.ts"
import type { Shape } from "./Shape.ts"
import { drawSettings, type Retention, type SimSettings } from "./SimSettings.ts"
import { Striker } from "./Strikes.ts"
import { type Errand, errands, numberIn, workspaceOf } from "./Workload.ts"

export interface WorldOptions extends Pick<KernelOptions, "seed" | "recorder"> {
  readonly shape: Shape
  readonly schedule: NonNullable<KernelOptions["schedule"]>
  readonly faults: Faults
  readonly keep: Keep
  readonly blind: ReadonlyArray<string>
  /** The simulated one, unless given. */
  readonly open?: OpenDatabase
}

/** More than anybody needs. */
const plenty = 1_000_000n

/** Faults whose effects come late: how long after them something may still be on its way, in milliseconds. */
const echoMs: Readonly<Partial<Record<FaultKind, number>>> = { late_commit: 8_100, slow_statement: 12_100, index_slow: 12_100 }

/** Everything is done when two looks after each other say so. */
const looks = 2

export class World {
  readonly kernel: Kernel
  readonly striker: Striker
  readonly service: Service
  readonly observers: Observers
  private readonly shape: Shape
  private readonly settings: SimSettings
  private readonly retention: Retention = { atOnce: false }
  private readonly gate: Gate
  private readonly operator: Operator
  private readonly misfortunes: Misfortunes
  private readonly tenants: ReadonlyArray<Tenant>
  private readonly errands: ReadonlyArray<Errand>
  private readonly looksAtKeys: boolean
  private readonly revokedAt = new Map<Redacted.Redacted, number>()
  private clients = 0
  private quietAfter = 0
  private quietLooks = 0
  private over = false

  constructor({ blind, faults, keep, open = inMemory, recorder, schedule, seed, shape }: WorldOptions) {
    const budget = shape.budget === 0 ? Infinity : shape.budget
    const kernel = this.kernel = new Kernel({
      seed,
      schedule,
      budget,
      overhear: ({ id }, level, line) => this.observers.logged(id, level, line),
      ...(recorder === undefined ? {} : { recorder })
    })
    this.shape = shape
    this.settings = drawSettings(kernel.key.of("settings"), shape, this.retention)
    this.errands = errands(kernel.key.of("workload"), shape)
    this.looksAtKeys = kernel.key.of("looks at keys").chance(0.25)
    this.striker = new Striker({
      kernel,
      faults,
      keep,
      listen: (fault) => this.struck(fault),
      spares: (actor) => actor.startsWith(operatorName)
    })
    this.service = this.makeService(open)
    this.observers = new Observers({
      kernel,
      blind,
      database: this.service.database,
      settings: this.settings,
      operationOf: (request) => this.operationOf(request)
    })
    this.tenants = Array.from({ length: shape.workspaces }, (_, number) =>
      ({ workspaceId: workspaceOf(number), secret: null, keyId: null, grants: 0 }))
    this.operator = new Operator(kernel, this.service.database, (why) => this.observers.broke(operatorName, why))
    this.gate = this.makeGate()
    this.misfortunes = this.makeMisfortunes()
  }

  /** From the beginning to the end, or for so much virtual time. */
  run(forMs = Infinity): void {
    const { gate, kernel, observers, operator, service } = this
    operator.open(this.tenants, (tenant) => this.creditOf(tenant), this.looksAtKeys, () => this.begin())
    const verdict = kernel.run({ until: () => this.over || observers.broken, forMs })
    observers.verdicts.ended(verdict)
    gate.close(kernel.now)
    if (observers.broken || verdict._tag === "TimeUp") return
    if (this.clients > 0) observers.verdicts.add("clients-are-served", "clients", `${this.clients} still wait`)
    observers.oracles.atEnd(service.database.committed)
  }

  private begin(): void {
    const { kernel, misfortunes, service, shape } = this
    for (const machine of service.machines) machine.start()
    for (const errand of this.errands) this.sendOut(errand)
    misfortunes.begin()
    kernel.after(shape.chaosMs, "heal", () => this.heal())
    this.lookAround()
  }

  private sendOut(errand: Errand): void {
    const { gate, kernel, shape, striker } = this
    this.clients++
    const process = spawn(kernel, {
      name: `client-${errand.number + 1}`,
      main: (process) => new Client(process, { errand, gate, strikes: striker, leaseMs: shape.leaseMs }).life
    })
    process.onDeath(() => {
      this.clients--
      if (process.exit?._tag === "Failure") this.observers.broke(process.id, "the client ended with an error")
    })
  }

  /** From here on nothing goes wrong any more, and time is bounded. */
  private heal(): void {
    const { kernel, observers, operator, service, settings, shape } = this
    kernel.mark(kernel.world, "note", "heal")
    this.striker.healed = true
    observers.oracles.healed()
    this.service.queue.heal()
    const key = kernel.key.of("heal")
    for (const machines of [service.workers, service.apis]) {
      Healing.settle(key, machines, Healing.core(key.of(machines[0]!.name), machines), (process) => observers.resumed(process))
    }
    for (const tenant of this.tenants) operator.grant(tenant, plenty)
    kernel.after(Healing.patienceMs(settings, shape), "the end of patience", () => this.over = true)
  }

  /** Ends the run once everything is done, and nothing is on its way that might change that. */
  private lookAround(): void {
    const { kernel, observers, service, shape } = this
    const done = this.clients === 0 && observers.backlog.empty && service.quiet && kernel.now >= this.quietAfter && !this.expiring
    this.quietLooks = done ? this.quietLooks + 1 : 0
    if (this.quietLooks >= looks) this.over = true
    else kernel.after(shape.leaseMs / 5, "look", () => this.lookAround())
  }

  /** Whether inputs are left that repair takes away in a healed world. */
  private get expiring(): boolean {
    if (!this.striker.healed || !this.retention.atOnce) return false
    const { inputs, operations } = this.service.database.committed
    return [...inputs.keys()].some((key) => operations.get(key)?.state === "failed")
  }

  private struck(fault: Fault): void {
    this.observers.struck(fault)
    this.quietAfter = Math.max(this.quietAfter, this.kernel.now + (echoMs[fault.kind] ?? 0))
  }

  /** What a workspace has at the beginning: plenty, or not even enough for one thing. */
  private creditOf({ workspaceId }: Tenant): bigint {
    const point = { actor: "world", label: "workspace", index: this.tenants.findIndex((tenant) => tenant.workspaceId === workspaceId) }
    const fault = this.striker.strike(point, ["credit_out"])
    return fault === null ? plenty : BigInt(this.striker.detail(point, fault).below(12))
  }

  /** The operation that these instructions came with; null when it is not known by then. */
  private operationOf({ instructions }: ExtractionRequest): OperationRef | null {
    const errand = this.errands[numberIn(instructions)]
    if (errand === undefined) return null
    const { workspaceId } = errand
    const row = this.service.database.committed.keys.get(`${workspaceId}/${keyHash(errand.key)}`)
    return row === undefined ? null : { workspaceId, id: row.operationId }
  }

  private makeService(open: OpenDatabase): Service {
    const { kernel, settings, shape, striker } = this
    return new Service({
      open,
      kernel,
      strikes: striker,
      shape,
      settings,
      listener: {
        launched: (machine) => this.misfortunes.follow(machine, machine.process!),
        died: (process) => this.observers.died(process),
        broke: (id, why) => this.observers.broke(id, why)
      },
      asked: (request, process) => this.observers.asked(request, process),
      answered: (request, process, facts) => this.observers.answered(request, process, facts),
      over: (request, process, waitMs) => this.observers.over(request, process, waitMs),
      notified: (payload) => this.observers.notified(payload)
    })
  }

  private makeGate(): Gate {
    return new Gate({
      apis: this.service.apis,
      secretOf: (workspaceId) => this.tenants.find((tenant) => tenant.workspaceId === workspaceId)?.secret ?? null,
      told: (told) => this.observers.told(told),
      broke: (id, why) => this.observers.broke(id, why),
      letIn: (secret, askedAt) => {
        if (askedAt > (this.revokedAt.get(secret) ?? Infinity)) this.observers.verdicts.add("revoked-is-revoked", "api", "let in")
      }
    })
  }

  private makeMisfortunes(): Misfortunes {
    const { kernel, operator, retention, service, shape, striker, tenants } = this
    const who = (detail: Key): Tenant => detail.of("who").choose(tenants)!
    return new Misfortunes({
      kernel,
      strikes: striker,
      leaseMs: shape.leaseMs,
      database: service.database,
      queue: service.queue,
      retention,
      resumed: (process) => this.observers.resumed(process),
      topUp: (detail) => operator.grant(who(detail), BigInt(detail.of("credit").between(1, 20))),
      revoke: this.looksAtKeys
        ? (detail, pauseMs) => operator.replaceKey(who(detail), pauseMs, (secret) => this.revokedAt.set(secret, kernel.now))
        : null
    })
  }
}
