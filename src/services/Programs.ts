/** The programs wired to each other. Whoever provides the ports underneath decides which world they run in. */
import { Layer } from "effect"
import { Attempt } from "./Attempt.ts"
import { Claims } from "./Claims.ts"
import { Commands } from "./Commands.ts"
import { Events } from "./Events.ts"
import { Memories } from "./Memories.ts"
import { Projector } from "./Projector.ts"
import { Repair } from "./Repair.ts"
import { Retries } from "./Retries.ts"
import { Settlement } from "./Settlement.ts"
import { Usage } from "./Usage.ts"
import * as Worker from "./Worker.ts"

/** What callers use. */
export const api = Layer.mergeAll(Commands.layer, Retries.layer, Memories.layer, Usage.layer).pipe(
  Layer.provideMerge(Events.layer),
  Layer.provide(Settlement.layer)
)

/** What a worker process runs until its scope closes: attempts, projection and repair. */
export const worker = Layer.mergeAll(
  Worker.layer,
  Projector.layerLoop.pipe(Layer.provide(Projector.layer)),
  Repair.layerLoop.pipe(Layer.provide(Repair.layer))
).pipe(
  Layer.provide(Attempt.layer),
  Layer.provide(Claims.layer),
  Layer.provide(Settlement.layer)
)
