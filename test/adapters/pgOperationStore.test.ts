/** `OperationStore` on a real Postgres. */
import * as Claims from "../services/operationClaimsSuite.ts"
import { concurrentSuite } from "../services/operationConcurrentSuite.ts"
import * as Lanes from "../services/operationLanesSuite.ts"
import * as Reads from "../services/operationReadsSuite.ts"
import * as Rows from "../services/operationStoreSuite.ts"
import * as Work from "../services/operationWorkSuite.ts"
import { blocked, open, postgres } from "./pgPorts.ts"

for (const { suite } of [Rows, Reads, Claims, Lanes, Work]) suite("Postgres", postgres, open)
concurrentSuite("Postgres", postgres, open, blocked)
