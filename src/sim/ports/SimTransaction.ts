/** `Transaction` on the simulated database. */
import { Transaction } from "../../services/Transaction.ts"
import type { SimDatabase } from "../database/SimDatabase.ts"

export const make = (database: SimDatabase): Transaction["Service"] => Transaction.of({ run: database.transaction })
