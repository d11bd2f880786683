/** The durable rows. Not one of its methods decides anything: they lock, read and write what programs tell them. */
import { Context } from "effect"
import type { MemoryStore } from "./MemoryStore.ts"
import type { OperationStore } from "./OperationStore.ts"

export class Store extends Context.Service<Store, {
  readonly operations: OperationStore
  readonly memories: MemoryStore
}>()("indelible/services/Store") {}
