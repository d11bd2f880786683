/** The adapters of production keep their promises on a real Postgres, with as many sessions as they like. */
import { Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import * as PgQueue from "../../src/adapters/PgQueue.ts"
import * as PgVectorIndex from "../../src/adapters/PgVectorIndex.ts"
import { blocked, open, postgres } from "../adapters/pgPorts.ts"
import { PgTest } from "../postgres.ts"
import * as Models from "../services/models.ts"
import { dimension } from "../services/vectorIndexSuite.ts"
import { keepPorts, keepQueue } from "./matrix.ts"

const ports = PgVectorIndex.layer.pipe(Layer.provideMerge(postgres), Layer.provide(Models.layer("contracts", dimension)))

keepPorts("Postgres", { ports, open, blocked })
keepQueue("Postgres", PgQueue.layer.pipe(Layer.provide([PgTest.layer, SecureRandom.layerWebCrypto])))
