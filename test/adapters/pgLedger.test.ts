/** `Ledger` on a real Postgres. */
import { concurrentSuite } from "../services/ledgerConcurrentSuite.ts"
import { suite } from "../services/ledgerSuite.ts"
import { blocked, open, postgres } from "./pgPorts.ts"

suite("Postgres", postgres, open)
concurrentSuite("Postgres", postgres, open, blocked)
