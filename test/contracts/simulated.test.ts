/** The simulated ports promise what those of production promise. */
import { Effect } from "effect"
import type { FaultKind } from "../../src/sim/Faults.ts"
import type { Trouble } from "../services/providerTroubleSuite.ts"
import { blocked, Mishap, open, simulated } from "../sim/simPorts.ts"
import { keepPorts, keepProvider, keepQueue } from "./matrix.ts"

const ports = simulated("contracts")

const faults: { readonly [Name in Trouble]: FaultKind } = {
  "too many at once": "provider_rate_limited",
  "too many at once, and when to come back": "provider_retry_after",
  "nobody there": "provider_unavailable",
  "a refusal": "provider_refusal",
  "no sense": "provider_invalid"
}

keepPorts("simulated", { ports, open, blocked })
keepQueue("simulated", ports)
keepProvider("simulated", ports, (trouble) =>
  Effect.map(Mishap, (mishap) => {
    mishap.next = faults[trouble]
  }))
