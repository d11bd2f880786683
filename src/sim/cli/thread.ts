/** A thread that simulates: one task after another, until it is ended. */
import { parentPort, workerData } from "node:worker_threads"
import type { Simulate } from "../Run.ts"
import { load } from "./Harness.ts"
import { Pulse } from "./Pulse.ts"
import { perform, type Task } from "./Task.ts"

const given = workerData as { readonly module: string; readonly memory: SharedArrayBuffer }
const harness = await load(new URL(given.module))
const pulse = new Pulse(given.memory)
const simulate: Simulate = (spec, keep) => pulse.during(() => harness.simulate(spec, keep))
const now = () => performance.now()

parentPort?.on("message", (task: Task) => {
  pulse.number(-1)
  parentPort?.postMessage(perform(task, simulate, now, (index) => pulse.number(index)), [])
})
