/** The ports of operations, money and keys on PGlite: the same promises where everybody shares one session. */
import { type Context, Effect, Exit, Layer, Scope } from "effect"
import { afterAll } from "vitest"
import * as ApiKeys from "../services/apiKeysSuite.ts"
import * as Ledger from "../services/ledgerSuite.ts"
import * as Claims from "../services/operationClaimsSuite.ts"
import * as Lanes from "../services/operationLanesSuite.ts"
import * as Reads from "../services/operationReadsSuite.ts"
import * as Rows from "../services/operationStoreSuite.ts"
import * as Work from "../services/operationWorkSuite.ts"
import * as Transaction from "../services/transactionSuite.ts"
import { open, pglite } from "./pgPorts.ts"

// One database for all of them: it takes seconds to make.
const scope = Scope.makeUnsafe()
let built: Promise<Context.Context<Layer.Success<typeof pglite>>> | undefined
const shared = Layer.effectContext(
  Effect.promise(() => built ??= Effect.runPromise(Layer.buildWithScope(pglite, scope)))
)
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

for (const { suite } of [Rows, Reads, Claims, Lanes, Work, Ledger, Transaction]) suite("PGlite", shared, open)
ApiKeys.suite("PGlite", shared)
