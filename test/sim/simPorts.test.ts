/** The simulated ports promise what those on Postgres promise. */
import * as ApiKeys from "../services/apiKeysSuite.ts"
import * as LedgerTogether from "../services/ledgerConcurrentSuite.ts"
import * as Ledger from "../services/ledgerSuite.ts"
import * as Records from "../services/memoryStoreSuite.ts"
import * as Claims from "../services/operationClaimsSuite.ts"
import * as Together from "../services/operationConcurrentSuite.ts"
import * as Lanes from "../services/operationLanesSuite.ts"
import * as Reads from "../services/operationReadsSuite.ts"
import * as Rows from "../services/operationStoreSuite.ts"
import * as Work from "../services/operationWorkSuite.ts"
import * as Projections from "../services/projectionsSuite.ts"
import * as Transaction from "../services/transactionSuite.ts"
import * as VectorIndex from "../services/vectorIndexSuite.ts"
import { blocked, open, simulated } from "./simPorts.ts"

const ports = simulated("contracts")

for (const { suite } of [Rows, Reads, Claims, Lanes, Work, Records, Projections, Ledger, Transaction, VectorIndex]) {
  suite("simulated", ports, open)
}
ApiKeys.suite("simulated", ports)
Together.concurrentSuite("simulated", ports, open, blocked)
LedgerTogether.concurrentSuite("simulated", ports, open, blocked)
Transaction.concurrentSuite("simulated", ports, open)
